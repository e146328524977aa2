"""Keeping the sales of the newest days: an upload of orders that was applied comes in; the rows of
`sales_day` are written anew.

It runs after the upload's own transaction, and obeys the rules of `keep.py`.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import structlog
from sqlalchemy import text

from cardsync.database.marketplace_time import MARKETPLACE_ZONE
from cardsync.database.session import Database

log = structlog.get_logger(__name__)

_SOLD: Final = """
    SELECT order_date, count(*), coalesce(sum(total_amt), 0) FROM orders
     WHERE seller_id = :seller AND order_date BETWEEN :since AND :today
       AND status_group <> 'Cancelled'
     GROUP BY order_date
"""
_KEEP: Final = """
    INSERT INTO sales_day AS kept (seller_id, day, orders, gross, seen_at)
    SELECT :seller, given.day, given.orders, given.gross, :now
      FROM unnest(CAST(:days AS date[]), CAST(:orders AS integer[]), CAST(:gross AS numeric[]))
           AS given (day, orders, gross)
    ON CONFLICT (seller_id, day) DO UPDATE
       SET orders = excluded.orders, gross = excluded.gross, seen_at = excluded.seen_at
     WHERE kept.seen_at <= excluded.seen_at
"""


def marketplace_day(now: datetime) -> date:
    return now.astimezone(ZoneInfo(MARKETPLACE_ZONE)).date()


def month_before(day: date) -> date:
    """Return the first day of the month before a day's."""
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


async def keep_sales(database: Database, seller_id: int, now: datetime) -> None:
    """Keep the sales of this month and the one before, a row for each day, also without a sale."""
    today = marketplace_day(now)
    since = month_before(today)
    values: dict[str, Any] = {"seller": seller_id, "since": since, "today": today, "now": now}
    try:
        async with database.tenant(seller_id) as session:
            sold = {row[0]: row[1:] for row in await session.execute(text(_SOLD), values)}
            days = [since + timedelta(days=n) for n in range((today - since).days + 1)]
            values["days"] = days
            values["orders"] = [sold.get(day, (0,))[0] for day in days]
            values["gross"] = [sold.get(day, (0, Decimal()))[1] for day in days]
            await session.execute(text(_KEEP), values)
    except Exception:
        # An upload that was applied stays applied.
        log.exception("sales_not_kept", seller_id=seller_id)
