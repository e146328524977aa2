"""A part of a shop's cards is priced by the same last sales as all cards, and reads only its own."""

from __future__ import annotations

from datetime import date

import polars as pl

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.rules import Rule, Stale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.price_history import unsold
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.inputs.sampled_cards import Sample, sample_of
from orders_builder import an_item, an_order
from sent_statements import counting


async def test_a_part_of_the_cards_has_the_last_sales_that_all_have(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 9))))
    statuses = ("Shipped", "Completed - Paid", "Canceled")
    for n in range(24):
        order = await an_order(
            seller, status=statuses[n % 3], order_date=date(2026, 1 + n % 12, 1 + n)
        )
        await an_item(seller, order, sku_id=1 + n % 7)
    async with seller.service.database.tenant(seller.id) as session:
        _, live = await live_run(session, seller.id, clock.now())
        stale = Rule(1, "Old", 1, state="published", stale=Stale(60, 500, 7, 4_000))
        run = Run([stale], live.seller, live.now, [])
        whole = (await unsold(session, seller.id, run, None)).sort("id")
        assert 0 < whole["last_sold_at"].null_count() < whole.height
        ids = whole["id"].to_list()
        for part in (ids[2:5], ids[7:], Sample(ids[5:6])):
            expected = whole.filter(pl.col("id").is_in(list(part)))
            assert (await unsold(session, seller.id, run, part)).sort("id").equals(expected)
    database = seller.service.app.state.database
    async with counting(database) as sent, database.tenant(seller.id) as session:
        await unsold(session, seller.id, run, ids[:1])
        sent.read()
        assert sent.statements("FROM order_item") == 1
        assert sent.statements("GROUP BY i.sku_id") == 0


async def test_a_sample_has_one_run_of_ids_in_so_many_wherever_the_sellers_ids_are(a_seller):
    seller, other = await a_seller(), await a_seller()
    for n in (1, 101):
        await seller.import_csv(a_csv(*(a_row(n + more) for more in range(70)), *(
            a_row(m) for m in range(1, n))))  # fmt: skip
        await other.import_csv(a_csv(*(a_row(n + more) for more in range(40))))
    rows = await seller.service.sql(
        seller.id, "SELECT id FROM card WHERE seller_id = :id", id=seller.id
    )
    ids = [row["id"] for row in rows]
    assert max(ids) - min(ids) > 1_000
    async with seller.service.database.tenant(seller.id) as session:
        sample = await sample_of(session, seller.id, 2)
        assert {id for id in ids if id in set(sample)} == {id for id in ids if id % 32 < 16}
        assert len(sample) < 2 * len(ids)
        assert await sample_of(session, seller.id, 1) is None
