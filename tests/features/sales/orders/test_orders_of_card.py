"""The orders that sold a card, newest first."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from browsers import joined
from builders import a_row, a_shop
from orders_builder import an_item, an_order


@pytest.fixture
async def shop(a_seller):
    return await a_shop(a_seller, a_row(1), a_row(2))


async def of(http, card, **query):
    answer = await http.get(f"/api/cards/{card}/orders", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def sold(seller, number, day, sku=1, **item):
    order = await an_order(seller, order_number=number, order_date=date.fromisoformat(day))
    await an_item(seller, order, sku_id=sku, quantity=2, unit_price=Decimal("1.50"), **item)


async def test_the_orders_of_the_sku_come_newest_first_and_go_on_behind_one(shop):
    first, second = (card["id"] for card in await shop.cards())
    for number, day in (("A", "2026-07-01"), ("B", "2026-07-03"), ("C", "2026-07-02")):
        await sold(shop, number, day)
    await sold(shop, "D", "2026-07-09", sku=2)
    told = await of(shop, first)
    assert [one["order_number"] for one in told["orders"]] == ["B", "C", "A"]
    assert told["orders"][0]["line_total"] == "3.00"
    assert told["after"] is None
    page = await of(shop, first, limit=2)
    assert [one["order_number"] for one in page["orders"]] == ["B", "C"]
    rest = await of(shop, first, limit=2, after=page["after"])
    assert ([one["order_number"] for one in rest["orders"]], rest["after"]) == (["A"], None)
    assert [one["order_number"] for one in (await of(shop, second))["orders"]] == ["D"]


async def test_staff_reads_them_and_another_shop_does_not(shop, a_seller):
    [card, *_] = [card["id"] for card in await shop.cards()]
    await sold(shop, "A", "2026-07-01")
    staff = await joined(shop, "selling@example.invalid")
    assert len((await of(staff, card))["orders"]) == 1
    other = await a_seller()
    assert (await other.get(f"/api/cards/{card}/orders")).status_code == 404
    assert (await of(shop, card, after=999_999))["orders"] == []
