"""Lists a member's own sessions, and ends one of them. `people.py` ends all sessions of another
member.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.member_models import MemberSession
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.settings import Settings
from cardsync.shop.limits import SESSIONS_SHOWN

_GOOD: Final = """
    AND member_id = :member AND expires_at > :now AND last_seen_at > :idle_since
    ORDER BY last_seen_at DESC, id DESC LIMIT :most
"""


async def sessions(
    source: Source, caller: Caller, settings: Settings, now: datetime
) -> list[MemberSession]:
    """Return the caller's valid sessions, the session that was used last first."""
    values = {
        "member": caller.member_id,
        "now": now,
        "idle_since": now - timedelta(seconds=settings.session_idle_seconds),
        "most": SESSIONS_SHOWN,
    }
    return await rows_as(source, MemberSession, caller.seller_id, _GOOD, **values)


async def end(session: AsyncSession, caller: Caller, session_id: int) -> None:
    """End one of the caller's sessions. Raises NotFound."""
    gone = delete(MemberSession).where(
        MemberSession.seller_id == caller.seller_id,
        MemberSession.member_id == caller.member_id,
        MemberSession.id == session_id,
    )
    if await session.scalar(gone.returning(MemberSession.id)) is None:
        raise errors.NotFound(f"there is no session {session_id}")
