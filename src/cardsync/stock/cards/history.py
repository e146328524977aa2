"""Creates and drops the monthly partitions of the price history. A partition is created before the
first observation of its month is written, and dropped when its rows are in the object store.

A card's newest observation is in the card's row; it moves to `price_observation` when a newer one
replaces it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import text

from cardsync.platform import clock
from cardsync.platform.old_data.old_kinds import HISTORY, month_of
from cardsync.platform.work.jobs import Work


def kept_since(work: Work) -> datetime:
    """Return the start of the oldest month within the retention time."""
    return HISTORY.kept_since(work.settings, clock.now())


async def prepare(work: Work, seller_id: int, observed_at: datetime) -> datetime:
    """Create the partition for the month of `observed_at` if it is missing. Return the time before
    which observations are dropped.
    """
    since = kept_since(work)
    if observed_at >= since:
        async with work.database.tenant(seller_id) as session:
            await session.execute(
                text("SELECT ensure_price_observation_partition(:month)"),
                {"month": month_of(observed_at).date()},
            )
    return max(since, await _oldest(work))


async def _oldest(work: Work) -> datetime:
    """Return the first month that has a partition. Older observations can't be stored, even if the
    retention time has been made longer since.
    """
    async with work.database.shared() as session:
        name = await session.scalar(
            text(
                "SELECT min(c.relname) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                " WHERE i.inhparent = 'price_observation'::regclass"
            )
        )
    return (
        datetime.strptime(f"{name[-6:]}+0000", "%Y%m%z")
        if name
        else datetime.max.replace(tzinfo=UTC)
    )


async def drop_old(work: Work) -> int:
    """Drop the partitions older than the retention time whose rows are all in the object store.
    Return the number of dropped partitions.
    """
    async with work.database.shared() as session:
        dropped = await session.scalar(
            text("SELECT drop_price_observation_partitions(:month)"),
            {"month": kept_since(work).date()},
        )
    return int(dropped or 0)
