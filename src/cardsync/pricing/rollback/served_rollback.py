"""Serves the rollback that is ready: the marketplace's pricing CSV with the prices to go back to.

The file is made of the cards as they are now, those sold since left out; the SHA-256 of every file
served is kept, since an agent names by it what it imported.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.cards.exported import IMPORTABLE
from cardsync.database.copy import copy_bytes
from cardsync.database.session import Database
from cardsync.pricing.files.content import csv_of, export_sql
from cardsync.pricing.models import PriceRollback
from cardsync.pricing.rollback.rollbacks import end, open_one
from cardsync.seller_state.state import locked

_CARDS = """
    card c JOIN price_rollback_card r ON r.seller_id = {seller_id} AND r.rollback_id = {rollback} AND r.card_id = c.id
"""


async def serve(database: Database, caller: Caller, now: datetime) -> bytes | None:
    """The rollback's file; None when there is none to serve any more."""
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        rollback = await open_one(session, caller.seller_id)
        if rollback is None or not _is_served(rollback, now):
            return None
        rows = await copy_bytes(session, _sql(caller.seller_id, rollback.id))
    body = csv_of(rows)
    async with database.tenant(caller.seller_id) as session:
        return (
            body
            if await _note_served(session, caller.seller_id, rollback.id, rows, body, now)
            else None
        )


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
    rows: bytes,
    body: bytes,
    now: datetime,
) -> bool:
    """False if it was cancelled meanwhile, or if all of its cards are gone: there is nothing left
    to bring back.
    """
    state = await locked(session, seller_id)
    rollback = await open_one(session, seller_id)
    if rollback is None or rollback.id != rollback_id or not _is_served(rollback, now):
        return False
    if not rows:
        await end(session, state, rollback, "applied", now)
        return False
    rollback.state = "served"
    rollback.served_at = rollback.served_at or now
    digest = hashlib.sha256(body).hexdigest()
    if digest not in rollback.files:
        rollback.files = [*rollback.files, digest]
    return True
