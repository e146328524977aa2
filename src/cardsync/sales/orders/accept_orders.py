"""Accepts an order-data upload: stores the body in the object store and a row in `upload`, and
queues a job.

Before the response (202), the request checks whether the rows can be applied. Later, the worker
writes the rows to the database (`ingest.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import clock, limits
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store, spool_body
from cardsync.platform.work.jobs import ORDERS, enqueue, mark_due
from cardsync.platform.work.models import Upload
from cardsync.platform.work.streams import private_key
from cardsync.sales.orders import rows
from cardsync.sales.orders.ingest import drain_orders
from cardsync.web import bodies
from cardsync.web.fair_turns import FairTurns

# Bodies are decompressed one at a time, so that concurrent uploads need no more memory than one.
_checking = FairTurns(1)


@dataclass(frozen=True)
class Acceptance:
    count: int
    upload_id: int


async def accept(
    database: Database,
    caller: Caller,
    store: Store,
    kind: str,
    body: AsyncIterable[bytes],
) -> Acceptance:
    with store.spool() as (path, file):
        await spool_body(file, body, limits.BODY_WIRE_BYTES, limits.BODY_WIRE_BYTES)
        file.flush()
        async with _checking.turn():
            count = await asyncio.to_thread(_check, path)
        key = private_key(caller.seller_id, "json")
        await store.write(key, path)
    async with database.tenant(caller.seller_id) as session:
        return Acceptance(count, await _accept(session, caller, kind, key, count))


def _check(path: Path) -> int:
    return rows.check(bodies.plain(path.read_bytes(), limits.BODY_INFLATED_BYTES))


async def _accept(
    session: AsyncSession,
    caller: Caller,
    kind: str,
    key: str,
    count: int,
) -> int:
    now, seller_id = clock.now(), caller.seller_id
    # The seller's row is locked first, so that ids commit in the order of acceptance.
    sync_state.order_data_came(await sync_state.locked(session, seller_id), now)
    upload = Upload(
        seller_id=seller_id,
        stream=ORDERS,
        kind=kind,
        storage_key=key,
        exported_at=now,
        received_at=now,
        report={},
    )
    session.add(upload)
    await session.flush()
    note(session, caller, "upload.accepted", f"upload {upload.id}: {kind}, rows: {count}", now)
    await mark_due(session, seller_id, ORDERS)
    await enqueue(session, drain_orders, seller_id=seller_id)
    return upload.id
