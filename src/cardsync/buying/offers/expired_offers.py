"""Marks offers as expired: offers whose days are over, and drafts from carts of the public buylist
that nobody has changed for long. Each expired offer gets an entry of the activity feed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import or_
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import each_seller
from cardsync.access.activity import note_by
from cardsync.buying.limits import BUYLIST_DRAFT_DAYS
from cardsync.buying.offers.models import BuyingOffer
from cardsync.buying.offers.offer_reads import touch
from cardsync.platform.database.session import Database


async def expire(database: Database, now: datetime) -> int:
    """Expire the offers of all sellers, and return the number of expired offers."""

    def end(session: AsyncSession, offer: BuyingOffer) -> None:
        offer.state, offer.secret_hash = "expired", None
        touch(offer, now)
        summary = f"offer {offer.id} expired"
        note_by(session, offer.seller_id, "sweep", "offer.expired", summary, now)

    old = now - timedelta(days=BUYLIST_DRAFT_DAYS)
    is_over = or_(
        (BuyingOffer.state == "offered") & (BuyingOffer.expires_at <= now),
        (BuyingOffer.state == "draft")
        & (BuyingOffer.source == "buylist")
        & (BuyingOffer.updated_at <= old),
    )
    return await each_seller.expire(database, BuyingOffer, is_over, end)
