"""Counts the work that waits for the people of a shop, for the frame of every page.

One message reads all of it, and each process keeps the counts of a seller for a few seconds: a
person who opens several pages quickly causes one read of the database.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cardsync.platform.database.session import Database
from cardsync.sales.orders.pullable import PULLABLE, TO_SHIP_STATUSES
from cardsync.sales.orders.returned_copies import NUMBERS
from cardsync.shop.waiting.all_waiting import COUNTS, values_of

KEPT_FOR: Final = timedelta(seconds=5)
# The most sellers that a process remembers; beyond that number, it forgets all of them.
_SELLERS: Final = 5_000
_COUNTS: Final = f"""
    SELECT (SELECT count(*) FROM orders WHERE orders.seller_id = :seller AND {PULLABLE}),
           (SELECT count(*) FROM pull_session
             WHERE seller_id = :seller AND state = 'open'),
           (SELECT last_seen_at FROM agent_seen WHERE seller_id = :seller)
"""


class WaitingCounts(NamedTuple):
    """Orders to pull, open pulls, refunded orders that are not back in stock, prices that need
    review and suggested prices; uploads and plans, and pricing runs, that the owner must decide;
    and when the agent called last.
    """

    to_pull: int = 0
    pulls: int = 0
    returns: int = 0
    reviews: int = 0
    suggestions: int = 0
    decisions: int = 0
    runs: int = 0
    agent_seen_at: datetime | None = None


class KeptCounts:
    """The counts of the sellers whose pages this process showed last."""

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._kept: dict[int, tuple[datetime, WaitingCounts]] = {}

    async def of(self, seller_id: int, now: datetime) -> WaitingCounts:
        kept = self._kept.get(seller_id)
        if kept is not None and kept[0] > now:
            return kept[1]
        counts = await self._read(seller_id, now)
        if len(self._kept) >= _SELLERS:
            self._kept.clear()
        self._kept[seller_id] = (now + KEPT_FOR, counts)
        return counts

    def last(self, seller_id: int) -> WaitingCounts:
        """Return the counts of the seller's last page, without a read; zeros if the seller has
        opened no page yet.
        """
        kept = self._kept.get(seller_id)
        return kept[1] if kept is not None else WaitingCounts()

    def forget(self, seller_id: int) -> None:
        """Drop a seller's cached counts after a form has changed something, so that the next page
        reads them again.
        """
        if seller_id in self._kept:
            self._kept[seller_id] = (datetime.min.replace(tzinfo=UTC), self._kept[seller_id][1])

    async def _read(self, seller_id: int, now: datetime) -> WaitingCounts:
        async with self._database.readings.of(seller_id, self._seconds) as reading:
            to_ship = await reading.rows(TO_SHIP_STATUSES, {"seller": seller_id})
            values = {
                # The code that shows the count of runs decides whether Review Mode hides it.
                **values_of(seller_id, now, full=True),
                "to_ship_statuses": [status for (status,) in to_ship],
            }
            [[(to_pull, pulls, seen_at)], [[returns, *_]], found] = await reading.together(
                [_COUNTS, NUMBERS, COUNTS], values, last=True
            )
        waits: dict[str, int] = dict(found)
        return WaitingCounts(
            to_pull,
            pulls,
            returns,
            waits["price"],
            waits["suggestion"],
            waits["upload"] + waits["plan"],
            waits["run"],
            seen_at,
        )
