"""A shop for a year: every few days an agent uploads the last 90 days anew, in whatever parts and
order, and the seller pulls and ships what came in. What is read is at all times what the
marketplace said last.
"""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from builders import Seller
from cardsync.platform import clock
from shop_year import Sale, sales

pytestmark = pytest.mark.day

FIRST, WINDOW = date(2026, 1, 5), timedelta(days=90)
BEYOND = ("Shipped", "Cancel")


def set_day(day: date) -> None:
    """Noon where the marketplace is."""
    clock.shift(datetime(day.year, day.month, day.day, 17, tzinfo=UTC) - clock.now())


async def sync(seller: Seller, chance: Random, shop: list[Sale], day: date) -> None:
    """One cycle of an agent: the window of each stream, orders before what hangs on them, cut
    anywhere; some parts come twice.
    """
    recent = [sale for sale in shop if day - WINDOW <= sale.placed <= day]
    streams = (
        ("/orders", [sale.order(day) for sale in recent]),
        ("/order_items", [row for sale in recent for row in sale.items()]),
        ("/orders/shipping", [sale.shipping(day) for sale in recent]),
        ("/order_refunds", [sale.refund_row() for sale in recent if sale.is_refunded(day)]),
    )
    for path, rows in streams:
        chance.shuffle(rows)
        cut = chance.randint(0, len(rows))
        parts = [part for part in (rows[:cut], rows[cut:]) if part]
        for part in parts + parts[: chance.randint(0, 1)]:
            assert (await seller.send(path, part, gzipped=chance.random() < 0.5)).status_code == 202
    rated = [sale.feedback() for sale in recent if sale.rated is not None and sale.rated <= day]
    if rated:
        answer = await seller.feedback(rated)
        assert answer.json() == {"status": "ok", "updated": len(rated)}
    await report_sales(seller)
    await seller.service.run_jobs()


async def report_sales(seller: Seller) -> None:
    """Two months a cycle, the oldest first."""
    gaps = (await seller.get("/api/v1/sales_report/gaps")).json()["gaps"]
    assert gaps == sorted(gaps)
    for month in gaps[:2]:
        first = date.fromisoformat(month)
        last = first.replace(day=monthrange(first.year, first.month)[1]).isoformat()
        answer = await seller.post(
            "/api/v1/sales_report", json={"date_from": month, "date_to": last, "report": {}}
        )
        assert answer.status_code == 200, answer.text


async def every_order(seller: Seller, **query: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The orders of all pages, and the last page."""
    orders: list[dict[str, Any]] = []
    number = pages = 1
    while number <= pages:
        answer = await seller.get(
            "/api/orders", params={"per_page": 100, "items": "full", "page": number, **query}
        )
        page = answer.json()
        orders += page["orders"]
        number, pages = number + 1, page["total_pages"]
    return orders, page


async def is_told(seller: Seller, shop: list[Sale], marked: set[str], day: date) -> None:
    """Each order once, as the marketplace had it on that day; counts and marks with it."""
    orders, page = await every_order(seller)
    expected = {sale.number: sale.told(day) for sale in shop if sale.placed <= day}
    assert len(orders) == page["total"] == len(expected)
    for order in orders:
        told = expected[order["order_number"]]
        items = sorted(
            (item["product_name"], item["unit_price"], item["quantity"]) for item in order["items"]
        )
        assert {name: order[name] for name in told if name != "items"} | {"items": items} == told
        pending = order["order_number"] in marked and not told["status"].startswith(BEYOND)
        assert order["marked_shipped_pending"] is pending
    assert page["status_counts"] == Counter(told["status"] for told in expected.values())
    assert [order["order_date"] for order in orders] == sorted(
        (o["order_date"] for o in orders), reverse=True
    )
    month = [
        told
        for told in expected.values()
        if told["order_date"] >= (day - timedelta(days=30)).isoformat()
    ]
    _, page = await every_order(seller, date_from=day - timedelta(days=30), date_to=day)
    assert page["status_counts"] == Counter(told["status"] for told in month)


async def pull(seller: Seller, shop: list[Sale], marked: set[str], day: date) -> None:
    """Everything that waits is walked through once: what leaves today is pulled and marked, the
    rest is put off.
    """
    session = (await seller.post("/api/pull_sessions")).json()
    orders = (await seller.get(f"/api/pull_sessions/{session['id']}")).json()["orders"]
    by_number = {sale.number: sale for sale in shop}
    waiting = {
        sale.number
        for sale in shop
        if sale.placed <= day
        and not sale.is_refunded(day)
        and not sale.status(day).startswith(BEYOND)
    }
    assert {order["order_number"] for order in orders} == waiting - marked
    for order in orders:
        sale = by_number[order["order_number"]]
        leaves = sale.ships <= day + timedelta(days=1)
        step = f"/api/pull_sessions/{session['id']}/orders/{order['id']}/{'pulled' if leaves else 'defer'}"
        assert (await seller.post(step)).status_code == 200
        if leaves:
            assert (await seller.post(f"/api/orders/{order['id']}/mark_shipped")).status_code == 200
            marked.add(sale.number)
    answer = await seller.post(f"/api/pull_sessions/{session['id']}/complete")
    assert (answer.json()["status"], answer.json()["order_count"]) == ("completed", len(orders))


async def spent(seller: Seller) -> dict[str, tuple[int, Decimal]]:
    answer = await seller.get("/api/customers", params={"per_page": 200})
    return {
        row["buyer_name"]: (row["order_count"], Decimal(row["lifetime_total"]))
        for row in answer.json()["customers"]
    }


@pytest.mark.day
@pytest.mark.night
async def test_months_of_a_shop(a_seller):
    await lives(await a_seller(), 1, days=50)


@pytest.mark.night
@pytest.mark.parametrize("seed", range(1, 8))
async def test_a_year_of_a_shop(a_seller, seed):
    await lives(await a_seller(), seed, days=365)


async def lives(seller: Seller, seed: int, days: int) -> None:
    chance = Random(seed)
    shop, marked = sales(chance, FIRST, days), set[str]()
    day, cycles = FIRST, 0
    while day < FIRST + timedelta(days=days + 60):
        set_day(day)
        await sync(seller, chance, shop, day)
        await pull(seller, shop, marked, day)
        cycles += 1
        if cycles % 6 == 0:
            await is_told(seller, shop, marked, day)
        last, day = day, day + timedelta(days=chance.randint(4, 10))
    await is_told(seller, shop, marked, last)
    assert (await seller.get("/api/v1/sales_report/gaps")).json() == {"gaps": []}
    bought: dict[str, list[Decimal]] = {}
    for sale in shop:
        bought.setdefault(sale.buyer, []).append(sale.total)
    assert await spent(seller) == {
        buyer: (len(totals), sum(totals)) for buyer, totals in bought.items()
    }
