"""Serves the file of a prepared rollback: the marketplace's pricing CSV with the prices to restore.

The file has the cards in their present state, without cards sold since. The SHA-256 of every served
file is stored, since an agent identifies an imported file by it.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.exported import IMPORTABLE
from cardsync.agents.seller_state.state import locked
from cardsync.platform.database.copy import read_bytes
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.prices.files.content import csv_of, export_sql
from cardsync.prices.models import PriceRollback
from cardsync.prices.rollback.rollbacks import end, open_one
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.made_files import Made, UnnamedFile, made, sha256_of, taken

_CARDS = """
    card c JOIN price_rollback_card r ON r.seller_id = {seller_id} AND r.rollback_id = {rollback}
      AND r.card_id = c.id
"""


async def serve(
    database: Database, heavy: HeavyWork, caller: Caller, now: datetime
) -> bytes | UnnamedFile | None:
    """Return the rollback's file, or None if the rollback is no longer served."""
    found = await heavy.read(rollback_now, caller, Work.FILE, now)
    if found is None:
        return None
    rollback_id, empty, file = found
    body = taken(file)
    async with database.tenant(caller.seller_id) as session:
        noted = await _note_served(session, caller.seller_id, rollback_id, empty, body, now)
    return body if noted else None


async def rollback_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> tuple[int, bool, bytes | Made] | None:
    """Return the id of the rollback that is ready or served, whether its file is empty, and the
    file.
    """
    async with database.tenant(caller.seller_id, snapshot=True, work=Work.FILE) as session:
        rollback = await open_one(session, caller.seller_id)
        if rollback is None or not _is_served(rollback, now):
            return None
        rows = await read_bytes(session, _sql(caller.seller_id, rollback.id))
    return rollback.id, not rows, await asyncio.to_thread(lambda: made(csv_of(rows)))


def _is_served(rollback: PriceRollback, now: datetime) -> bool:
    return rollback.state in ("ready", "served") and rollback.expires_at > now


def _sql(seller_id: int, rollback_id: int) -> str:
    cards = _CARDS.format(seller_id=int(seller_id), rollback=int(rollback_id))
    return export_sql(
        cards,
        f"c.seller_id = {int(seller_id)} AND {IMPORTABLE.format(seller_id=int(seller_id))}",
        "r.price",
    )


async def _note_served(
    session: AsyncSession,
    seller_id: int,
    rollback_id: int,
    empty: bool,
    body: bytes | UnnamedFile,
    now: datetime,
) -> bool:
    """Record the served file; return False if the rollback was cancelled meanwhile, or if all of
    its cards are gone. If all cards are gone, the rollback ends, as nothing is left to restore.
    """
    state = await locked(session, seller_id)
    rollback = await open_one(session, seller_id)
    if rollback is None or rollback.id != rollback_id or not _is_served(rollback, now):
        return False
    if empty:
        await end(session, state, rollback, "applied", now)
        return False
    rollback.state = "served"
    rollback.served_at = rollback.served_at or now
    digest = sha256_of(body)
    if digest not in rollback.files:
        rollback.files = [*rollback.files, digest]
    return True
