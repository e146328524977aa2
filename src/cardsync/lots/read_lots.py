"""Reads lots, and what the copies of a card cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.lots.models import CardCost, Lot
from cardsync.lots.shown import CostOfCard, LotBody, LotPage, lot_body
from cardsync.money import usd

EVERY: Final = 1_000_000


async def lots(
    session: AsyncSession,
    caller: Caller,
    marketplace_id: int | None,
    after: int | None,
    limit: int,
) -> LotPage:
    """Return lots, the newest first, of one card or of all. Raises OwnerRequired."""
    caller.must_see_revenue()
    query = select(Lot).where(Lot.seller_id == caller.seller_id)
    if marketplace_id is not None:
        query = query.where(Lot.marketplace_id == marketplace_id)
    if after is not None:
        query = query.where(Lot.id < after)
    found = list(await session.scalars(query.order_by(Lot.id.desc()).limit(limit + 1)))
    shown = [lot_body(lot) for lot in found[:limit]]
    return LotPage(shown, shown[-1].id if len(found) > limit else None)


async def cost_of(session: AsyncSession, caller: Caller, marketplace_id: int) -> CostOfCard:
    """Return what the copies of a card cost that are left. Raises OwnerRequired."""
    caller.must_see_revenue()
    row = await session.get(CardCost, (caller.seller_id, marketplace_id))
    if row is None:
        return CostOfCard(0, 0, None, None)
    return CostOfCard(row.copies, row.known, usd(row.cost), row.oldest)


async def all_lots(session: AsyncSession, caller: Caller) -> Sequence[LotBody]:
    """Return every lot, for a file. Raises OwnerRequired."""
    return (await lots(session, caller, None, None, EVERY)).lots
