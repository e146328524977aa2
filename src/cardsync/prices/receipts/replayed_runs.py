"""Prices runs again from their stored receipts, and counts the cards whose price differs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from sqlalchemy import select

from cardsync.access.each_seller import all_sellers, known_seller
from cardsync.platform import errors
from cardsync.platform.database.session import Database
from cardsync.platform.storage import ObjectMissing, Store
from cardsync.prices.models import PriceRun
from cardsync.prices.receipts import parquet_file


async def replay_run(database: Database, store: Store, run_id: int) -> tuple[int, int]:
    """Return the number of a run's cards, and how many of them get a different price. Raises
    CommandError.
    """
    data = await _receipts_of(database, store, run_id)
    return await asyncio.to_thread(_counted, data)


async def replay_runs(
    database: Database,
    store: Store,
    seller_id: int,
) -> AsyncIterator[dict[str, object]]:
    """Price the runs again one at a time, oldest first. One file is in memory at a time."""
    key = PriceRun.summary["receipts"].astext
    async with database.tenant(seller_id) as session:
        await known_seller(session, seller_id)
        statement = select(PriceRun.id, key).where(
            PriceRun.seller_id == seller_id, key.is_not(None)
        )
        found = (await session.execute(statement.order_by(PriceRun.id))).all()
    for run_id, kept_as in found:
        try:
            data = await store.read(kept_as)
        except ObjectMissing:
            yield {
                "run_id": run_id,
                "kept": False,
                "cards": 0,
                "differ": 0,
            }
            continue
        cards, differ = await asyncio.to_thread(_counted, data)
        yield {
            "run_id": run_id,
            "kept": True,
            "cards": cards,
            "differ": differ,
        }


def _counted(data: bytes) -> tuple[int, int]:
    return parquet_file.unpack(data)[0].height, parquet_file.replay(data)


async def _receipts_of(database: Database, store: Store, run_id: int) -> bytes:
    """Find the seller of the run, and read the run's receipts. The run's row is visible only in
    that seller's scope.

    Raises CommandError.
    """
    for seller_id in await all_sellers(database):
        async with database.tenant(seller_id) as session:
            run = await session.scalar(
                select(PriceRun).where(PriceRun.seller_id == seller_id, PriceRun.id == run_id)
            )
        if run is None:
            continue
        key = run.summary.get("receipts")
        if key is None:
            raise errors.CommandError(
                f"pricing run {run_id} has no receipts: no sync made it, or attribution logging"
                " was off"
            )
        try:
            return await store.read(key)
        except ObjectMissing:
            raise errors.CommandError(
                f"the receipts of pricing run {run_id} are no longer in the object store"
            ) from None
    raise errors.CommandError(f"there is no pricing run {run_id}")
