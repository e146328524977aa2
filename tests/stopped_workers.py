"""Workers held up between two slabs: a seller, the work and the rows to lock in; a worker that
waits for them out, to be gone on with or killed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from sqlalchemy import text

from builders import Seller
from world import state_of

WAITING = """
    SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE NOT l.granted AND a.datname = current_database()
"""
if "CARDSYNC_TEST_CITUS_URL" in os.environ:
    WAITING = "SELECT DISTINCT waiting_gpid FROM citus_lock_waits"


@asynccontextmanager
async def stopped(
    seller: Seller, work: Coroutine[Any, Any, bool], firsts: Sequence[int], done: int
) -> AsyncIterator[asyncio.Task[bool]]:
    """A worker that has committed `done` rows and can't commit another slab: the cards `firsts`,
    which come next, are locked by us.
    """
    database = seller.service.database
    async with database.sessions() as blocker, blocker.begin():
        await blocker.execute(text(f"SET LOCAL app.seller_id = '{seller.id}'"))
        await blocker.execute(
            text(
                "SELECT id FROM card WHERE seller_id = :seller"
                " AND marketplace_id = ANY(:firsts) FOR UPDATE"
            ),
            {"seller": seller.id, "firsts": list(firsts)},
        )
        worker = asyncio.create_task(work)
        async with asyncio.timeout(60):
            while (await state_of(seller))["work_done"] != done or not await seller.service.sql(
                seller.id, WAITING
            ):
                assert not worker.done(), worker
        yield worker
    with suppress(asyncio.CancelledError):
        await worker


async def killed(worker: asyncio.Task[bool]) -> None:
    """Nothing of it is left but what it committed; its lease lasts on."""
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
