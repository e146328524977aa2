"""Writes a seller's lists, at most a hundred, as a CSV."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from cardsync.access.caller import Caller
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.settings import Settings
from cardsync.stock.lists.seller_lists import all_lists
from cardsync.web.csv_parts import Part, lines_of, streamed
from cardsync.web.heavy_work import HeavyWork

_TABLE: Final = CsvTable(
    ("id", "name", "slug", "position", "card_count", "active_count", "gone_count")
)


async def lists_as_csv(heavy: HeavyWork, caller: Caller) -> AsyncIterator[bytes]:
    return await streamed(heavy, caller, _TABLE, part_of_lists)


async def part_of_lists(
    database: Database, caller: Caller, settings: Settings, now: datetime, after: int
) -> Part:
    """Return all lists in one part, because counting their cards takes most of the time."""
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        rows = await all_lists(reading, caller, {})
    return Part(await lines_of(_TABLE, rows), None)
