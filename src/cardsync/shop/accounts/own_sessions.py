"""Lists a member's own sessions, and ends one of them. `people.py` ends all sessions of another
member.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.member_models import MemberSession
from cardsync.platform import errors
from cardsync.platform.settings import Settings
from cardsync.shop.limits import SESSIONS_SHOWN


async def sessions(
    session: AsyncSession, caller: Caller, settings: Settings, now: datetime
) -> Sequence[MemberSession]:
    """Return the caller's valid sessions, the session that was used last first."""
    idle_since = now - timedelta(seconds=settings.session_idle_seconds)
    good = (MemberSession.expires_at > now) & (MemberSession.last_seen_at > idle_since)
    query = select(MemberSession).where(*_own(caller), good)
    order = (MemberSession.last_seen_at.desc(), MemberSession.id.desc())
    return (await session.scalars(query.order_by(*order).limit(SESSIONS_SHOWN))).all()


async def end(session: AsyncSession, caller: Caller, session_id: int) -> None:
    """End one of the caller's sessions. Raises NotFound."""
    gone = delete(MemberSession).where(*_own(caller), MemberSession.id == session_id)
    if await session.scalar(gone.returning(MemberSession.id)) is None:
        raise errors.NotFound(f"there is no session {session_id}")


def _own(caller: Caller) -> tuple[ColumnElement[bool], ...]:
    return (
        MemberSession.seller_id == caller.seller_id,
        MemberSession.member_id == caller.member_id,
    )
