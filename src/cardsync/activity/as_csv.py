"""Streams the entries of the activity feed that a filter finds, as a CSV, with those that have
moved to the object store.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from cardsync.access.activity import Activity
from cardsync.access.caller import Caller
from cardsync.activity.feed import feed_before
from cardsync.activity.feed_filter import Wanted
from cardsync.activity.old_entries import older_entries
from cardsync.activity.shown import entry_body
from cardsync.database.session import Database
from cardsync.old_data.read_back import Old
from cardsync.storage import Store
from cardsync.web.as_csv import PART, streamed

COLUMNS: Final = (
    "id", "created_at", "actor", "action", "risk", "outcome", "summary", "request_id", "before",
    "after", "undone_by",
)  # fmt: skip


async def activity_as_csv(
    database: Database,
    caller: Caller,
    store: Store,
    wanted: Wanted,
    seconds: float,
) -> AsyncIterator[bytes]:
    """Return the entries that a filter finds, newest first."""

    old = Old(database, store, caller.seller_id)

    async def read(last: Activity | None) -> list[Activity]:
        before = last.id if last else None
        async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
            page = await feed_before(session, caller, wanted, before, PART)
        return await older_entries(old, wanted, page, before, PART)

    turn = database.file_turn(caller.seller_id)
    return await streamed(turn, COLUMNS, read, partial(_line, caller), PART)


def _line(caller: Caller, row: Activity) -> Sequence[Any]:
    # The file keeps the actors by their ids alone.
    body = entry_body(caller, row, {})
    cells = {name: getattr(body, name) for name in COLUMNS}
    return [_text(cells[name]) for name in COLUMNS]


def _text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
