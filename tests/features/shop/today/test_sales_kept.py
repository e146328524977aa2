"""Sales of today, of this month and of the same days before, as the worker keeps them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from builders import an_order
from cardsync.platform import clock
from cardsync.shop.today.conditions import same_days_before
from orders_builder import apply_alone, keep_sums


def order(number: str, day: date, amount: float, status: str = "Completed - Paid"):
    return an_order(number, order_date=f"{day:%m/%d/%Y}", total_amt=amount, status=status)


def the_day():
    """The day of the account's zone."""
    return clock.now().astimezone(ZoneInfo("America/New_York")).date()


async def sales(seller):
    return (await seller.get("/api/today")).json()["sales"]


async def test_sales_are_summed_by_days(a_seller):
    seller = await a_seller()
    today = the_day()
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


async def test_days_that_are_not_kept_are_counted(a_seller):
    seller = await a_seller()
    today = the_day()
    await seller.orders([order("A-1", today, 4), order("A-2", today.replace(day=1), 5)])
    kept = await sales(seller)
    # A day that is out of date is counted, and so is one that was never kept.
    await apply_alone(seller, "/orders", [order("A-1", today, 6)])
    assert Decimal((await sales(seller))["month"]["gross"]) == Decimal(11)
    await apply_alone(seller, "/orders", [order("A-1", today, 4)])
    forgotten = "DELETE FROM sales_kept WHERE seller_id = :id RETURNING ordered"
    await seller.service.sql(seller.id, forgotten, id=seller.id)
    assert await sales(seller) == kept
    await keep_sums(seller)
    assert await sales(seller) == kept
