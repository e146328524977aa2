"""Keeps the lease of a worker: renews it during long steps, checks it between them, or takes it for
one read.

A worker notices only at its next boundary that it lost its lease or that its run was cancelled;
between boundaries it writes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.state import (
    Lease,
    hold_lease,
    locked,
    own_state,
    release_lease,
    take_lease,
)
from cardsync.platform import clock
from cardsync.platform.concurrency import every
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.work.piece import CancelRequested, LeaseLost, Piece


@asynccontextmanager
async def renewing(database: Database, lease: Lease) -> AsyncIterator[None]:
    """Renew the lease while long steps run between two commits."""

    async def renew() -> None:
        # A lost lease is ignored here: the check before the next commit notices it.
        with suppress(LeaseLost, CancelRequested):
            await boundary(database, lease)

    async with every(lease.seconds / 3, renew, "lease_not_renewed"):
        yield


@dataclass(frozen=True)
class UnderLease:
    """The lease as a hold of `platform/work/runner.py`, for a piece of work that writes prices."""

    holder: str

    async def take(self, session: AsyncSession, piece: Piece, settings: Settings) -> Lease | None:
        return await take_lease(
            session,
            piece.seller_id,
            self.holder,
            clock.now(),
            settings.lease_seconds,
        )

    async def release(self, session: AsyncSession, hold: Lease) -> None:
        await own_state(session, hold)
        await release_lease(session, hold)

    def kept(self, database: Database, hold: Lease) -> AbstractAsyncContextManager[None]:
        return renewing(database, hold)


@asynccontextmanager
async def held_to_read(
    database: Database,
    seller_id: int,
    holder: str,
    seconds: float,
) -> AsyncIterator[None]:
    """Take the lease, so that no other worker changes prices during one read. If a worker has the
    lease, or a dead worker did not release it, the block runs without the lease, and the reader's
    snapshot must suffice.
    """
    async with database.tenant(seller_id) as session:
        is_free = (await locked(session, seller_id)).lease_token is None
        lease = (
            await take_lease(session, seller_id, holder, clock.now(), seconds) if is_free else None
        )
    if lease is None:
        yield
        return
    try:
        async with renewing(database, lease):
            yield
    finally:
        async with database.tenant(seller_id) as session:
            await release_lease(session, lease)


async def boundary(database: Database, lease: Lease) -> None:
    """Renew the lease at a boundary between two long steps that write nothing.

    Raises LeaseLost or CancelRequested.
    """
    async with database.tenant(lease.seller_id) as session:
        await hold_lease(session, lease, clock.now())
