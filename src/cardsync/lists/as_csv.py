"""Writes a seller's lists as a CSV. There are at most a hundred."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from cardsync.access.caller import Caller
from cardsync.database.session import Database
from cardsync.lists.seller_lists import all_lists
from cardsync.lists.shown import CardListBody
from cardsync.web.as_csv import streamed

COLUMNS: Final = ("id", "name", "slug", "position", "card_count", "active_count", "gone_count")


async def lists_as_csv(database: Database, caller: Caller, seconds: float) -> AsyncIterator[bytes]:
    async def read(last: CardListBody | None) -> list[CardListBody]:
        async with database.readings.of(caller.seller_id, seconds) as reading:
            return [] if last else await all_lists(reading, caller, {})

    return await streamed(database.file_turn(caller.seller_id), COLUMNS, read, _line)


def _line(row: CardListBody) -> Sequence[Any]:
    return [getattr(row, name) for name in COLUMNS]
