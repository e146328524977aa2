"""A seller's price runs as they are read: a seller in, the newest runs out."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.limits import RUNS_SHOWN
from cardsync.pricing.models import PriceRun


async def newest_runs(session: AsyncSession, seller_id: int) -> list[PriceRun]:
    statement = select(PriceRun).where(PriceRun.seller_id == seller_id).order_by(PriceRun.id.desc())
    return list(await session.scalars(statement.limit(RUNS_SHOWN)))
