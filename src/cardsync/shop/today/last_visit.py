"""Stores the time at which a member opened Today, and reads the end of the member's previous
visit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped

from cardsync.access.caller import Caller
from cardsync.platform.database.columns import Base, KeyPart
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading


class MemberVisit(Base):
    """A member's visits to Today. `seen_at` is the time of the newest view, and `before_at` the
    time of the last view in the previous visit, or null in the first visit.
    """

    __tablename__ = "member_visit"
    seller_id: Mapped[KeyPart]
    member_id: Mapped[KeyPart]
    seen_at: Mapped[datetime]
    before_at: Mapped[datetime | None]


# A view of Today begins a new visit if the last view was longer ago than this.
PAUSE: Final = timedelta(minutes=30)
# The minimum time between two stored views.
_WRITTEN: Final = timedelta(minutes=1)
_KNOWN: Final = """
    SELECT seen_at, before_at FROM member_visit WHERE seller_id = :seller AND member_id = :member
"""
_LOOK: Final = """
    INSERT INTO member_visit AS v (seller_id, member_id, seen_at)
    VALUES (:seller, :member, :now)
    ON CONFLICT (seller_id, member_id) DO UPDATE
       SET before_at = CASE WHEN v.seen_at <= :paused THEN v.seen_at ELSE v.before_at END,
           seen_at = greatest(v.seen_at, excluded.seen_at)
"""


async def look(
    reading: Reading,
    opened: Callable[[], AbstractAsyncContextManager[AsyncSession]],
    caller: Caller,
    now: datetime,
    *,
    counts: bool = True,
) -> datetime | None:
    """Store a view of Today in a transaction that `opened` opens, unless `counts` is false. Return
    the time at which the member's previous visit ended, or None in the first visit.
    """
    if caller.member_id is None:
        return None
    values = {"seller": caller.seller_id, "member": caller.member_id}
    known = await reading.rows(_KNOWN, values)
    seen_at: datetime | None
    before: datetime | None
    seen_at, before = known[0] if known else (None, None)
    if seen_at is not None and now - seen_at >= PAUSE:
        before = seen_at
    if counts and (seen_at is None or now - seen_at >= _WRITTEN):
        async with opened() as session:
            await run(session, _LOOK, values | {"now": now, "paused": now - PAUSE})
    return before
