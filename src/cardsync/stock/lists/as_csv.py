"""Writes a seller's lists as a CSV. There are at most a hundred."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Final

from cardsync.access.caller import Caller
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.stock.lists.schemas import CardListBody
from cardsync.stock.lists.seller_lists import all_lists
from cardsync.web.csv_parts import Part, lines_of, streamed
from cardsync.web.heavy_work import HeavyWork

COLUMNS: Final = ("id", "name", "slug", "position", "card_count", "active_count", "gone_count")


async def lists_as_csv(heavy: HeavyWork, caller: Caller) -> AsyncIterator[bytes]:
    return await streamed(heavy, caller, COLUMNS, part_of_lists)


async def part_of_lists(
    database: Database, caller: Caller, settings: Settings, now: datetime, after: int
) -> Part:
    """Return all lists: counting their cards is what takes long."""
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        rows = await all_lists(reading, caller, {})
    return Part(await lines_of(rows, _line), None)


def _line(row: CardListBody) -> Sequence[Any]:
    return [getattr(row, name) for name in COLUMNS]
