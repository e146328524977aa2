"""A seller's price runs as they are read: a seller in, the newest runs out."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.limits import RUNS_SHOWN
from cardsync.pricing.models import PriceRun


async def newest_runs(session: AsyncSession, caller: Caller) -> list[PriceRun]:
    of_seller = select(PriceRun).where(PriceRun.seller_id == caller.seller_id)
    statement = of_seller.order_by(PriceRun.id.desc()).limit(RUNS_SHOWN)
    return list(await session.scalars(statement))
