"""Locks the account's row, so that changes of one seller that must not overlap take turns."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession


async def one_at_a_time(session: AsyncSession, seller_id: int) -> None:
    await session.execute(
        text("SELECT FROM account WHERE seller_id = :seller FOR NO KEY UPDATE"),
        {"seller": seller_id},
    )
