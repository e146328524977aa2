"""Builds the rows of Reviews and Suggestions, two views of the one table of proposals, and reads
the form of both views. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple, get_args

from cardsync.dashboard.messages import left, message, together
from cardsync.platform import clock, errors
from cardsync.platform.kit.typed_numbers import read_id
from cardsync.prices.decisions.schemas import PriceReviewShown
from cardsync.prices.proposals.decide_proposals import Answer, Refused, SeenProposal
from cardsync.prices.recommendations.schemas import RecommendationShown
from cardsync.web.forms import Form

# A page of proposals has a button that approves all prices below this number of dollars.
UNDER: Final = Decimal(20)
REASONS: Final = {
    "rise": "Over your limit for increases.",
    "drop": "Over your limit for decreases.",
    "first_price": "The card's first price.",
}
KINDS: Final = {
    "depth_raise": "Others list it for more",
    "sales_anchor": "It sells for more",
    "generic_raise": "The market is higher",
    "demand_pulse": "Faster sale",
    "stale_stock": "No sale in 90 days",
    "never_matching_rule": "A rule matches no cards",
    "rule_scope_drift": "A rule prices different cards than before",
    "missing_floor": "A rule has no minimum price",
}


class ProposalRow(NamedTuple):
    """A proposal as both views show it. `key` names the shown revision of it, `money` is the amount
    at stake, and `source` is the review or suggestion, which has the evidence. A proposal without a
    card is about a rule. `seen_as` is the id under which the script records that a member saw it.
    """

    key: str
    card_id: int | None
    name: str
    of: str
    current_price: str | None
    proposed_price: str | None
    money: str | None
    why: str
    expires_at: datetime
    source: object
    seen_as: int | None = None


class Decision(NamedTuple):
    """A member's answer in the form, and the proposals that it is for."""

    answer: Answer
    asked: list[SeenProposal]


def row_of_review(one: PriceReviewShown) -> ProposalRow:
    return ProposalRow(
        f"{one.marketplace_id}@{one.revision}",
        one.card_id,
        one.product_name or f"SKU {one.marketplace_id}",
        _of(one.set_name, one.number, one.condition),
        one.current_price,
        one.proposed_price,
        one.worth,
        REASONS[one.reason],
        one.expires_at,
        one,
    )


def row_of_suggestion(one: RecommendationShown) -> ProposalRow:
    card = one.card
    return ProposalRow(
        f"{one.id}@{one.revision}",
        card.id if card else None,
        card.product_name if card else one.seen.get("rule") or f"SKU {one.marketplace_id}",
        _of(card.set_name, card.number, card.condition) if card else "",
        one.current_price,
        one.proposed_price,
        one.expected_value,
        f"{KINDS[one.kind]}.",
        one.expires_at,
        one,
        one.id,
    )


def _of(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def read_decision(form: Form, most: int) -> Decision:
    """Read the button of one row, or the button for all ticked rows. Raises InvalidPayload."""
    if form["one"]:
        answer, _, key = form["one"].partition(" ")
        return Decision(_answer(answer), [_asked(key)])
    ticked = dict.fromkeys(form.all("take")[:most])
    return Decision(_answer(form["answer"]), [_asked(key) for key in ticked])


def _answer(given: str) -> Answer:
    answer: Answer
    for answer in get_args(Answer):
        if given == answer:
            return answer
    raise errors.InvalidPayload("answer: must be accepted, dismissed or snoozed")


def _asked(key: str) -> SeenProposal:
    number, _, revision = key.partition("@")
    id, moment = read_id(number), clock.read_moment(revision)
    if id is None or moment is None:
        raise errors.InvalidPayload("take: must be a price and its revision")
    return SeenProposal(id, moment)


def said_of(
    what: Literal["prices", "suggestions"],
    answer: Answer,
    decided: int,
    refused: Sequence[Refused],
    *more: str,
) -> str:
    """Return the message about a decision; `more` are further messages."""
    problems = [one.problem for one in refused]
    return together(message(f"{what}_{answer}", decided), *left(problems), *more)
