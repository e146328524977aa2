"""Writes the current price file, or finds why it is empty, in one database snapshot. The work runs
in a web process or in a process for heavy work (`web/heavy_work.py`).
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


async def reasons_of(
    heavy: HeavyWork, caller: Caller, now: datetime, known: list[str] | None
) -> list[str]:
    """Return the reasons why the file is empty. If they are not `known`, price the drafts."""
    if known is not None:
        return known
    reasons = await heavy.read(why_empty_now, caller, Work.LONG, now)
    return reasons.split(",") if reasons else []


async def why_empty_now(
    database: Database, caller: Caller, settings: Settings, now: datetime
) -> str | None:
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        return await price_updates.why_empty(session, caller, now)
