"""Sales of today, of this month and of the same days before, as the worker keeps them."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta

from builders import an_order
from cardsync import clock
from cardsync.derived.sales import keep_sales, marketplace_day, month_before
from cardsync.today.conditions import same_days_before


def order(number: str, day: date, amount: float, status: str = "Completed - Paid"):
    return an_order(number, order_date=f"{day:%m/%d/%Y}", total_amt=amount, status=status)


async def sales(seller):
    return (await seller.get("/api/today")).json()["sales"]


async def test_sales_are_summed_by_the_marketplaces_days(a_seller):
    seller = await a_seller()
    today = marketplace_day(clock.now())
    first, last = same_days_before(today)
    await seller.orders(
        [
            order("A-1", today, 10.25),
            order("A-2", today, 1, "Canceled"),
            order("A-3", today.replace(day=1), 5),
            order("A-4", first, 7),
            order("A-5", last, 8),
            order("A-6", first - timedelta(days=1), 100),
        ]
    )
    told = await sales(seller)
    assert told["day"] == f"{today}"
    assert (told["before_from"], told["before_to"]) == (f"{first}", f"{last}")
    assert told["today"]["gross"] == ("15.25" if today.day == 1 else "10.25")
    assert told["month"] == {"orders": 2, "gross": "15.25"}
    assert told["month_before"] == {"orders": 2, "gross": "15.00"}
    # A later upload changes a day that is over.
    await seller.orders([order("A-5", last, 8, "Canceled")])
    assert (await sales(seller))["month_before"] == {"orders": 1, "gross": "7.00"}


async def test_sums_that_were_never_kept_are_counted(a_seller):
    seller = await a_seller()
    await seller.orders([order("A-1", marketplace_day(clock.now()), 4)])
    kept = await sales(seller)
    await seller.service.sql(
        seller.id, "DELETE FROM sales_day WHERE seller_id = :id RETURNING day", id=seller.id
    )
    assert await sales(seller) == kept


async def test_two_keepers_at_once_keep_every_day_once(a_seller):
    seller = await a_seller()
    now = clock.now()
    await seller.orders([order("A-1", marketplace_day(now), 4)])
    database = seller.service.database
    await asyncio.gather(*(keep_sales(database, seller.id, now) for _ in range(4)))
    told = await sales(seller)
    assert told["today"] == {"orders": 1, "gross": "4.00"}


def test_the_month_before():
    assert month_before(date(2026, 1, 31)) == date(2025, 12, 1)
    assert month_before(date(2026, 3, 1)) == date(2026, 2, 1)
