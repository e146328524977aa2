"""A promotion counts the copies of its cards that were sold while they had its price."""

from __future__ import annotations

from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.periods import week_start
from orders_builder import an_item, an_order, change_order

SALES = "/api/pricing/sales"
HOUR = timedelta(hours=1)


@pytest.fixture
async def shop(a_seller):
    """Three cards at their market price, and a promotion of the first two in an hour."""
    seller = await a_seller()
    rule = {"name": "At market", "state": "published", "priority": 1}
    assert (await seller.post("/api/pricing/rules", json=rule)).status_code == 201
    rows = [a_row(n, name=f"Card {n}", market="5.00", price="5.00") for n in (1, 2)]
    await seller.import_csv(a_csv(*rows, a_row(3, name="Other", market="5.00", price="5.00")))
    return seller


async def a_sale(seller, starts=HOUR, ends=3 * HOUR, **fields):
    now = clock.now()
    body = {"name": "Half off", "adjust_bp": -5000, "query": "name:card"} | fields
    times = {"starts_at": clock.rfc3339(now + starts), "ends_at": clock.rfc3339(now + ends)}
    answer = await seller.post(SALES, json=body | times)
    assert answer.status_code == 201, answer.text
    assert answer.json()["sold"] is None
    return answer.json()["id"]


async def passes(seller, time):
    """Time passes, and a worker sweeps and works off what is due."""
    clock.shift(time)
    await seller.sweep()
    await seller.service.run_jobs()


async def sells(seller, *lines, at=None, **columns):
    """An order of copies of cards at a price: (card, copies, price)."""
    now = at or clock.now()
    id = await an_order(
        seller, status="Paid", order_date=now.date(), placed_at_given=now, **columns
    )
    for card, copies, price in lines:
        await an_item(seller, id, sku_id=card, quantity=copies, unit_price=price)
    return id


async def sold(asker, sale):
    one = (await asker.get(f"{SALES}/{sale}")).json()["sold"]
    [listed] = [
        row["sold"] for row in (await asker.get(SALES)).json()["sales"] if row["id"] == sale
    ]
    assert one == listed
    return one and (one["copies"], one.get("value"), one["unpriced"])


async def test_a_promotion_says_what_was_sold_while_it_was_on(shop):
    owner = await signed_in(shop)
    sale = await a_sale(shop)
    await sells(shop, (1, 1, 5))
    await passes(shop, HOUR / 2)
    assert await sold(shop, sale) is None
    assert "not started" in (await owner.get("/pricing/sales")).text
    await passes(shop, HOUR)
    assert await sold(shop, sale) == (0, None, 0)
    clock.shift(HOUR / 4)
    # Another card, an order that was canceled, and one from before it began count in nothing.
    await sells(shop, (1, 2, "2.50"), (3, 1, 5))
    canceled = await sells(shop, (2, 4, "2.50"))
    await change_order(shop, canceled, status="Cancelled")
    await sells(shop, (2, 1, "2.50"), at=clock.now() - 2 * HOUR)
    await sells(shop, (2, 3, "2.25"))
    assert await sold(shop, sale) == (5, "11.75", 0)
    await sells(shop, (1, 1, None))
    assert await sold(shop, sale) == (6, "11.75", 1)
    page = (await owner.get(f"/pricing/sales/{sale}")).text
    assert "Sold in it" in page
    assert "$11.75" in page
    assert "1 copy without a known price" in " ".join(page.split())
    assert "6 copies" in (await owner.get("/pricing/sales")).text
    # It ends, prices move and are sold at, and the promotion becomes another one: nothing changes.
    await passes(shop, 3 * HOUR)
    await sells(shop, (1, 9, 5))
    await shop.import_csv(a_csv(a_row(2, name="Card 2", market="80.00", price="5.00")))
    changed = await shop.http.patch(f"{SALES}/{sale}", json={"query": "name:other"})
    assert changed.status_code == 200, changed.text
    assert changed.json()["sold"]["copies"] == 6
    assert changed.json()["sold"]["until"] is not None
    assert await sold(shop, sale) == (6, "11.75", 1)


@pytest.fixture
def at(request):
    """The hour of a Wednesday in New York, the marketplace's zone."""
    there = clock.now()
    begin = week_start(there, "America/New_York") + timedelta(days=9)
    clock.shift(begin + timedelta(hours=request.param) - there)
    yield begin
    clock.reset()


@pytest.mark.parametrize(("at", "counted", "undated"), [(1, 2, 0), (17, 1, 1)], indirect=["at"])
async def test_an_order_without_a_time_counts_as_of_noon(at, shop, counted, undated):
    sale = await a_sale(shop, starts=-timedelta(minutes=1), ends=48 * HOUR)
    await passes(shop, timedelta(minutes=1))
    for days in (-1, 0, 1):
        day = (at + timedelta(days=days, hours=12)).date()
        id = await an_order(shop, status="Paid", order_date=day)
        await an_item(shop, id, sku_id=1, quantity=1, unit_price="2.50")
    clock.shift(24 * HOUR)
    assert await sold(shop, sale) == (counted, f"{2.5 * counted:.2f}", 0)
    told = (await shop.get(f"{SALES}/{sale}")).json()["sold"]
    assert told["undated"] == undated
    page = (await (await signed_in(shop)).get(f"/pricing/sales/{sale}")).text
    assert ("as their orders have no time" in page) == bool(undated)


async def test_of_two_promotions_each_says_its_own(shop):
    first = await a_sale(shop, starts=-HOUR, priority=1)
    second = await a_sale(shop, starts=-HOUR, priority=2, query="", adjust_bp=-1000)
    await passes(shop, timedelta(minutes=1))
    await sells(shop, (1, 1, "2.50"), (3, 1, "4.50"))
    assert (await sold(shop, first), await sold(shop, second)) == (
        (1, "2.50", 0),
        (1, "4.50", 0),
    )
    # Ended by hand, its cards go over to the other one.
    off = await shop.http.patch(f"{SALES}/{first}", json={"enabled": False})
    assert off.status_code == 200
    await passes(shop, timedelta(minutes=2))
    await sells(shop, (1, 2, "4.50"))
    assert (await sold(shop, first), await sold(shop, second)) == (
        (1, "2.50", 0),
        (3, "13.50", 0),
    )


async def test_staff_see_the_copies_and_not_the_value(shop):
    sale = await a_sale(shop, starts=-HOUR)
    await passes(shop, timedelta(minutes=1))
    await sells(shop, (1, 2, "2.50"))
    staff = await joined(shop, "bea@example.com")
    assert await sold(staff, sale) == (2, None, 0)
    assert "value" not in (await staff.get(f"{SALES}/{sale}")).json()["sold"]
    assert "$5.00" not in (await staff.get("/pricing/sales")).text
