"""Marks offers as expired: offers whose days are over, and drafts from carts of the public buylist
that nobody has changed for long. Each expired offer gets an entry of the activity feed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import or_, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.access.each_seller import AT_ONCE, in_parts
from cardsync.buying.limits import BUYLIST_DRAFT_DAYS
from cardsync.buying.offers.models import BuyingOffer
from cardsync.buying.offers.offer_reads import touch
from cardsync.platform.database.session import Database

_ANY_OVER: Final = """
    SELECT EXISTS (SELECT FROM buying_offer
                    WHERE seller_id = :seller
                      AND (state = 'offered' AND expires_at <= :now
                           OR state = 'draft' AND source = 'buylist' AND updated_at <= :old))
"""


async def expire(database: Database, now: datetime) -> int:
    """Expire the offers of all sellers, and return the number of expired offers."""
    return await in_parts(database, lambda session, id: _expire_some(session, id, now))


async def _expire_some(session: AsyncSession, seller_id: int, now: datetime) -> int:
    old = now - timedelta(days=BUYLIST_DRAFT_DAYS)
    values = {"seller": seller_id, "now": now, "old": old}
    if not await session.scalar(text(_ANY_OVER), values):
        return 0
    over = await session.scalars(
        select(BuyingOffer)
        .where(
            BuyingOffer.seller_id == seller_id,
            or_(
                (BuyingOffer.state == "offered") & (BuyingOffer.expires_at <= now),
                (BuyingOffer.state == "draft")
                & (BuyingOffer.source == "buylist")
                & (BuyingOffer.updated_at <= old),
            ),
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
