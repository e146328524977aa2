"""Marks offers whose days are over as expired, with one entry of the activity feed each, seller by
seller.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.access.models import Seller
from cardsync.buying.offers.models import BuyingOffer
from cardsync.buying.offers.offer_reads import touch
from cardsync.database.session import Database

AT_ONCE: Final = 1_000
_ANY_OVER: Final = """
    SELECT EXISTS (SELECT FROM buying_offer
                    WHERE seller_id = :seller AND state = 'offered' AND expires_at <= :now)
"""


async def expire(database: Database, now: datetime) -> int:
    """Return how many offers have expired."""
    async with database.shared() as session:
        sellers = list(await session.scalars(select(Seller.id).order_by(Seller.id)))
    done = 0
    for seller_id in sellers:
        part = AT_ONCE
        while part == AT_ONCE:
            async with database.tenant(seller_id) as session:
                part = await _expire_some(session, seller_id, now)
            done += part
    return done


async def _expire_some(session: AsyncSession, seller_id: int, now: datetime) -> int:
    values = {"seller": seller_id, "now": now}
    if not await session.scalar(text(_ANY_OVER), values):
        return 0
    over = await session.scalars(
        select(BuyingOffer)
        .where(
            BuyingOffer.seller_id == seller_id,
            BuyingOffer.state == "offered",
            BuyingOffer.expires_at <= now,
        )
        .order_by(BuyingOffer.id)
        .limit(AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    offers = over.all()
    for offer in offers:
        offer.state, offer.secret_hash = "expired", None
        touch(offer, now)
        note_by(session, seller_id, "sweep", "offer.expired", f"offer {offer.id} expired", now)
    return len(offers)
