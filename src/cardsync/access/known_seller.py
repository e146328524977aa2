"""Finds the seller that an operator's command names, or refuses the id in one sentence."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Seller
from cardsync.platform.errors import CommandError


async def known_seller(session: AsyncSession, seller_id: int) -> Seller:
    """Raises CommandError."""
    seller = await session.get(Seller, seller_id)
    if seller is None:
        raise CommandError(f"there is no seller {seller_id}")
    return seller
