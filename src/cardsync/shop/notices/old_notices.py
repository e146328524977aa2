"""Deletes old notices and deliveries, and the choices of former members."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.each_seller import AT_ONCE, in_parts
from cardsync.platform.database.session import Database, run

# Deliveries are deleted with their notice. Notices of conditions that last are not deleted.
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
    DELETE FROM notice_reader r WHERE r.seller_id = :seller
       AND r.member_id NOT IN (SELECT m.id FROM member m WHERE m.seller_id = :seller)
"""


async def drop_old(database: Database, before: datetime) -> int:
    """Delete rows that are older than `before`, seller by seller, few at a time. Return their
    number.
    """
    dropped = 0
    for statement in (*_DROP, _FORMER):
        dropped += await in_parts(database, partial(_drop, statement, before))
    return dropped


async def _drop(statement: str, before: datetime, session: AsyncSession, seller_id: int) -> int:
    values = {"seller": seller_id, "before": before, "most": AT_ONCE}
    return await run(session, statement, values)
