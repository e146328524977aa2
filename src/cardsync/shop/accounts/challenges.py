"""Makes the challenges that devices sign for passkeys, uses up challenges, and deletes expired
challenges.

A challenge is valid once, for five minutes. A challenge for a new passkey is valid only for its
member. Workers delete challenges, and import no other module about passkeys.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.member_models import PasskeyChallenge
from cardsync.platform.database.session import Database

IS_GOOD: Final = timedelta(minutes=5)
_BYTES: Final = 32


def made(session: AsyncSession, now: datetime, member_id: int | None) -> bytes:
    challenge = secrets.token_bytes(_BYTES)
    session.add(
        PasskeyChallenge(
            challenge=challenge,
            member_id=member_id,
            expires_at=now + IS_GOOD,
        )
    )
    return challenge


async def taken(
    session: AsyncSession,
    challenge: bytes,
    member_id: int | None,
    now: datetime,
) -> bool:
    """Use up a challenge, and return whether it was valid. If two requests use it at the same time,
    only one of them succeeds.
    """
    expires_at = await session.scalar(
        delete(PasskeyChallenge)
        .where(
            PasskeyChallenge.challenge == challenge,
            PasskeyChallenge.member_id.is_not_distinct_from(member_id),
        )
        .returning(PasskeyChallenge.expires_at)
    )
    return expires_at is not None and now < expires_at


async def drop_past(database: Database, now: datetime) -> int:
    """Delete expired challenges, and return their number."""
    over = delete(PasskeyChallenge).where(PasskeyChallenge.expires_at <= now)
    async with database.shared() as session:
        gone = await session.execute(over.returning(PasskeyChallenge.expires_at))
        return len(gone.all())
