"""A lease while it is held: kept alive beside long steps, and asked after between them. A lease in, nothing out.

A worker whose lease was taken over, or whose run was cancelled, finds out at its next boundary; until then it writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from cardsync import clock
from cardsync.background import beside
from cardsync.db import Database
from cardsync.sync.state import CancelRequested, Lease, LeaseLost, hold_lease

log = structlog.get_logger(__name__)


@asynccontextmanager
async def renewing(database: Database, lease: Lease) -> AsyncIterator[None]:
    """Keep the lease alive while long steps run between slabs."""

    async def renew() -> None:
        while True:
            await asyncio.sleep(lease.seconds / 3)
            try:
                await boundary(database, lease)
            except (LeaseLost, CancelRequested):
                return  # the next slab finds out by itself
            except Exception as e:
                log.warning("lease_not_renewed", kind=type(e).__name__)

    async with beside(renew()):
        yield


async def boundary(database: Database, lease: Lease) -> None:
    """A boundary between two long steps that write nothing: the lease renewed. Raises LeaseLost or CancelRequested."""
    async with database.tenant(lease.seller_id) as session:
        await hold_lease(session, lease, clock.now())
