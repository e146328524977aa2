"""Streams the entries of the activity feed that a filter selects as a CSV, including entries that
have moved to the object store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from cardsync.access.caller import Caller
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.old_data.read_back import Old
from cardsync.platform.settings import Settings
from cardsync.platform.storage import open_store
from cardsync.shop.activity.feed import feed_before
from cardsync.shop.activity.feed_filter import FeedFilter
from cardsync.shop.activity.old_entries import older_entries
from cardsync.shop.activity.schemas import entry_body
from cardsync.web.csv_parts import PART, Part, part_of, streamed
from cardsync.web.heavy_work import HeavyWork

_TABLE: Final = CsvTable(
    ("id", "created_at", "actor", "action", "risk", "outcome", "summary", "request_id", "before",
     "after", "undone_by")
)  # fmt: skip


async def activity_as_csv(
    heavy: HeavyWork, caller: Caller, wanted: FeedFilter
) -> AsyncIterator[bytes]:
    """Return the CSV file, newest entries first, in parts."""
    return await streamed(heavy, caller, _TABLE, part_of_activity, wanted)


async def part_of_activity(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    after: int,
    wanted: FeedFilter,
) -> Part:
    """Return the part of the file with the entries before the id `after`; 0 means the newest
    part.
    """
    before = after or None
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        page = await feed_before(session, caller, wanted, before, PART)
    old = Old(database, open_store(settings), caller.seller_id)
    page = await older_entries(old, wanted, page, before, PART)
    # The file has the actors' ids, but not their names.
    return await part_of(_TABLE, page, lambda row: entry_body(caller, row, {}))
