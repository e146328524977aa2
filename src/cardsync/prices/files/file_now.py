"""Writes the current price file or lists its changes, in one database snapshot. The work runs in a
web process or in a process for heavy work (`web/heavy_work.py`).
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.prices.files import price_updates
from cardsync.prices.files.changes_in_file import ChangesInFile, changes_in_file
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.made_files import Made, UnnamedFile, made, taken


class PriceFile(NamedTuple):
    """The CSV, with the other fields of `price_updates.Export`."""

    body: bytes | UnnamedFile
    empty_reason: str | None
    etag: str | None


async def fresh_file(heavy: HeavyWork, caller: Caller, now: datetime) -> PriceFile:
    """Return the current price file; the bytes of a large file stay on the disk."""
    body, empty_reason, etag = await heavy.read(file_now, caller, Work.FILE, now)
    return PriceFile(taken(body), empty_reason, etag)


async def file_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> tuple[bytes | Made, str | None, str | None]:
    async with database.tenant(caller.seller_id, snapshot=True, work=Work.FILE) as session:
        export = await price_updates.export(session, caller, now)
    return await asyncio.to_thread(made, export.body), export.empty_reason, export.etag


async def changes_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    most: int,
) -> tuple[ChangesInFile | None, str]:
    """Return the changes of the current price file, or None and the reason why the file is
    empty.
    """
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        empty_reason = await price_updates.why_empty(session, caller, now)
        if empty_reason is None:
            return await changes_in_file(session, caller, most, now), ""
    return None, empty_reason
