"""The kept sums of sales are those of the orders at each moment: after every upload, whoever applies
it, and while days are out of date.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from statistics import median

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

import schedule
from builders import a_csv, a_row, an_order
from cardsync.sales.orders.customer_sums import keep_customers
from orders_builder import apply_alone, keep_sums

FIRST = date(2026, 7, 1)
SPAN = {"from": "2026-06-20", "to": "2026-08-31"}
GAMES = ("Magic", "Pokemon")


async def summary(seller, by):
    answer = await seller.get("/api/sales/summary", params=SPAN | {"by": by})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def kept(seller):
    """How many days are kept, and how many are out of date."""
    [row] = await seller.service.sql(
        seller.id,
        "SELECT (SELECT count(*) FROM sales_kept WHERE seller_id = :id) AS kept,"
        " (SELECT count(*) FROM sales_stale WHERE seller_id = :id) AS stale",
        id=seller.id,
    )
    return row["kept"], row["stale"]


async def as_the_orders_say(seller):
    """The sums by day and by game, counted in Python from the stored rows."""
    orders = await seller.service.sql(
        seller.id,
        "SELECT id, order_date, status_group, product_amt, total_amt, refund_amt FROM orders"
        " WHERE seller_id = :id",
        id=seller.id,
    )
    items = await seller.service.sql(
        seller.id,
        "SELECT i.*, c.created_at::date AS seen FROM order_item i LEFT JOIN card c"
        " ON c.seller_id = :id AND c.marketplace_id = i.sku_id WHERE i.seller_id = :id",
        id=seller.id,
    )
    # A refund may come before its order, which has no date until then.
    sold = {
        row["id"]: row for row in orders if row["order_date"] and row["status_group"] != "Cancelled"
    }
    days = defaultdict(lambda: [0, Decimal(0), 0, Decimal(0)])
    for row in sold.values():
        day = days[row["order_date"].isoformat()]
        day[0] += 1
        day[1] += row["total_amt"] or 0
        day[2] += row["refund_amt"] is not None
        day[3] += row["refund_amt"] or 0
    games = defaultdict(lambda: [set(), 0, [], [], 0, 0])
    for item in items:
        if order := sold.get(item["order_id"]):
            game = games[item["product_line"] or ""]
            game[0].add(order["id"])
            game[1] += pieces_of(item)
            if item["unit_price"] is not None:
                game[2].append(item["unit_price"] * pieces_of(item))
            elif (share := share_of(item, order, items)) is not None:
                game[2].append(share)
                game[4] += pieces_of(item)
            else:
                game[5] += pieces_of(item)
            if item["seen"] and order["order_date"] >= item["seen"]:
                game[3].append((order["order_date"] - item["seen"]).days)
    return (
        {day: tuple(told) for day, told in days.items()},
        {
            game: (
                len(orders),
                pieces,
                sum(gross) if gross else None,
                float(median(days)) if days else None,
                *unknown,
            )
            for game, (orders, pieces, gross, days, *unknown) in games.items()
        },
    )


def pieces_of(item):
    return item["quantity"] if item["quantity"] is not None else 1


def share_of(item, order, items):
    """The even share of an item without a price of what its order's other items leave, in cents."""
    own = [one for one in items if one["order_id"] == order["id"]]
    priced = [one["unit_price"] * pieces_of(one) for one in own if one["unit_price"] is not None]
    left = (order["product_amt"] or 0) - sum(priced)
    copies = sum(pieces_of(one) for one in own if one["unit_price"] is None)
    share = left * pieces_of(item) / copies
    return share.quantize(Decimal("0.01"), ROUND_HALF_UP) if left > 0 else None


async def as_the_page_says(seller):
    days = {
        one["start"]: (
            one["orders"],
            Decimal(one["gross"]),
            one["refunded_orders"],
            Decimal(one["refunds"]),
        )
        for one in (await summary(seller, "day"))["periods"]
    }
    games = {
        one["game"]: (
            one["orders"],
            one["pieces"],
            None if one["gross"] is None else Decimal(one["gross"]),
            one["days_to_sell"],
            one["estimated"],
            one["unpriced"],
        )
        for one in (await summary(seller, "game"))["games"]
    }
    return days, games


async def a_shop(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(number, price="2.00") for number in range(1, 5))))
    await seller.service.sql(
        seller.id,
        "UPDATE card SET created_at = '2026-06-21T12:00:00Z' WHERE seller_id = :id",
        id=seller.id,
    )
    return seller


def order(number, day, status="Completed - Paid", total=10, products=None):
    return an_order(
        f"S-{number}",
        order_date=(FIRST + timedelta(days=day)).strftime("%m/%d/%Y"),
        status=status,
        total_amt=total,
        product_amt=products,
    )


def item(number, sku, quantity=1, price=2):
    priced = {} if price is None else {"unit_price": price}
    return priced | {
        "order_number": f"S-{number}",
        "sku_id": sku,
        "product_name": f"Card {sku}",
        "product_line": GAMES[sku % 2],
        "quantity": quantity,
    }


NUMBERS, DAYS = st.integers(1, 6), st.integers(0, 4)
ORDER = st.builds(
    order,
    NUMBERS,
    DAYS,
    st.sampled_from(["Completed - Paid", "Canceled", "Ready to Ship"]),
    st.integers(1, 90),
    st.none() | st.integers(1, 40),
)
ITEM = st.builds(item, NUMBERS, st.integers(1, 5), st.integers(1, 3), st.none() | st.integers(1, 9))
REFUND = st.builds(
    lambda number, amount: {
        "order_number": f"S-{number}",
        "refund_type": "Partial",
        "total_amt": amount,
    },
    NUMBERS,
    st.integers(1, 5),
)
UPLOADS = st.lists(
    st.one_of(
        st.tuples(st.just("orders"), st.lists(ORDER, min_size=1, max_size=5)),
        st.tuples(st.just("items"), st.lists(ITEM, min_size=1, max_size=5)),
        st.tuples(st.just("refunds"), st.lists(REFUND, min_size=1, max_size=2)),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.day
@schedule.deeper
@settings(
    max_examples=schedule.examples(4, 20),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(UPLOADS)
async def test_after_each_upload_the_kept_sums_are_those_of_the_orders(a_seller, uploads):
    """Orders that are cancelled, refunded or moved to another day, and items whose price changes or
    is unknown.
    """
    seller = await a_shop(a_seller)
    for kind, rows in uploads:
        await getattr(seller, kind)(rows)
        assert (await kept(seller))[1] == 0
        assert await as_the_page_says(seller) == await as_the_orders_say(seller)


async def test_a_day_that_is_out_of_date_is_counted_by_the_reader(a_seller):
    seller = await a_shop(a_seller)
    await seller.orders([order(1, 0), order(2, 1)])
    await seller.items([item(1, 1), item(2, 2, 2)])

    await apply_alone(
        seller, "/orders", [order(1, 3, total=77), order(2, 1, "Canceled"), order(3, 1)]
    )
    assert (await kept(seller))[1] > 0
    assert await as_the_page_says(seller) == await as_the_orders_say(seller)
    await keep_sums(seller)
    assert await kept(seller) == (3, 0)
    assert await as_the_page_says(seller) == await as_the_orders_say(seller)


async def test_more_days_than_one_turn_keeps_are_kept_by_the_next(a_seller, monkeypatch):
    for module in ("platform.derived.sales_by_day", "sales.orders.sales_sums"):
        monkeypatch.setattr(f"cardsync.{module}.DAYS_AT_ONCE", 2)
    seller = await a_shop(a_seller)
    await seller.orders([order(number, number) for number in range(1, 6)])
    assert await kept(seller) == (5, 0)


async def test_the_sums_of_many_days_are_planned_for_the_rows_that_are_there(a_seller, monkeypatch):
    """A plan that was made before the rows of a first upload reads all of them for each batch."""
    seller = await a_shop(a_seller)
    modes, generic_plans = [], []

    async def beside(session, seller_id, days, *, last):
        await keep_customers(session, seller_id, days, last=last)
        modes.append(await session.scalar(text("SHOW plan_cache_mode")))
        # A connection of the pool prepares a statement only after some runs, or never.
        found = "FROM pg_prepared_statements WHERE statement LIKE :like"
        counted = text(f"SELECT generic_plans {found}")
        generic_plans.extend(await session.scalars(counted, {"like": "%customer_%"}))

    with monkeypatch.context() as patched:
        for module in ("platform.derived.sales_by_day", "sales.orders.sales_sums"):
            patched.setattr(f"cardsync.{module}.DAYS_AT_ONCE", 2)
        patched.setattr("cardsync.sales.orders.sales_sums.keep_customers", beside)
        rows = [order(n, n % 30) for n in range(60)]
        report = await seller.orders(rows)
    assert report["applied"] == 60
    assert set(modes) == {"force_custom_plan"}
    assert not any(generic_plans)


async def test_keepers_and_writers_at_once_leave_no_old_sum(a_seller, monkeypatch):
    seller = await a_shop(a_seller)

    async def keep_again(number):
        for _ in range(4):
            await keep_sums(seller)
            await asyncio.sleep(0.001 * number)

    async def write(turn):
        rows = [order(n, (n + turn) % 5, total=10 + turn) for n in range(1, 9)]
        await seller.orders(rows)

    for turn in range(3):
        await asyncio.gather(write(turn), keep_again(1), keep_again(2))
        assert await as_the_page_says(seller) == await as_the_orders_say(seller)
    assert (await kept(seller))[1] == 0


async def test_another_zone_has_other_days(a_seller):
    seller = await a_shop(a_seller)
    placed = {"order_placed_at": "2026-07-02T03:00:00Z"}
    await seller.orders([order(1, 0) | placed, order(2, 0)])
    await seller.set(time_zone="Europe/Berlin")
    told = [one["start"] for one in (await summary(seller, "day"))["periods"]]
    assert told == ["2026-07-01", "2026-07-02"]
    await keep_sums(seller)
    assert [one["start"] for one in (await summary(seller, "day"))["periods"]] == told
    zones = await seller.service.sql(
        seller.id, "SELECT DISTINCT zone FROM sales_kept WHERE seller_id = :id", id=seller.id
    )
    assert [row["zone"] for row in zones] == ["Europe/Berlin"]
