"""Streams a seller's pricing runs as a CSV."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from cardsync.access.caller import Caller
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import CsvTable
from cardsync.platform.settings import Settings
from cardsync.prices.runs.run_reads import runs_before
from cardsync.prices.runs.schemas import run_body
from cardsync.web.csv_parts import PART, Part, part_of, streamed
from cardsync.web.heavy_work import HeavyWork

_TABLE: Final = CsvTable(
    ("id", "trigger", "state", "upload_id", "started_at", "finished_at", "cards", "priced",
     "changed", "held", "blocked"),
    blocked=lambda run: sum(run.blocked.values()),
)  # fmt: skip


async def runs_as_csv(heavy: HeavyWork, caller: Caller) -> AsyncIterator[bytes]:
    """Return all runs, newest first."""
    return await streamed(heavy, caller, _TABLE, part_of_runs)


async def part_of_runs(
    database: Database, caller: Caller, settings: Settings, now: datetime, after: int
) -> Part:
    """Return the part of the CSV with the runs before the run `after`."""
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        page = await runs_before(session, caller, after or None, PART)
    return await part_of(_TABLE, page, run_body)
