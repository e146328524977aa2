"""Adds entries for a caller's actions to the activity feed, in the same transactions as the
actions. (`shop/activity/` reads the feed and undoes its entries.)

A summary must not name a buyer. `before` and `after` have only a few values each. An undo finds its
values in `undo`, whose `kind` names an entry of `shop/activity/undo_kinds.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Final, Literal, get_args

from sqlalchemy import Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from cardsync.access.caller import Caller
from cardsync.platform.database.columns import Base, BigInt, DefaultNow, KeyPart, RowId
from cardsync.platform.value_types import JsonObject

# The actor of an action by a command.
OPERATOR = "operator"
Risk = Literal["low", "medium", "high", "critical"]
Outcome = Literal[
    "applied", "previewed", "pending_review", "refused_by_grant", "refused_by_limit", "drifted",
    "declined", "expired",
]  # fmt: skip
RISKS: Final[tuple[str, ...]] = get_args(Risk)
OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
_NOTED: Final = "noted"
# The ID of the request that is being answered; None in a job.
REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
# A caller that needs the entries of the current request sets a list here.
ENTRIES: ContextVar[list[Activity] | None] = ContextVar("entries", default=None)


def note(
    session: AsyncSession,
    caller: Caller,
    action: str,
    summary: str,
    now: datetime,
    *,
    risk: str = "low",
    outcome: str = "applied",
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    undo: Mapping[str, object] | None = None,
) -> Activity:
    """Add an entry for an action of the caller. `undo` has a `kind` and the values that this kind
    needs; an entry without `undo` cannot be undone.

    The entry has its ID after a flush.
    """
    row = note_by(session, caller.seller_id, caller.actor, action, summary, now)
    row.risk, row.outcome = risk, outcome
    row.before, row.after, row.undo = (
        None if value is None else dict(value) for value in (before, after, undo)
    )
    return row


def note_by(
    session: AsyncSession,
    seller_id: int,
    actor: str,
    action: str,
    summary: str,
    now: datetime,
) -> Activity:
    row = Activity(seller_id=seller_id, actor=actor, action=action, summary=summary, created_at=now)
    session.add(row)
    session.info.setdefault(_NOTED, []).append(row)
    if (entries := ENTRIES.get()) is not None:
        entries.append(row)
    return row


def noted_in(session: AsyncSession) -> list[Activity]:
    """Return the entries that this transaction has added and not rolled back, oldest first. The
    entries have IDs after a flush.
    """
    return [row for row in session.info.get(_NOTED, []) if row in session]


class Activity(Base):
    """An entry of the activity feed: one change to a seller's prices, stock or account. The entry
    is written in the same transaction as the change.

    `undone_by` is the ID of the entry that undid this one.
    """

    __tablename__ = "activity"
    __table_args__ = (Index("ix_activity_recent", "seller_id", text("created_at DESC")),)
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    actor: Mapped[str]
    action: Mapped[str]
    risk: Mapped[str] = mapped_column(server_default="low")
    outcome: Mapped[str] = mapped_column(server_default="applied")
    summary: Mapped[str]
    before: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    after: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    undo: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    undone_by: Mapped[BigInt | None]
    request_id: Mapped[str | None] = mapped_column(default=REQUEST_ID.get)
    created_at: Mapped[DefaultNow]
