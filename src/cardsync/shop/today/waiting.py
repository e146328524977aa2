"""Counts the work that waits for the people of a shop, for the navigation on each page.

One statement reads all counts, and each process stores a seller's counts for a few seconds, so that
opening several pages quickly reads the database only once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cardsync.platform.database.session import Database
from cardsync.sales.orders.pullable import PULLABLE, TO_SHIP_STATUSES
from cardsync.sales.orders.returned_copies import TO_RESTOCK
from cardsync.shop.waiting.all_waiting import COUNTS, values_of

KEPT_FOR: Final = timedelta(seconds=5)
# The maximum number of sellers whose counts a process stores. When it is reached, all are deleted.
_SELLERS: Final = 5_000
_COUNTS: Final = f"""
    SELECT (SELECT count(*) FROM orders WHERE orders.seller_id = :seller AND {PULLABLE}),
           (SELECT count(*) FROM pull_session
             WHERE seller_id = :seller AND state = 'open'),
           (SELECT last_seen_at FROM agent_seen WHERE seller_id = :seller)
"""


class WaitingCounts(NamedTuple):
    """The numbers of orders to pull, open pulls, refunded orders that are not back in stock, prices
    that need review, suggested prices, and uploads, plans and pricing runs that wait for the owner;
    and the time of the agent's last request.
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
    """The counts that this process stores, by seller."""

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
        """Return the seller's stored counts, even if they are old; zeros if none are stored."""
        kept = self._kept.get(seller_id)
        return kept[1] if kept is not None else WaitingCounts()

    def forget(self, seller_id: int) -> None:
        """Mark a seller's stored counts as old, for example after a form was sent, so that the next
        page reads them again.
        """
        if seller_id in self._kept:
            self._kept[seller_id] = (datetime.min.replace(tzinfo=UTC), self._kept[seller_id][1])

    async def _read(self, seller_id: int, now: datetime) -> WaitingCounts:
        async with self._database.readings.of(seller_id, self._seconds) as reading:
            to_ship = await reading.rows(TO_SHIP_STATUSES, {"seller": seller_id})
            values = {
                # `full` counts runs also in Review Mode; the page decides whether it shows the
                # number.
                **values_of(seller_id, now, full=True),
                "to_ship_statuses": [status for (status,) in to_ship],
            }
            [[(to_pull, pulls, seen_at)], [[returns]], found] = await reading.together(
                [_COUNTS, TO_RESTOCK, COUNTS], values, last=True
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
