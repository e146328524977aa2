"""Streams a seller's pricing runs as a CSV."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from cardsync.access.caller import Caller
from cardsync.database.session import Database
from cardsync.pricing.models import PriceRun
from cardsync.pricing.runs.run_reads import runs_before
from cardsync.pricing.runs.shown import run_body
from cardsync.settings import Settings
from cardsync.web.as_csv import PART, streamed

COLUMNS: Final = (
    "id", "trigger", "state", "upload_id", "started_at", "finished_at", "cards", "priced",
    "changed", "held", "blocked",
)  # fmt: skip


async def runs_as_csv(
    database: Database,
    caller: Caller,
    settings: Settings,
) -> AsyncIterator[bytes]:
    """Return all runs, newest first."""
    seconds = settings.read_seconds

    async def read(last: PriceRun | None) -> list[PriceRun]:
        async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
            return await runs_before(session, caller, last.id if last else None, PART)

    return await streamed(database.file_turn(caller.seller_id), COLUMNS, read, _line)


def _line(row: PriceRun) -> Sequence[Any]:
    body = run_body(row)
    cells = {name: getattr(body, name) for name in COLUMNS}
    cells["blocked"] = sum(body.blocked.values())
    return [cells[name] for name in COLUMNS]
