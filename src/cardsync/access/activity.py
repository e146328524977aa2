"""The activity feed: what a caller did, written in the transaction that did it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Identity, Index, Text, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.caller import Caller
from cardsync.database.columns import NOW, Base, Moment

# The actor of commands on the command line.
OPERATOR = "operator"


def note(session: AsyncSession, caller: Caller, action: str, summary: str, now: datetime) -> None:
    note_by(session, caller.seller_id, caller.actor, action, summary, now)


def note_by(
    session: AsyncSession, seller_id: int, actor: str, action: str, summary: str, now: datetime
) -> None:
    session.add(
        Activity(seller_id=seller_id, actor=actor, action=action, summary=summary, created_at=now)
    )


class Activity(Base):
    """One change to a seller's prices, stock or account, written in the transaction that made it."""

    __tablename__ = "activity"
    __table_args__ = (Index("ix_activity_recent", "seller_id", text("created_at DESC")),)
    seller_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    summary: Mapped[str] = mapped_column(Text)
    request_id: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment, server_default=NOW)
