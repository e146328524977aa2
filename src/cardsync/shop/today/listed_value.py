"""Sums up the listed value of the product lines for each day.

On a day without a row, the value of a product line is the value of its last row.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.money import usd
from cardsync.shop.today.schemas import LineValue, ListedDay, ListedValueBody

DAYS_MOST: Final = 1_100
_BY_DAY = """
    SELECT day, product_line, cards, copies, listed, market FROM listed_value
     WHERE seller_id = :seller AND day >= :since
     UNION ALL
    SELECT * FROM (
        SELECT DISTINCT ON (product_line) day, product_line, cards, copies, listed, market
          FROM listed_value WHERE seller_id = :seller AND day < :since
         ORDER BY product_line, day DESC) before
     ORDER BY 1, 2
"""


async def read_listed_value(
    reading: Reading, caller: Caller, days: int, now: datetime
) -> ListedValueBody:
    """Return the listed value of the last `days` days. Raises OwnerRequired, InvalidPayload."""
    caller.must_see_revenue()
    if not 1 <= days <= DAYS_MOST:
        raise errors.InvalidPayload(f"days: must be a number from 1 to {DAYS_MOST}")
    since = caller.today(now) - timedelta(days=days - 1)
    rows = await reading.rows(_BY_DAY, {"seller": caller.seller_id, "since": since})
    return ListedValueBody(_by_day(since, rows))


def _by_day(since: date, rows: Iterable[TupleRow]) -> list[ListedDay]:
    """Return the sums of the days from `since` on that have a row. `rows` are ordered by day; rows
    before `since` are used for lines without a later row.
    """
    newest: dict[str, list[Any]] = {}
    days: dict[date, ListedDay] = {}
    for day, line, *figures in rows:
        newest[line] = figures
        if day >= since:
            days[day] = _sum(day, newest)
    return list(days.values())


def _sum(day: date, newest: dict[str, list[Any]]) -> ListedDay:
    cards, copies, listed, market = map(sum, zip(*newest.values(), strict=True))
    lines = [
        LineValue(line, usd(value))
        for line, (of_line, _, value, _) in sorted(newest.items())
        if of_line
    ]
    return ListedDay(day, cards, copies, usd(Decimal(listed)), usd(Decimal(market)), lines)
