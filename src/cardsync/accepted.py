"""What both streams of accepted uploads, `inventory` and `orders`, share: where the bytes lie, which upload is next, the mark for the
sweep, and when a failure is a dependency's and not the upload's own.
"""

from __future__ import annotations

import uuid
from datetime import datetime

import obstore
import psycopg
from psycopg_pool import PoolTimeout
from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.inventory.models import Upload
from cardsync.jobs import WorkDue

# A file that makes the worker fail is given up after so many failures, one that kills it after so many starts before its verdict.
MAX_FAILURES = 3
MAX_STARTS = 20
OPEN = ("queued", "processing")


def private_key(seller_id: int, suffix: str) -> str:
    """A new name for accepted bytes, which no URL reaches."""
    return f"accepted/u{seller_id}/{uuid.uuid4()}.{suffix}"


async def oldest_open(session: AsyncSession, seller_id: int, stream: str) -> Upload | None:
    statement = (
        select(Upload)
        .where(Upload.seller_id == seller_id, Upload.stream == stream, Upload.state.in_(OPEN))
        .order_by(Upload.id)
        .limit(1)
    )
    return (await session.execute(statement.execution_options(populate_existing=True))).scalar_one_or_none()


async def due_since(session: AsyncSession, seller_id: int, stream: str) -> datetime | None:
    """The stream's mark; read before looking for work, so that `forget` takes no newer one away."""
    return await session.scalar(select(WorkDue.due_at).where(WorkDue.seller_id == seller_id, WorkDue.stream == stream))


async def forget(session: AsyncSession, seller_id: int, stream: str, due_at: datetime | None) -> None:
    """Only the mark that was read: an upload accepted since has set a newer one."""
    await session.execute(
        delete(WorkDue).where(WorkDue.seller_id == seller_id, WorkDue.stream == stream, WorkDue.due_at == due_at)
    )


# SQLSTATE classes that speak of the server's state, not of what was asked: connection, shutdown, resources, rollback, lock.
_AWAY_CLASSES = ("08", "57", "53", "40", "55")


def is_away(error: BaseException) -> bool:
    """Did a dependency fail, rather than the work? Pure."""
    if isinstance(error, DBAPIError):
        return is_away(error.orig) if error.orig is not None else True
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return error.sqlstate is None or error.sqlstate.startswith(_AWAY_CLASSES)
    return isinstance(error, OSError | PoolExhausted | PoolTimeout | obstore.exceptions.BaseError)
