"""Makes the price file of a moment, or says what it changes: each in a snapshot of its own, for a web
process or for a process beside it (`web/heavy_work.py`).
"""

from __future__ import annotations

from datetime import datetime

from cardsync.access.caller import Caller
from cardsync.database.seller_slots import Work
from cardsync.database.session import Database
from cardsync.pricing.files import price_updates
from cardsync.pricing.files.changes_in_file import ChangesInFile, changes_in_file
from cardsync.pricing.files.price_updates import Export
from cardsync.settings import Settings


async def file_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> Export:
    async with database.tenant(caller.seller_id, snapshot=True, work=Work.FILE) as session:
        return await price_updates.export(session, caller, now)


async def changes_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    most: int,
) -> tuple[ChangesInFile | None, str]:
    """Return what the file changes, with so many of the largest changes; for an empty one nothing,
    and why it is empty.
    """
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        export = await price_updates.export(session, caller, now)
        if export.empty_reason is None:
            return await changes_in_file(session, caller, most, now), ""
    return None, export.empty_reason
