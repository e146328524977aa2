"""Seals the secrets of all webhooks with the installation's present secret, after it was rotated.
What is sealed with it already is sealed once more, so it may run again and again.
"""

from __future__ import annotations

from sqlalchemy import select

from cardsync.access.each_seller import all_sellers
from cardsync.operations.rotate_secret import SealedAnew
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.notices.models import Webhook
from cardsync.shop.notices.webhook_signature import Unsealed, sealed, unsealed


async def seal_anew(database: Database, settings: Settings) -> SealedAnew:
    done = lost = 0
    for seller_id in await all_sellers(database):
        async with database.tenant(seller_id) as session:
            own = select(Webhook).where(Webhook.seller_id == seller_id).order_by(Webhook.id)
            for row in (await session.scalars(own.with_for_update())).all():
                try:
                    row.secret = _again(settings, seller_id, row.secret)
                except Unsealed:
                    lost += 1
                else:
                    done += 1
                if row.former_secret is not None:
                    try:
                        row.former_secret = _again(settings, seller_id, row.former_secret)
                    except Unsealed:
                        row.former_secret = None
    return SealedAnew(done, lost)


def _again(settings: Settings, seller_id: int, kept: bytes) -> bytes:
    return sealed(settings, seller_id, unsealed(settings, seller_id, kept))
