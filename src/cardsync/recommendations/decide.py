"""Accepts, dismisses and snoozes a recommendation for a member, each for one revision.

Accepting reads the card's evidence again, by the code that generates. If it is not what the review
was made from, nothing is applied: the review stays pending with a new revision. The seller's state
row is locked first, so of many callers at once exactly one decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.cards.exported import fingerprint
from cardsync.database.session import run
from cardsync.money import dollars, from_units, to_units
from cardsync.plans.effect import Reach
from cardsync.plans.writer import Waiting, Writer, write
from cardsync.pricing.decisions.push_task import push_prices
from cardsync.pricing.decisions.set_targets import (
    NewTarget,
    apply_targets,
    must_be_free,
    review_waits,
)
from cardsync.pricing.standing import APPLIED
from cardsync.recommendations.found import review_of
from cardsync.recommendations.generate import note_events
from cardsync.recommendations.models import Recommendation
from cardsync.recommendations.shown import DecisionShown
from cardsync.seller_state.state import locked

ACCEPTED: Final = "recommendations.accepted"
SETTLED: Final = "recommendations.settled"
Answer = Literal["dismissed", "snoozed"]
_OF_CARD: Final = """
    c.id = (SELECT r.card_id FROM recommendation r
             WHERE r.seller_id = :seller AND r.id = :recommendation)
"""


async def accept(
    writer: Writer,
    recommendation_id: int,
    revision: datetime,
) -> DecisionShown | None:
    """Accept a recommendation within the loss limits; a member who accepts has seen the price.
    None where the evidence has changed: the new revision stays though nothing is accepted.
    """
    do = partial(_accept, writer.session, writer.caller, recommendation_id, revision, writer.now)
    reach = Reach(_OF_CARD, {"recommendation": recommendation_id})
    waiting = Waiting(recommendation_id, "/recommendations", reach)
    return await write(writer._replace(confirmed=True), waiting, do)


async def _accept(
    session: AsyncSession,
    caller: Caller,
    recommendation_id: int,
    revision: datetime,
    now: datetime,
) -> DecisionShown | None:
    """Set the proposed price as the card's target. Where the evidence has changed, the review gets
    a new revision in this transaction.

    Raises OwnerRequired, NotFound, RevisionConflict, NotEligible, MutexHeld.
    """
    caller.must_be_owner()
    state = await locked(session, caller.seller_id)
    row = await _pending(session, caller, recommendation_id, revision)
    if row.family != "price" or row.card_id is None or row.proposed_price is None:
        raise errors.NotEligible("only a price review can be accepted; this one is advice")
    account = await session.get_one(Account, caller.seller_id, populate_existing=True)
    holds = account.entitlements(now).holds
    if holds:
        raise errors.NotEligible(f"prices of this account are held: {', '.join(holds)}")
    must_be_free(state, now)
    if await review_waits(session, state):
        raise errors.NotEligible("prices wait for your review; confirm or discard them first")
    able, found = await review_of(session, account, row.card_id, now)
    if not able:
        raise errors.NotEligible(
            "the card is pinned, blocked, on sale, held out by its rule or not in stock"
        )
    if found is None or found["evidence_key"] != row.evidence_key:
        return await _revise(session, row, found, now)
    proposed = to_units(row.proposed_price)
    before = await _target(session, caller.seller_id, row.card_id)
    # The same figures may have been seen again since the review was made, or another rule governs.
    row.rule_id, row.expires_at = found["rule_id"], found["expires_at"]
    target = NewTarget(row.card_id, proposed, row.rule_id, row.expires_at)
    run_id = await apply_targets(session, state, [target], "recommendation", caller.actor, now)
    row.state, row.settled_at, row.settled_by = "accepted", now, caller.actor
    await session.flush()
    await note_events(session, caller.seller_id, [row.id], "accepted", caller.actor, now)
    note(
        session,
        caller,
        ACCEPTED,
        f"recommendation {row.id} accepted: card {row.card_id} asks {dollars(proposed)}",
        now,
        before={"target_price": before},
        after={"target_price": dollars(proposed)},
        undo={
            "kind": ACCEPTED,
            "card": row.card_id,
            "was": before,
            "became": dollars(proposed),
            "recommendation": row.id,
        },
    )
    return DecisionShown("accepted", clock.exact(row.revision), run_id)


async def settle(
    session: AsyncSession,
    caller: Caller,
    recommendation_id: int,
    revision: datetime,
    answer: Answer,
    now: datetime,
) -> DecisionShown:
    """Dismiss a recommendation for thirty days, or snooze it until its evidence changes.

    Raises OwnerRequired, NotFound, RevisionConflict.
    """
    caller.must_be_owner()
    await locked(session, caller.seller_id)
    row = await _pending(session, caller, recommendation_id, revision)
    row.state, row.settled_at, row.settled_by = answer, now, caller.actor
    note(
        session,
        caller,
        f"recommendations.{answer}",
        f"recommendation {row.id} {answer}",
        now,
        before={"state": "pending"},
        after={"state": answer},
        undo={"kind": SETTLED, "recommendation": row.id, "became": answer},
    )
    return DecisionShown(answer, clock.exact(row.revision), None)


async def _pending(
    session: AsyncSession,
    caller: Caller,
    recommendation_id: int,
    revision: datetime,
) -> Recommendation:
    row = await session.scalar(
        select(Recommendation)
        .where(
            Recommendation.seller_id == caller.seller_id,
            Recommendation.id == recommendation_id,
        )
        .with_for_update()
    )
    if row is None:
        raise errors.NotFound(f"there is no recommendation {recommendation_id}")
    if row.state != "pending":
        raise errors.RevisionConflict(f"recommendation {recommendation_id} is {row.state}")
    if row.revision != revision:
        raise errors.RevisionConflict(
            f"recommendation {recommendation_id} has the revision {clock.exact(row.revision)}"
        )
    return row


async def _revise(
    session: AsyncSession,
    row: Recommendation,
    found: Mapping[str, Any] | None,
    now: datetime,
) -> DecisionShown | None:
    """Keep the review pending under a new revision; what is known now is what it shows. A review
    that nothing supports any more stays as it was, for the next generation to end.
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
    return DecisionShown("preview_queued", clock.exact(now), None) if generic else None


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
_OPEN_AGAIN: Final = """
    UPDATE recommendation r SET state = 'pending', settled_at = NULL, settled_by = NULL
     WHERE r.seller_id = :seller AND r.id = :id AND r.state = :became
"""
# Where a newer review of the card is open already, that one waits.
_UNACCEPT: Final = """
    UPDATE recommendation r
       SET state = CASE WHEN newer.open THEN 'expired' ELSE 'pending' END,
           settled_at = CASE WHEN newer.open THEN CAST(:now AS timestamptz) END, settled_by = NULL
      FROM (SELECT EXISTS (
                   SELECT FROM recommendation o
                     JOIN recommendation u ON u.seller_id = :seller AND u.id = :id
                    WHERE o.seller_id = :seller AND o.slot = u.slot
                      AND o.state IN ('pending', 'snoozed', 'dismissed')) AS open) AS newer
     WHERE r.seller_id = :seller AND r.id = :id AND r.state = 'accepted'
"""


_SUPERSEDED: Final = """
    SELECT EXISTS (
        SELECT FROM recommendation r
          JOIN recommendation a ON a.seller_id = :seller AND a.card_id = r.card_id
           AND a.state IN ('accepted', 'auto_applied')
           AND (a.settled_at, a.id) > (r.settled_at, r.id)
         WHERE r.seller_id = :seller AND r.id = :id)
"""


async def _target(session: AsyncSession, seller_id: int, card_id: int) -> str | None:
    target = await session.scalar(text(_TARGET), {"seller": seller_id, "card": card_id})
    return None if target is None else dollars(to_units(target))


async def put_target_back(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Give the card the target that it had, and let the recommendation wait again: what was taken
    back at once is no outcome. Raises ChangedSince, MutexHeld.
    """
    caller.must_be_owner()
    state = await locked(session, caller.seller_id)
    must_be_free(state, now)
    values = {
        "seller": caller.seller_id,
        "card": undo["card"],
        "price": None if undo["was"] is None else Decimal(undo["was"]),
        "became": Decimal(undo["became"]),
        "now": now,
    }
    named = {"seller": caller.seller_id, "id": undo.get("recommendation")}
    if await session.scalar(text(_SUPERSEDED), named):
        raise errors.ChangedSince(f"a later recommendation of card {undo['card']} was applied")
    if not await run(session, _PUT_BACK, values):
        raise errors.ChangedSince(f"the target of card {undo['card']} was changed since")
    await run(session, _UNPIN, values)
    if "recommendation" in undo:  # older entries lack it
        await run(session, _UNACCEPT, named | {"now": now})
    state.export_fingerprint = await fingerprint(session, caller.seller_id)
    await session.flush()
    await push_prices(session, caller.seller_id, now)


async def open_again(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Let a dismissed or snoozed recommendation wait again. Raises ChangedSince."""
    caller.must_be_owner()
    await locked(session, caller.seller_id)
    values = {
        "seller": caller.seller_id,
        "id": undo["recommendation"],
        "became": undo["became"],
    }
    if not await run(session, _OPEN_AGAIN, values):
        raise errors.ChangedSince(f"recommendation {undo['recommendation']} was changed since")
