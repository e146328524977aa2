"""Accepts, dismisses and snoozes one or more proposals for a person, each at the revision that the
person saw, and undoes these decisions. The seller's state row is locked first, so exactly one of
several concurrent callers decides. Each kind of proposal defines its acceptance and its entry in
the feed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Undoing
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import locked
from cardsync.platform import clock, errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.described import Like
from cardsync.platform.read_json import ReadBy
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.prices.proposals.models import Proposal

Answer = Literal["accepted", "dismissed", "snoozed"]
Rows = Mapping[int, Proposal]


def _revision(value: object) -> datetime:
    moment = clock.read_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise ValueError("must be a revision, as 2026-11-21T08:00:00.000000Z")
    return moment


Revision = ReadBy[datetime, _revision, Like(datetime)]


class SeenProposal(NamedTuple):
    """The key of a proposal and the revision that the caller saw."""

    key: int
    revision: datetime


class Refused(NamedTuple):
    """A proposal that was not decided, and the reason."""

    key: int
    problem: errors.Problem


class Deciding(NamedTuple):
    """A caller who decides, with the seller's state row, which is locked."""

    session: AsyncSession
    caller: Caller
    state: SyncState
    now: datetime


class Accepted(NamedTuple):
    """Proposals that were accepted. `rows` has the proposals by key, `run_id` is the pricing run of
    their prices, and `known` has values for `Kind.feed_entry`. `revised` describes the change of a
    proposal that was not accepted.
    """

    rows: Rows
    refused: Sequence[Refused] = ()
    run_id: int | None = None
    known: Any = None
    revised: str | None = None


class FeedEntry(NamedTuple):
    """The entry of the activity feed for a decision."""

    action: str
    summary: str
    undo: JsonObject
    before: JsonObject | None = None
    after: JsonObject | None = None


@dataclass(frozen=True)
class Kind:
    """The texts and effects of one kind of proposal. Callers name a proposal by the column `key`.
    `accept` carries out the proposal, and `undo` reverts it. The texts give the reason why a
    proposal is not decided or reverted; they may contain the key, the state and the revision.
    """

    families: tuple[str, ...]
    key: Literal["id", "marketplace_id"]
    missing: str
    settled: str
    newer: str
    changed: str
    accept: Callable[[Deciding, Rows], Awaitable[Accepted]]
    undo: Callable[[Deciding, JsonMapping], Awaitable[None]]
    feed_entry: Callable[[Answer, Accepted, datetime], FeedEntry]


class Decided(NamedTuple):
    """The result of a decision. `run_id` is the pricing run of accepted prices."""

    decided: int
    refused: Sequence[Refused]
    run_id: int | None = None
    revised: str | None = None


async def decide(
    session: AsyncSession,
    caller: Caller,
    kind: Kind,
    asked: Sequence[SeenProposal],
    answer: Answer,
    now: datetime,
) -> Decided:
    """Decide each pending proposal whose revision the caller saw. Return the others with the
    reasons for refusing them.

    Raises OwnerRequired, the errors of `kind.accept`, and the first refusal if no proposal could be
    decided.
    """
    caller.must_be_owner()
    state = await locked(session, caller.seller_id)
    statement = select(Proposal).where(
        Proposal.seller_id == caller.seller_id,
        Proposal.family.in_(kind.families),
        getattr(Proposal, kind.key).in_([one.key for one in asked]),
    )
    fresh = statement.with_for_update().execution_options(populate_existing=True)
    stored = {getattr(row, kind.key): row for row in await session.scalars(fresh)}
    problems = {one.key: _refusal(kind, one, stored.get(one.key)) for one in asked}
    refused = [Refused(key, problem) for key, problem in problems.items() if problem]
    done = Accepted({key: stored[key] for key, problem in problems.items() if not problem})
    if answer == "accepted" and done.rows:
        done = await kind.accept(Deciding(session, caller, state, now), done.rows)
        refused += done.refused
    if not done.rows:
        if refused:
            raise refused[0].problem
        return Decided(0, [], revised=done.revised)
    await session.flush()
    await session.execute(
        update(Proposal)
        .where(
            Proposal.seller_id == caller.seller_id,
            Proposal.id.in_([row.id for row in done.rows.values()]),
        )
        .values(state=answer, settled_at=now, settled_by=caller.actor)
        .execution_options(synchronize_session=False)
    )
    action, summary, undo, before, after = kind.feed_entry(answer, done, now)
    note(session, caller, action, summary, now, before=before, after=after, undo=undo)
    await session.flush()
    return Decided(len(done.rows), refused, done.run_id)


def _refusal(kind: Kind, one: SeenProposal, row: Proposal | None) -> errors.Problem | None:
    if row is None:
        return errors.NotFound(kind.missing.format(key=one.key))
    if row.state != "pending":
        return errors.RevisionConflict(kind.settled.format(key=one.key, state=row.state))
    if row.revision != one.revision:
        exact = clock.exact(row.revision)
        return errors.RevisionConflict(kind.newer.format(key=one.key, revision=exact))
    return None


# If a newer proposal for the same card or rule is already open, only the newer one waits.
_OPEN_AGAIN: Final = queries_of(__package__)["open_again"]


async def undo_decisions(kind: Kind, undoing: Undoing) -> None:
    """Reopen decided proposals that have not changed since the decision. Raises ChangedSince, and
    the errors of `kind.undo`, which reverts accepted proposals.
    """
    session, caller, undo, now = undoing.session, undoing.caller, undoing.entry, undoing.now
    state = await locked(session, caller.seller_id)
    # Older entries lack the proposal, the answer or the moment.
    keys = undo.get("cards") or [undo[name] for name in ("recommendation",) if name in undo]
    answer = undo.get("answer", undo.get("became"))
    if answer not in ("dismissed", "snoozed"):
        answer = "accepted"
        await kind.undo(Deciding(session, caller, state, now), undo)
    values = {
        "seller": caller.seller_id,
        "keys": keys,
        "families": list(kind.families),
        "answer": answer,
        "now": now,
        "at": datetime.fromisoformat(undo["at"]) if "at" in undo else None,
    }
    if await run(session, _OPEN_AGAIN.format(key=kind.key), values) != len(keys):
        raise errors.ChangedSince(kind.changed.format(key=keys[0]))
