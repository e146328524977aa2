"""Accepts a collection's file: stores its bytes, then its row and a job that reads it, before the
request is answered. A file that is sent twice is one collection.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.buying.collections.collection_text import read_text
from cardsync.buying.collections.drain_collections import COLLECTIONS, drain_collections
from cardsync.buying.collections.models import Collection
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store
from cardsync.platform.work.jobs import enqueue, mark_due
from cardsync.platform.work.piece import origin
from cardsync.platform.work.streams import private_key
from cardsync.web import bodies

NAME_CHARACTERS: Final = 200


async def accept_collection(
    database: Database,
    caller: Caller,
    store: Store,
    name: str,
    data: bytes,
    now: datetime,
) -> Collection:
    """Store the file and return its collection. Raises InvalidCsv, TooManyRows."""
    plain = await asyncio.to_thread(_checked, data)
    sha256 = hashlib.sha256(plain).hexdigest()
    async with database.tenant(caller.seller_id) as session:
        earlier = await _with_hash(session, caller.seller_id, sha256)
    if earlier is not None:
        return earlier
    key = private_key(caller.seller_id, "csv")
    with store.spool() as (path, file):
        file.write(plain)
        file.flush()
        await store.write(key, path)
    async with database.tenant(caller.seller_id) as session:
        return await _made(session, caller, _title(name), sha256, key, now)


def _checked(data: bytes) -> bytes:
    plain = bodies.plain(data, limits.BODY_INFLATED_BYTES)
    rows = len(read_text(plain).rows)
    if rows > limits.UPLOAD_ROWS:
        raise errors.TooManyRows(f"the file has {rows:,} rows; at most {limits.UPLOAD_ROWS:,}")
    if not rows:
        raise errors.InvalidCsv("no cards found in the file")
    return plain


def _title(name: str) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return plain[:NAME_CHARACTERS] or "Collection"


async def _with_hash(session: AsyncSession, seller_id: int, sha256: str) -> Collection | None:
    mine = select(Collection).where(Collection.seller_id == seller_id)
    return await session.scalar(mine.where(Collection.sha256 == sha256))


async def _made(
    session: AsyncSession,
    caller: Caller,
    name: str,
    sha256: str,
    key: str,
    now: datetime,
) -> Collection:
    """Add and return the collection, or return the collection that another caller added for the
    same file in the meantime.
    """
    made = await session.scalar(
        insert(Collection)
        .values(
            seller_id=caller.seller_id,
            name=name,
            sha256=sha256,
            storage_key=key,
            created_by=caller.actor,
            received_at=now,
            **origin(),
        )
        .on_conflict_do_nothing(index_elements=["seller_id", "sha256"])
        .returning(Collection.id)
    )
    found = await _with_hash(session, caller.seller_id, sha256)
    if found is None:
        raise errors.NotFound("the collection was deleted while its file was sent again")
    if made is not None:
        said = f"collection {made} “{name}” uploaded"
        note(session, caller, "buying.collection_brought", said, now)
        await mark_due(session, caller.seller_id, COLLECTIONS)
        await enqueue(session, drain_collections, seller_id=caller.seller_id)
    return found
