"""The figures that a worker keeps after an import or a pricing run: listed value by day, held and
dropped cards, the last run's moves, and the cards that moved most.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.platform.derived import stock
from cardsync.platform.derived.kept_figures import Figure, mark

DAY = timedelta(days=1)


async def kept(seller):
    [row] = await seller.service.sql(
        seller.id, "SELECT * FROM shop_figures WHERE seller_id = :id", id=seller.id
    )
    return row


async def listed(seller):
    return await seller.service.sql(
        seller.id,
        "SELECT product_line, day, cards, copies, listed FROM listed_value"
        " WHERE seller_id = :id ORDER BY day, product_line",
        id=seller.id,
    )


async def test_the_listed_value_is_kept_for_each_line_and_day(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, price="2.00", quantity=3), a_row(2, price="1.00")))
    [first] = await listed(seller)
    assert (first["cards"], first["listed"]) == (2, Decimal("7.0000"))
    # The same day once more, then the next.
    await seller.import_csv(a_csv(a_row(1, price="2.00", quantity=2), a_row(2, price="1.00")))
    [same] = await listed(seller)
    assert (same["day"], same["listed"]) == (first["day"], Decimal("5.0000"))
    clock.shift(DAY)
    await seller.import_csv(a_csv(a_row(1, price="2.50", quantity=2), a_row(2, price="1.00")))
    assert [row["listed"] for row in await listed(seller)] == [Decimal("5"), Decimal("6")]


async def test_two_workers_at_once_keep_the_figures_of_the_newest_mark(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, price="2.00")))
    database = seller.service.database
    for _ in range(3):
        clock.shift(timedelta(seconds=10))
        async with database.tenant(seller.id) as session:
            await mark(session, seller.id, Figure.STOCK)
            marked_at = clock.now()
        works = (stock.STOCK.work_off(seller.service.work, seller.id) for _ in range(4))
        await asyncio.gather(*works)
        assert marked_at - (await kept(seller))["seen_at"] < timedelta(seconds=5)
    [row] = await listed(seller)
    assert row["listed"] == Decimal("2.0000")


async def test_cards_that_move_most_are_found_by_period(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, price="2.00", quantity=n) for n in (1, 2, 3))))
    clock.shift(10 * DAY)
    changed = (a_row(1, price="5.00"), a_row(2, price="1.00", quantity=2), a_row(3, price="2.00"))
    await seller.import_csv(a_csv(*changed))
    movers = (await kept(seller))["movers"]
    assert sorted(row[1:] for row in movers["7"]) == [[20_000, 10_000], [20_000, 50_000]]
    # Thirty days ago the shop had none of them.
    assert movers["30"] == []


@pytest.mark.parametrize("broken", ["_STOCK", "_KEEP"])
async def test_an_import_is_done_although_its_figures_cannot_be_kept(a_seller, monkeypatch, broken):
    seller = await a_seller()
    monkeypatch.setattr(stock, broken, "SELECT 1 FROM there_is_no_such_table")
    await seller.import_csv(a_csv(a_row(1, price="2.00", quantity=3)))
    [card] = (await seller.get("/api/cards")).json()["cards"]
    assert (card["price"], card["quantity"]) == ("2.00", 3)
    assert await listed(seller) == []
    monkeypatch.undo()
    await seller.import_csv(a_csv(a_row(1, price="2.50", quantity=3)))
    [row] = await listed(seller)
    assert row["listed"] == Decimal("7.5000")
