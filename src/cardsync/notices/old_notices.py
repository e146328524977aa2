"""Deletes notices and deliveries that are too old, and what former members chose."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import select

from cardsync.access.models import Seller
from cardsync.database.session import Database, run

_AT_ONCE: Final = 10_000
# Deliveries are deleted with their notice. A condition is remembered as long as it lasts.
_DROP: Final = (
    """
    DELETE FROM webhook_delivery WHERE seller_id = :seller AND id IN (
        SELECT id FROM webhook_delivery
         WHERE seller_id = :seller AND state <> 'waiting' AND created_at < :before LIMIT :most)
    """,
    """
    DELETE FROM notice WHERE seller_id = :seller AND id IN (
        SELECT id FROM notice WHERE seller_id = :seller AND ended_at < :before LIMIT :most)
    """,
)
_FORMER: Final = """
    DELETE FROM notice_reader r WHERE r.seller_id = :seller AND NOT EXISTS (
        SELECT FROM member m WHERE m.seller_id = r.seller_id AND m.id = r.member_id)
"""


async def drop_old(database: Database, before: datetime) -> int:
    """Delete what is from before that moment, seller by seller and few rows at a time; return how
    many rows.
    """
    async with database.shared() as session:
        sellers = list(await session.scalars(select(Seller.id).order_by(Seller.id)))
    dropped = 0
    for seller_id in sellers:
        values = {"seller": seller_id, "before": before, "most": _AT_ONCE}
        for statement in _DROP:
            gone = _AT_ONCE
            while gone == _AT_ONCE:
                async with database.tenant(seller_id) as session:
                    gone = await run(session, statement, values)
                dropped += gone
        async with database.tenant(seller_id) as session:
            dropped += await run(session, _FORMER, values)
    return dropped
