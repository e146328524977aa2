"""Makes and drops the monthly partitions of the price history. A partition is made before an
observation is moved into it, and dropped when its rows have moved to the object store.

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
    """Return the start of the oldest month that the retention keeps."""
    return HISTORY.kept_since(work.settings, clock.now())


async def prepare(work: Work, seller_id: int, observed_at: datetime) -> datetime:
    """Create the partition of the month of `observed_at` if it is missing; return `kept_since`."""
    since = kept_since(work)
    if observed_at >= since:
        async with work.database.tenant(seller_id) as session:
            await session.execute(
                text("SELECT ensure_price_observation_partition(:month)"),
                {"month": month_of(observed_at).date()},
            )
    return max(since, await _oldest(work))


async def _oldest(work: Work) -> datetime:
    """Return the first month that has a partition. Older observations were dropped on arrival, even
    if today's retention would store them.
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
    """Drop the months beyond the retention whose rows have all moved; return their number."""
    async with work.database.shared() as session:
        dropped = await session.scalar(
            text("SELECT drop_price_observation_partitions(:month)"),
            {"month": kept_since(work).date()},
        )
    return int(dropped or 0)
