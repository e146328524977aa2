"""The kept sums of customers are those of their orders at each moment: after every upload, whoever
applies it, and while days are out of date.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import schedule
from builders import an_order
from cardsync.sales.orders.sales_sums import SALES_SUMS
from orders_builder import apply_alone, keep_sums

READ = ("orders", "order_item", "customer_order", "customer_sum")
FIRST = date(2026, 7, 1)
NAMES = ("Ann", "ANN", "Bob", "Zoë", "")
MARKETPLACE = ZoneInfo("America/New_York")


async def as_the_orders_say(seller):
    """Name in small letters → sums, counted in Python from the stored rows."""
    rows = await seller.service.sql(
        seller.id, "SELECT * FROM orders WHERE seller_id = :id ORDER BY id", id=seller.id
    )
    found = defaultdict(list)
    for row in rows:
        if row["buyer_name"]:
            found[row["buyer_name"].casefold()].append(row)
    told = {}
    for name, orders in found.items():
        moments = [
            row["placed_at_given"]
            or datetime.combine(row["order_date"], datetime.min.time(), MARKETPLACE)
            for row in orders
            if row["placed_at_given"] or row["order_date"]
        ]
        refunds = [row["refund_amt"] for row in orders if row["refund_amt"] is not None]
        told[name] = (
            orders[-1]["buyer_name"],
            len(orders),
            min(moments, default=None),
            max(moments, default=None),
            sum((row["total_amt"] or 0 for row in orders), Decimal(0)),
            len(refunds),
            sum(refunds, Decimal(0)),
        )
    return told


async def as_the_api_says(seller):
    listed = (await seller.get("/api/customers", params={"per_page": 200})).json()
    told, order = {}, []
    for row in listed["customers"]:
        one = (await seller.get(f"/api/customers/{row['key']}")).json()
        assert row.items() <= one.items()
        moments = [
            datetime.fromisoformat(moment).astimezone(UTC) if moment else None
            for moment in (row["first_order_at"], row["last_order_at"])
        ]
        total = Decimal(row["lifetime_total"])
        refunded = (one["refunded_orders"], Decimal(one["refunded_total"]))
        name = row["buyer_name"]
        told[name.casefold()] = (name, row["order_count"], *moments, total, *refunded)
        order.append((-total, -row["order_count"]))
    assert order == sorted(order)
    assert listed["total"] == len(told)
    again = sum(one[1] > 1 for one in told.values())
    assert listed["repeat_rate"] == (round(again / len(told), 4) if told else 0)
    refunders = (await seller.get("/api/returns/customers")).json()["customers"]
    assert {one["buyer_name"].casefold() for one in refunders} == {
        name for name, one in told.items() if one[5] > 1
    }
    return told


def order(number, day, name, total=10, placed=None):
    told = an_order(f"C-{number}", buyer_name=name, total_amt=total)
    told["order_date"] = (FIRST + timedelta(days=day)).strftime("%m/%d/%Y")
    return told | ({"order_placed_at": f"2026-07-0{placed}T03:00:00Z"} if placed else {})


NUMBERS = st.integers(1, 7)
ORDER = st.builds(
    order,
    NUMBERS,
    st.integers(0, 4),
    st.sampled_from(NAMES),
    st.integers(1, 9),
    st.sampled_from([None, None, 2, 4]),
)
REFUND = st.builds(
    lambda number, amount, name: {
        "order_number": f"C-{number}",
        "refund_type": "Partial",
        "total_amt": amount,
        "buyer_name": name,
    },
    NUMBERS,
    st.integers(1, 5),
    st.sampled_from(NAMES),
)
UPLOADS = st.lists(
    st.one_of(
        st.tuples(st.just("orders"), st.lists(ORDER, min_size=1, max_size=6)),
        st.tuples(st.just("refunds"), st.lists(REFUND, min_size=1, max_size=3)),
    ),
    min_size=1,
    max_size=6,
)


async def out_of_date(seller):
    rows = await seller.service.sql(
        seller.id, "SELECT 1 FROM sales_stale WHERE seller_id = :id", id=seller.id
    )
    return bool(rows)


def in_turns_of(days, monkeypatch):
    for module in ("platform.derived.sales_by_day", "sales.orders.sales_sums"):
        monkeypatch.setattr(f"cardsync.{module}.DAYS_AT_ONCE", days)


async def kept_rows(seller):
    tables = ("customer_order", "customer_sum", "customer_count")
    counted = [f"(SELECT count(*) FROM {t} WHERE seller_id = :id) AS {t}" for t in tables]
    [rows] = await seller.service.sql(seller.id, f"SELECT {', '.join(counted)}", id=seller.id)
    return dict(rows)


@pytest.mark.day
@schedule.deeper
@settings(
    max_examples=schedule.examples(4, 20),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(UPLOADS)
async def test_after_each_upload_the_kept_sums_are_those_of_the_orders(a_seller, uploads):
    """Names change, refunds come before their orders, and orders move to other days."""
    seller = await a_seller()
    for kind, rows in uploads:
        await getattr(seller, kind)(rows)
        assert not await out_of_date(seller)
        assert await as_the_api_says(seller) == await as_the_orders_say(seller)


async def test_while_a_day_is_out_of_date_all_orders_are_counted(a_seller):
    seller = await a_seller()
    await seller.orders([order(1, 0, "Ann"), order(2, 1, "Bob"), order(3, 1, "Bob")])

    await apply_alone(
        seller, "/orders", [order(1, 3, "Zoë", total=77), order(2, 1, ""), order(4, 2, "Ann")]
    )
    refund = {"refund_type": "Partial", "total_amt": 1}
    refunds = [{"order_number": f"C-{number}"} | refund for number in (3, 9)]
    await apply_alone(seller, "/order_refunds", refunds)
    assert await out_of_date(seller)
    told = await as_the_orders_say(seller)
    assert set(told) == {"ann", "bob", "zoë"}
    assert await as_the_api_says(seller) == told
    await keep_sums(seller)
    assert not await out_of_date(seller)
    assert await as_the_api_says(seller) == told


async def test_keepers_and_writers_at_once_leave_no_old_sum(a_seller):
    seller = await a_seller()

    async def keep_again(number):
        for _ in range(4):
            await keep_sums(seller)
            await asyncio.sleep(0.001 * number)

    async def write(turn):
        await seller.orders([order(n, (n + turn) % 5, NAMES[(n + turn) % 5]) for n in range(1, 9)])

    for turn in range(3):
        await asyncio.gather(write(turn), keep_again(1), keep_again(2))
        assert not await out_of_date(seller)
        assert await as_the_api_says(seller) == await as_the_orders_say(seller)


async def test_customers_are_exact_after_each_turn_of_a_refresh(a_seller, monkeypatch):
    """The days of another zone are outdated too, but not those of its customers' orders."""
    in_turns_of(1, monkeypatch)
    seller = await a_seller()
    await seller.orders([order(n, n % 5, NAMES[n % 4]) for n in range(1, 8)])
    await seller.set(time_zone="Europe/Berlin")
    # The newest day, which the first turn stores.
    await apply_alone(seller, "/orders", [order(4, 4, "Zoë", total=77), order(8, 4, "Bob")])
    told = await as_the_orders_say(seller)
    turns = 0
    while await SALES_SUMS.work_off(seller.service.work, seller.id):
        turns += 1
        assert await as_the_api_says(seller) == told
    assert turns > 5
    assert (await kept_rows(seller))["customer_count"] == 1


async def test_many_touched_customers_are_summed_together(a_seller, monkeypatch):
    monkeypatch.setattr("cardsync.sales.orders.customer_sums.NAMES_AT_ONCE", 1)
    seller = await a_seller()
    for turn in range(2):
        await seller.orders([order(n, n % 5, NAMES[(n + turn) % 5]) for n in range(1, 8)])
        assert await as_the_api_says(seller) == await as_the_orders_say(seller)
    assert (await kept_rows(seller))["customer_sum"] == 3


async def test_a_customer_of_another_seller_is_unknown(a_seller):
    seller, other = await a_seller(), await a_seller()
    await seller.orders([order(1, 0, "Ann")])
    await other.orders([order(1, 0, "Bob")])
    [ann] = (await seller.get("/api/customers")).json()["customers"]
    assert (await other.get(f"/api/customers/{ann['key']}")).status_code == 404
    for table in ("customer_order", "customer_sum", "customer_count"):
        rows = await other.service.sql(other.id, f"SELECT seller_id FROM {table}")
        assert {row["seller_id"] for row in rows} == {other.id}


async def rows_read(owner_url: str, *tables: str) -> int:
    """How many rows of the tables have been read, all transactions together."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute(
            "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_user_tables"
            " WHERE relname = ANY (%s)",
            [list(tables)],
        ).fetchone()
    return int(found[0]) if found else 0


async def test_a_new_shop_that_statistics_do_not_know_is_read_a_few_times(a_seller, owner_url):
    """It alone finds joins that read all orders for each order, where the planner expects one row."""
    small, large = await a_seller(), await a_seller()
    for seller, count in ((small, 40), (large, 3_000)):
        orders = [
            an_order(f"N-{n}", buyer_name=f"Buyer {n}", order_date="2026-07-01")
            for n in range(count)
        ]
        with psycopg.connect(owner_url, autocommit=True) as connection:
            connection.execute("ANALYZE orders, order_item, customer_order, customer_sum")
        await apply_alone(seller, "/orders", orders)
        before = await rows_read(owner_url, *READ)
        for _ in range(2):
            await seller.service.sql(
                seller.id,
                "INSERT INTO sales_stale (seller_id, ordered) VALUES (:id, DATE '2026-07-01')",
                id=seller.id,
            )
            await keep_sums(seller)
    assert await rows_read(owner_url, *READ) - before < 100 * 3_000


async def test_the_customers_of_a_first_refresh_of_many_turns_are_summed_once(
    a_seller, monkeypatch
):
    in_turns_of(2, monkeypatch)
    seller = await a_seller()
    orders = [order(n, n % 40, f"Buyer {n % 150}") for n in range(1_200)]
    await apply_alone(seller, "/orders", orders)
    await keep_sums(seller)
    rows = await kept_rows(seller)
    assert (rows["customer_order"], rows["customer_sum"]) == (1_200, 150)
    # Otherwise the first of the 20 turns would have written some of them.
    [found] = await seller.service.sql(
        seller.id,
        "SELECT count(DISTINCT CAST(xmin AS text)) AS writers FROM customer_sum"
        " WHERE seller_id = :id",
        id=seller.id,
    )
    assert found["writers"] == 1
    assert await as_the_api_says(seller) == await as_the_orders_say(seller)
