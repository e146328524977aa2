"""Streams the entries of the activity feed that a filter finds, as a CSV."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from cardsync.access.activity import Activity
from cardsync.access.caller import Caller
from cardsync.activity.feed import feed_before
from cardsync.activity.feed_filter import Wanted
from cardsync.activity.shown import entry_body
from cardsync.database.session import Database
from cardsync.web.as_csv import PART, streamed

COLUMNS: Final = (
    "id", "created_at", "actor", "action", "risk", "outcome", "summary", "request_id", "before",
    "after", "undone_by",
)  # fmt: skip


async def activity_as_csv(
    database: Database,
    caller: Caller,
    wanted: Wanted,
    seconds: float,
) -> AsyncIterator[bytes]:
    """Return the entries that a filter finds, newest first."""

    async def read(last: Activity | None) -> list[Activity]:
        async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
            return await feed_before(session, caller, wanted, last.id if last else None, PART)

    turn = database.file_turn(caller.seller_id)
    return await streamed(turn, COLUMNS, read, partial(_line, caller))


def _line(caller: Caller, row: Activity) -> Sequence[Any]:
    # The file keeps the actors by their ids alone.
    body = entry_body(caller, row, {})
    cells = {name: getattr(body, name) for name in COLUMNS}
    return [_text(cells[name]) for name in COLUMNS]


def _text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
