"""The activity feed: what a caller did, written in the transaction that did it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.accounts.caller import Caller
from cardsync.inventory.models import Activity


def note(session: AsyncSession, caller: Caller, action: str, summary: str, now: datetime) -> None:
    session.add(
        Activity(seller_id=caller.seller_id, actor=caller.actor, action=action, summary=summary, created_at=now)
    )
