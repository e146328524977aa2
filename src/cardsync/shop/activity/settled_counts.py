"""Counts the entries of a feed without reading all of them again.

The entries of a day ago do not change, until the oldest of them go to the object store. So each
process stores their number by seller, and counts only the entries after them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.read_sources import Source, rows_of

# No transaction takes so long: every entry up to one of this age has been committed.
_SETTLED: Final = timedelta(days=1)
# The number of entries after the stored ones from which they are stored again.
_MANY: Final = 1_000
# The maximum number of sellers whose counts a process stores. When it is reached, all are deleted.
_SELLERS: Final = 5_000
_AFTER: Final = """
    SELECT (SELECT min(id) FROM activity WHERE seller_id = :seller),
           (SELECT min(created_at) FROM activity WHERE seller_id = :seller),
           (SELECT count(*) FROM activity WHERE seller_id = :seller AND id > :last)
"""
_UNTIL: Final = """
    SELECT min(id), (SELECT min(created_at) FROM activity WHERE seller_id = :seller),
           max(id), count(*) FROM activity WHERE seller_id = :seller
       AND id <= (SELECT id FROM activity WHERE seller_id = :seller AND created_at < :settled
                   ORDER BY created_at DESC LIMIT 1)
"""


class _Kept(NamedTuple):
    """The number of entries from the first one to the last one, both by id. While the first id and
    the oldest time stay, no entry of these has gone.
    """

    first: int | None = None
    oldest: datetime | None = None
    last: int = 0
    number: int = 0


class SettledCounts:
    """The counts that this process stores."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}

    async def total(self, source: Source, caller: Caller, now: datetime) -> int:
        """Return the number of all entries of the caller's shop."""
        rows, seller_id = rows_of(source), caller.seller_id
        kept = self._kept.get(seller_id, _Kept())
        values = {"seller": seller_id, "last": kept.last}
        [(first, oldest, after)] = await rows(_AFTER, values)
        if kept.number and (first, oldest) != (kept.first, kept.oldest):
            kept = _Kept()
            [(*_, after)] = await rows(_AFTER, values | {"last": kept.last})
        if after > _MANY:
            [settled] = await rows(_UNTIL, {"seller": seller_id, "settled": now - _SETTLED})
            if len(self._kept) >= _SELLERS:
                self._kept.clear()
            if settled[-1]:
                self._kept[seller_id] = _Kept(*settled)
        return kept.number + int(after)
