"""The activity feed: what a caller did, written in the transaction that did it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.accounts.caller import Caller
from cardsync.inventory.models import Activity

# Of what is done at the command line.
OPERATOR = "operator"


def note(session: AsyncSession, caller: Caller, action: str, summary: str, now: datetime) -> None:
    note_by(session, caller.seller_id, caller.actor, action, summary, now)


def note_by(session: AsyncSession, seller_id: int, actor: str, action: str, summary: str, now: datetime) -> None:
    session.add(Activity(seller_id=seller_id, actor=actor, action=action, summary=summary, created_at=now))
