"""Approves, declines or snoozes a waiting decision, if its revision is still the revision that the
caller saw.

The seller's state row is locked first, so that only one of several concurrent callers decides; the
others get a conflict. An answer has the same effect as the older routes of the decision's kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import text

from cardsync.agents.seller_state import state as sync_state
from cardsync.imports import reviews
from cardsync.platform import errors
from cardsync.platform.read_json import read
from cardsync.prices.errors import MarketEvidenceChanged
from cardsync.prices.plans import decide_plan, writes
from cardsync.prices.plans.writer import Writer
from cardsync.prices.proposals.decide_proposals import Answer as Word
from cardsync.prices.proposals.decide_proposals import Revision, SeenProposal
from cardsync.prices.recommendations import accept_recommendation as suggestions
from cardsync.shop.waiting.all_waiting import Answer, Kind, Waits, one_of

_WORDS: Final[Mapping[Answer, Word]] = {
    "approve": "accepted",
    "decline": "dismissed",
    "snooze": "snoozed",
}
_KEPT: Final[Mapping[Kind, str]] = {
    "upload": "SELECT FROM upload WHERE seller_id = :seller AND id = :id",
    "run": "SELECT FROM price_run WHERE seller_id = :seller AND id = :id",
    "plan": "SELECT FROM agent_plan WHERE seller_id = :seller AND id = :id",
    "price": """SELECT FROM proposal
                 WHERE seller_id = :seller AND family = 'review' AND marketplace_id = :id""",
    "suggestion": """SELECT FROM proposal
                      WHERE seller_id = :seller AND family = 'price' AND id = :id""",
}


class DecidedWaiting(NamedTuple):
    """The result of a decision. `run_id` is the pricing run of approved prices. If the prices of a
    plan have changed since it was made, the plan is not applied and waits again; then it is
    `waits`.
    """

    answer: Answer
    run_id: int | None = None
    waits: Waits | None = None


async def decide(
    writer: Writer, named: object, id: int, seen: object, given: object
) -> DecidedWaiting:
    """Apply the answer `given` to the waiting decision `id` of the kind `named`, if its revision is
    `seen`. Raises OwnerRequired, NotFound, RevisionConflict, InvalidPayload, and errors of the
    kind: a plan needs a signed-in member (SessionRequired), and an upload does not accept a token
    (KeyRequired).
    """
    session, caller, _, now, _ = writer
    # The role is checked before the body, so that staff get OwnerRequired also for an invalid body.
    caller.must_be_owner()
    kind: Kind = read(named, Kind, "kind")
    answer: Answer = read(given, Answer, "answer")
    revision = read(seen, str, "revision")
    await sync_state.locked(session, caller.seller_id)
    found = await one_of(session, caller, kind, id, now)
    if found is None:
        kept = text(f"SELECT EXISTS ({_KEPT[kind]})")
        if not await session.scalar(kept, {"seller": caller.seller_id, "id": id}):
            raise errors.NotFound(f"no {kind} {id} waits")
        raise errors.RevisionConflict(f"{kind} {id} waits no more: it was decided or has expired")
    if found.revision != revision:
        raise errors.RevisionConflict(
            f"{kind} {id} changed since you looked; its revision is {found.revision}"
        )
    if answer not in found.answers:
        raise errors.InvalidPayload(f"answer: a {kind} takes {' or '.join(found.answers)}")
    run_id = await _DECIDE[kind](writer, found, answer)
    await session.flush()
    drifted = kind == "plan" and answer == "approve"
    again = await one_of(session, caller, kind, id, now) if drifted else None
    return DecidedWaiting(answer, run_id, again)


async def _upload(writer: Writer, one: Waits, answer: Answer) -> None:
    session, caller, _, now, _ = writer
    if caller.identity.credential == "token":
        raise errors.KeyRequired
    word: reviews.Word = "confirmed" if answer == "approve" else "discarded"
    await reviews.settle_upload(session, caller, one.id, word, now)


async def _run(writer: Writer, one: Waits, answer: Answer) -> None:
    await reviews.settle_run(writer, one.id, "confirmed" if answer == "approve" else "discarded")


async def _plan(writer: Writer, one: Waits, answer: Answer) -> None:
    session, caller, settings, now, _ = writer
    if answer == "decline":
        await decide_plan.decline(session, caller, one.id, now)
    else:
        seen = int(one.revision)
        await decide_plan.confirm(session, caller, settings, one.id, seen, now)


async def _price(writer: Writer, one: Waits, answer: Answer) -> int | None:
    seen = SeenProposal(one.id, read(one.revision, Revision, "revision"))
    return (await writes.decide_reviews(writer, [seen], _WORDS[answer])).run_id


async def _suggestion(writer: Writer, one: Waits, answer: Answer) -> int | None:
    session, caller, _, now, _ = writer
    seen = read(one.revision, Revision, "revision")
    word = _WORDS[answer]
    if word != "accepted":
        await suggestions.settle(session, caller, one.id, seen, word, now)
        return None
    done = await suggestions.accept(writer, one.id, seen)
    if done is None or done.status == "preview_queued":
        # The suggestion has a new revision now, which must be stored although the request is
        # refused.
        await session.commit()
        raise MarketEvidenceChanged
    return done.run_id


_DECIDE: Final[Mapping[Kind, Callable[[Writer, Waits, Answer], Awaitable[Any]]]] = {
    "upload": _upload,
    "run": _run,
    "plan": _plan,
    "price": _price,
    "suggestion": _suggestion,
}
