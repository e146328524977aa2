"""Makes a member an operator of the installation, or ends that role. The change applies from the
member's next request on.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import errors

_MEMBER = "SELECT id FROM member WHERE lower(email) = lower(:email) AND password_hash IS NOT NULL"


class Appointed(NamedTuple):
    member_id: int
    email: str
    name: str
    seller_id: int
    added_at: datetime


async def add(session: AsyncSession, email: str, now: datetime) -> int:
    """Make a member an operator, and return the member's id. A repeated call changes nothing.
    Raises CommandError.
    """
    member_id: int | None = await session.scalar(text(_MEMBER), {"email": email.strip()})
    if member_id is None:
        raise errors.CommandError(f"no member who has joined uses the address {email}")
    await session.execute(
        text("""
            INSERT INTO installation_operator (member_id, added_at) VALUES (:member, :now)
            ON CONFLICT DO NOTHING
        """),
        {"member": member_id, "now": now},
    )
    return member_id


async def remove(session: AsyncSession, email: str) -> int:
    """End a member's role as operator, and return the member's id. Raises CommandError."""
    member_id: int | None = await session.scalar(
        text("""
            DELETE FROM installation_operator USING member m
             WHERE installation_operator.member_id = m.id AND lower(m.email) = lower(:email)
            RETURNING m.id
        """),
        {"email": email.strip()},
    )
    if member_id is None:
        raise errors.CommandError(f"no operator has the address {email}")
    return member_id


async def listed(session: AsyncSession) -> list[Appointed]:
    """Return all operators in the order of their appointment."""
    rows = await session.execute(
        text("""
            SELECT m.id, m.email, m.name, m.seller_id, o.added_at
              FROM installation_operator o JOIN member m ON m.id = o.member_id
             ORDER BY o.added_at, m.id
        """)
    )
    return [Appointed(*row) for row in rows]
