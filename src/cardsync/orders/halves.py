"""A large upload's rows written in two halves at once, in a transaction and on a connection each:
sorted rows in, how many rows were skipped and written out.

Both writers hold the upload's row in share mode from their first statement to their commit, and
write nothing once its `claims` or state is no longer what it was when they were sent. Whoever
takes up, settles or holds still an upload locks that row for itself, and so meets no writer of an
earlier attempt, however long it outlived its process.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.database.session import Database
from cardsync.orders.apply import Applied, apply
from cardsync.orders.rows import Rows
from cardsync.work.streams import OPEN
from cardsync.work.uploads import Upload

# Lines of an order belong together, and each needs its order: they are written by one.
KINDS = ("orders", "refunds", "shipping")


def halves(rows: Rows) -> list[Rows]:
    """Cut once: rows that lie together in the indexes stay together.

    Every order is named by one row alone.
    """
    middle = rows.frame.height // 2
    return [replace(rows, frame=part) for part in (rows.frame[:middle], rows.frame[middle:])]


async def write(database: Database, upload: Upload, rows: Rows, now: datetime) -> Applied | None:
    """Both halves are committed when this returns; None if another took the upload over, and what
    was committed will be found equal.
    """
    writers = [_write(database, upload, half, now) for half in halves(rows)]
    ended = await asyncio.gather(*writers, return_exceptions=True)
    skipped = written = 0
    for applied in ended:
        if isinstance(applied, BaseException):
            raise applied
        if applied is None:
            return None
        skipped = skipped + applied.skipped
        written = written + applied.written
    return Applied(skipped, written)


async def _write(database: Database, upload: Upload, half: Rows, now: datetime) -> Applied | None:
    async with database.tenant(upload.seller_id) as session:
        if not await _is_still_meant(session, upload):
            return None
        # Durable before the upload is settled: the server that settles it may be one that has
        # just recovered.
        return await apply(session, upload.seller_id, upload.kind, half, now)


async def _is_still_meant(session: AsyncSession, upload: Upload) -> bool:
    statement = select(Upload.id).where(
        Upload.seller_id == upload.seller_id,
        Upload.id == upload.id,
        Upload.claims == upload.claims,
        Upload.state.in_(OPEN),
    )
    return (
        await session.execute(statement.with_for_update(read=True))
    ).scalar_one_or_none() is not None
