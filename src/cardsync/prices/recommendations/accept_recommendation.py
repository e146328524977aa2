"""Accepts recommendations, and undoes decisions about them. Accepting reads the card's evidence
again, by the code that generates recommendations, and sets the proposed price as the card's target.
If the evidence has changed since the review was made, nothing is applied: the review stays pending
with a new revision.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final, Literal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.database.session import SessionReading, run
from cardsync.platform.money import dollars, from_units, to_units, usd
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.decisions.ended import Applied, ended
from cardsync.prices.decisions.set_targets import (
    NewTarget,
    apply_targets,
    must_be_free,
    must_take_targets,
)
from cardsync.prices.errors import NotEligible
from cardsync.prices.plans.permissions import who_writes
from cardsync.prices.plans.price_effect import Reach
from cardsync.prices.plans.writer import Waiting, Writer, write
from cardsync.prices.proposals.decide_proposals import (
    Accepted,
    Answer,
    Deciding,
    FeedEntry,
    Kind,
    Rows,
    SeenProposal,
    decide,
    undo_decisions,
)
from cardsync.prices.proposals.models import Proposal
from cardsync.prices.recommendations.candidates import review_of
from cardsync.prices.recommendations.generate import note_events
from cardsync.prices.recommendations.schemas import DecisionShown
from cardsync.prices.standing import APPLIED

ACCEPTED: Final = "recommendations.accepted"
SETTLED: Final = "recommendations.settled"
QUEUED: Final = "preview_queued"
_OF_CARD: Final = """
    c.id = (SELECT r.card_id FROM proposal r
             WHERE r.seller_id = :seller AND r.id = :recommendation)
"""


async def _accept(deciding: Deciding, rows: Rows) -> Accepted:
    """Set the proposed price as the card's target. If the evidence has changed, the review gets a
    new revision in this transaction. Raises NotEligible, MutexHeld.
    """
    session, caller, state, now = deciding
    [row] = rows.values()
    if row.family != "price" or row.card_id is None or row.proposed_price is None:
        raise NotEligible("only a price review can be approved; this is a rule suggestion")
    account, live = await must_take_targets(SessionReading(session), state, now)
    able, found = await review_of(session, account, live, row.card_id)
    if not able:
        raise NotEligible(
            "the card is pinned, blocked, in a promotion, in a control group or out of stock"
        )
    if found is None or found["evidence_key"] != row.evidence_key:
        return Accepted({}, revised=await _revise(session, row, found, now))
    before = await _target(session, caller.seller_id, row.card_id)
    # Since the review was made, a new upload may have confirmed the same figures, or another rule
    # may govern the card.
    row.rule_id, row.expires_at = found["rule_id"], found["expires_at"]
    proposed = to_units(row.proposed_price)
    target = NewTarget(row.card_id, proposed, row.rule_id, row.expires_at)
    by = caller.actor
    run_id = await apply_targets(session, state, [target], "recommendation", by, now)
    await note_events(session, caller.seller_id, [row.id], "accepted", by, now)
    return Accepted(rows, run_id=run_id, known=(before, dollars(proposed)))


def _feed_entry(answer: Answer, done: Accepted, now: datetime) -> FeedEntry:
    [row] = done.rows.values()
    if answer != "accepted":
        return FeedEntry(
            f"recommendations.{answer}",
            f"suggestion {row.id} {answer}",
            {"kind": SETTLED, "recommendation": row.id, "became": answer},
            before={"state": "pending"},
            after={"state": answer},
        )
    was, became = done.known
    return FeedEntry(
        ACCEPTED,
        f"suggestion {row.id} approved: card {row.card_id} is set to {became}",
        {
            "kind": ACCEPTED,
            "card": row.card_id,
            "was": was,
            "became": became,
            "recommendation": row.id,
        },
        before={"target_price": was},
        after={"target_price": became},
    )


async def _revise(
    session: AsyncSession,
    row: Proposal,
    found: JsonMapping | None,
    now: datetime,
) -> str:
    """Keep the review pending under a new revision with the present evidence. A review that no
    evidence supports any more is not changed; the next generation ends it.
    """
    was = row.kind
    row.revision = now
    if found is not None:
        for name in ("kind", "rule_id", "confidence", "evidence", "evidence_key", "expires_at"):
            setattr(row, name, found[name])
        for name in ("current_price", "proposed_price", "expected_value"):
            setattr(row, name, from_units(found[name]))
        row.worth = found["worth"]
    await session.flush()
    generic = was == "generic_raise" and found is not None
    return QUEUED if generic else "market_evidence_changed"


_TARGET: Final = "SELECT target_price FROM card WHERE seller_id = :seller AND id = :card"
_PUT_BACK: Final = """
    UPDATE card SET target_price = :price, updated_at = :now
     WHERE seller_id = :seller AND id = :card AND target_price = :became
"""
_UNPIN: Final = f"""
    DELETE FROM price_decision d USING card c
     WHERE d.seller_id = :seller AND d.kind = 'pin' AND c.seller_id = :seller AND c.id = :card
       AND d.marketplace_id = c.marketplace_id AND {APPLIED}
"""
_SUPERSEDED: Final = """
    SELECT EXISTS (
        SELECT FROM proposal r
          JOIN proposal a ON a.seller_id = :seller AND a.card_id = r.card_id
           AND a.state IN ('accepted', 'auto_applied')
           AND (a.settled_at, a.id) > (r.settled_at, r.id)
         WHERE r.seller_id = :seller AND r.id = :id)
"""


async def _target(session: AsyncSession, seller_id: int, card_id: int) -> str | None:
    target: Decimal | None = await session.scalar(
        text(_TARGET), {"seller": seller_id, "card": card_id}
    )
    return usd(target)


async def _undo(deciding: Deciding, undo: JsonMapping) -> None:
    """Restore the card's target. Outcomes do not count an acceptance that was undone. Raises
    ChangedSince, MutexHeld.
    """
    session, caller, state, now = deciding
    must_be_free(state, now)
    values = {
        "seller": caller.seller_id,
        "id": undo.get("recommendation"),
        "card": undo["card"],
        "price": None if undo["was"] is None else Decimal(undo["was"]),
        "became": Decimal(undo["became"]),
        "now": now,
    }
    named = {name: values[name] for name in ("seller", "id")}
    if await session.scalar(text(_SUPERSEDED), named):
        raise errors.ChangedSince(f"a later suggestion for card {undo['card']} was applied")
    if not await run(session, _PUT_BACK, values):
        raise errors.ChangedSince(f"the target of card {undo['card']} was changed in the meantime")
    await run(session, _UNPIN, values)
    await ended(session, state, Applied(cards=[undo["card"]], pushes=True), now)


RECOMMENDATIONS: Final = Kind(
    ("price", "liquidation", "account"),
    "id",
    missing="there is no recommendation {key}",
    settled="recommendation {key} is {state}",
    newer="recommendation {key} has the revision {revision}",
    changed="recommendation {key} was changed since",
    accept=_accept,
    undo=_undo,
    feed_entry=_feed_entry,
)


async def accept(
    writer: Writer,
    recommendation_id: int,
    revision: datetime,
) -> DecisionShown | None:
    """Accept a recommendation within the loss limits. A member who accepts has seen the price.
    Return None if the evidence has changed: the new revision is stored, but nothing is accepted.

    Raises OwnerRequired, NotFound, RevisionConflict, NotEligible, MutexHeld.
    """
    session, caller, _, now, _ = writer
    asked = [SeenProposal(recommendation_id, revision)]
    reach = Reach(_OF_CARD, {"recommendation": recommendation_id})
    waiting = Waiting(recommendation_id, "/recommendations", reach)
    async with write(writer._replace(confirmed=True), waiting):
        done = await decide(session, caller, RECOMMENDATIONS, asked, "accepted", now)
    if done.revised is None:
        return DecisionShown("accepted", clock.exact(revision), done.run_id)
    return (
        DecisionShown("preview_queued", clock.exact(now), None) if done.revised == QUEUED else None
    )


async def settle(
    session: AsyncSession,
    caller: Caller,
    recommendation_id: int,
    revision: datetime,
    answer: Literal["dismissed", "snoozed"],
    now: datetime,
) -> DecisionShown:
    """Dismiss a recommendation for thirty days, or snooze it until its evidence changes.

    Raises OwnerRequired, NotFound, RevisionConflict, RefusedByGrant.
    """
    await who_writes(session, caller, "pricing.change_set")
    asked = [SeenProposal(recommendation_id, revision)]
    await decide(session, caller, RECOMMENDATIONS, asked, answer, now)
    return DecisionShown(answer, clock.exact(revision), None)


UNDO: Final = partial(undo_decisions, RECOMMENDATIONS)
