"""Deletes stored objects of a seller who does not exist. Such objects remain if the process that
deletes or imports a seller is killed.

The deletion or import first sets a mark in a transaction of its own, and removes the mark when it
succeeds. Workers delete the objects of marked sellers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import procrastinate
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Seller
from cardsync.platform import clock
from cardsync.platform.database.locks import Lock, try_locked
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store
from cardsync.platform.work.jobs import WorkDue, jobs, mark_due, work_of

STREAM: Final = "left_objects"


async def mark(session: AsyncSession, seller_id: int) -> None:
    await mark_due(session, seller_id, STREAM)


async def hold(session: AsyncSession, seller_id: int) -> bool:
    """Take the lock that keeps `sweep` from deleting the seller's objects until this transaction
    ends. Return whether the lock was free.
    """
    return await try_locked(session, Lock.LEFT_OBJECTS, seller_id)


async def sweep(database: Database, store: Store, seller_id: int) -> None:
    """Delete the seller's objects and remove the mark, unless the seller exists or is being
    imported.
    """
    async with database.tenant(seller_id) as session:
        if not await hold(session, seller_id):
            return
        if await session.scalar(select(Seller.id).where(Seller.id == seller_id)) is None:
            await sweep_objects(store, seller_id)
        mine = (WorkDue.seller_id == seller_id) & (WorkDue.stream == STREAM)
        await session.execute(delete(WorkDue).where(mine))


async def sweep_objects(store: Store, seller_id: int) -> None:
    """Delete all stored objects of a seller."""
    for kind in ("syncs", "accepted", "debug", "receipts", "pictures", "old"):
        await store.sweep(f"{kind}/u{int(seller_id)}/", clock.now() + timedelta(days=1))


@jobs.task(name="accounts.sweep_left_objects", queue="housekeeping", pass_context=True)
async def sweep_left_objects(context: procrastinate.JobContext, seller_id: int) -> None:
    work = work_of(context)
    await sweep(work.database, work.store, seller_id)
