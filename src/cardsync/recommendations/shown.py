"""Holds and recommendations as the API shows them: what operations return comes in, the JSON's
structs go out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec

from cardsync import clock
from cardsync.money import dollars, to_units
from cardsync.pricing.receipts.sentences import money
from cardsync.recommendations.accept import Decision
from cardsync.recommendations.badges import Badges
from cardsync.recommendations.effect import Effect
from cardsync.recommendations.holds import Hold, Holds
from cardsync.recommendations.listing import Recommended
from cardsync.recommendations.outcomes import WINDOW, Applied, Outcome, Outcomes
from cardsync.recommendations.why_held import Held


class RecommendedCard(msgspec.Struct):
    id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str


class RecommendationShown(msgspec.Struct):
    """`expected_value` is an estimate and no return. `evidence` has the figures with their clocks,
    `reason`, `would_change` and `competing_signals`; advice on a rule has no card.
    """

    id: int
    kind: str
    card: RecommendedCard | None
    marketplace_id: int | None
    rule_id: int | None
    current_price: str | None
    proposed_price: str | None
    expected_value: str | None
    confidence: Literal["low", "medium", "high"]
    state: str
    revision: str
    created_at: datetime
    expires_at: datetime
    evidence: dict[str, Any]


class RecommendationsShown(msgspec.Struct):
    """`total` counts the price reviews, and `expected_value` sums what they may bring."""

    recommendations: list[RecommendationShown]
    liquidation: list[RecommendationShown]
    account: list[RecommendationShown]
    total: int
    expected_value: str
    page: int
    per_page: int
    total_pages: int
    revision: str | None


class DecisionShown(msgspec.Struct):
    """`run_id` is the price run of an accepted price."""

    status: Literal["accepted", "dismissed", "snoozed", "preview_queued"]
    revision: str
    run_id: int | None


class RecordedShown(msgspec.Struct):
    recorded: int


class OutcomeShown(msgspec.Struct):
    """The net that applied reviews of one kind, or of one rule, brought a card within thirty days,
    beside matched cards that were left alone. `interval` holds 95 %; it is null where the verdict
    is `not_enough_sales`. `waiting` decisions are younger than thirty days.
    """

    kind: str | None
    rule_id: int | None
    rule_name: str | None
    accepted: int
    auto_applied: int
    waiting: int
    cards: int
    cards_sold: int
    control_cards: int
    control_sold: int
    net_per_card: str | None
    control_per_card: str | None
    difference_per_card: str | None
    interval: list[str] | None
    verdict: Literal["more", "less", "no_difference", "not_enough_sales"]
    reason: str


class HoldoutShown(msgspec.Struct):
    """The net that a rule's cards brought within thirty days, beside that of the cards that chance
    held out at their old price. `waiting` cards were drawn within thirty days.
    """

    rule_id: int
    rule_name: str | None
    waiting: int
    cards: int
    cards_sold: int
    held_cards: int
    held_sold: int
    net_per_card: str | None
    held_per_card: str | None
    difference_per_card: str | None
    interval: list[str] | None
    verdict: Literal["more", "less", "no_difference", "not_enough_sales"]
    reason: str


class AppliedShown(msgspec.Struct):
    """One applied review: the net that its card brought within thirty days, and the mean of the
    matched cards that were left alone. One card alone proves nothing, so it has no verdict.
    """

    id: int
    kind: str
    rule_id: int | None
    state: Literal["accepted", "auto_applied"]
    card_id: int
    product_name: str
    settled_at: str
    current_price: str
    proposed_price: str
    sold: bool
    net: str | None
    control_per_card: str | None
    control_cards: int


class OutcomesShown(msgspec.Struct):
    """`reviews` are the latest applied reviews whose thirty days have ended."""

    window_days: int
    outcomes: list[OutcomeShown]
    holdouts: list[HoldoutShown]
    reviews: list[AppliedShown]


def outcomes_body(found: Outcomes) -> OutcomesShown:
    return OutcomesShown(
        WINDOW.days,
        [_outcome(one) for one in found.reviewed],
        [
            HoldoutShown(one.rule_id, one.rule_name, one.waiting, *_effect(one.effect))
            for one in found.drawn
        ],
        [_applied(one) for one in found.newest],
    )


def _applied(one: Applied) -> AppliedShown:
    return AppliedShown(
        one.id,
        one.kind,
        one.rule_id,
        "accepted" if one.state == "accepted" else "auto_applied",
        one.card_id,
        one.product_name,
        clock.rfc3339(one.settled_at),
        dollars(to_units(one.current_price)),
        dollars(to_units(one.proposed_price)),
        one.sold,
        signed(one.net),
        signed(one.control),
        one.control_cards,
    )


def _outcome(one: Outcome) -> OutcomeShown:
    return OutcomeShown(
        one.kind,
        one.rule_id,
        one.rule_name,
        one.accepted,
        one.auto_applied,
        one.waiting,
        *_effect(one.effect),
    )


def _effect(effect: Effect) -> tuple[Any, ...]:
    known = effect.low is not None and effect.high is not None
    return (
        effect.cards,
        effect.cards_sold,
        effect.control_cards,
        effect.control_sold,
        signed(effect.net),
        signed(effect.control),
        signed(effect.difference),
        [signed(effect.low) or "", signed(effect.high) or ""] if known else None,
        effect.verdict,
        effect.reason,
    )


class HeldShown(msgspec.Struct):
    """`price` is the price that is not asked."""

    reason: Literal["rise", "drop", "first_price", "holdout", "cap", "gate"]
    message: str
    price: str | None


class CardBadges(msgspec.Struct):
    """Null where it is unknown, stale, or does not hold."""

    card_id: int
    marketplace_id: int
    bought_out_at: datetime | None
    condition_listings: int | None
    listings_observed_at: datetime | None
    held: HeldShown | None


class BadgesShown(msgspec.Struct):
    cards: list[CardBadges]


def badges_body(found: Iterable[Badges]) -> BadgesShown:
    return BadgesShown(
        [
            CardBadges(
                one.card_id,
                one.marketplace_id,
                one.bought_out_at,
                one.listed,
                one.listed_at,
                one.held and _held(one.held),
            )
            for one in found
        ]
    )


def _held(held: Held) -> HeldShown:
    return HeldShown(held.reason, held.sentence, money(held.price))  # type: ignore[arg-type]


def signed(units: int | None) -> str | None:
    """Write an amount that may be below zero."""
    if units is None:
        return None
    return dollars(units) if units >= 0 else f"-{dollars(-units)}"


def recommendations_body(found: Recommended, page: int, per_page: int) -> RecommendationsShown:
    return RecommendationsShown(
        [_recommendation(row) for row in found.reviews],
        [_recommendation(row) for row in found.liquidation],
        [_recommendation(row) for row in found.account],
        found.total,
        dollars(to_units(found.expected)),
        page,
        per_page,
        -(-found.total // per_page),
        None if found.revision is None else clock.exact(found.revision),
    )


def _recommendation(row: Any) -> RecommendationShown:
    prices = (row.current_price, row.proposed_price, row.expected_value)
    current, proposed, expected = (
        None if price is None else dollars(to_units(price)) for price in prices
    )
    known = row.product_name is not None
    return RecommendationShown(
        row.id,
        row.kind,
        card_body(row, row.card_id) if known else None,
        row.marketplace_id,
        row.rule_id,
        current,
        proposed,
        expected,
        row.confidence,
        row.state,
        clock.exact(row.revision),
        row.created_at,
        row.expires_at,
        msgspec.Raw(row.evidence.encode()),  # type: ignore[arg-type]
    )


def decision_body(decision: Decision) -> DecisionShown:
    return DecisionShown(
        decision.status,  # type: ignore[arg-type]
        clock.exact(decision.revision),
        decision.run_id,
    )


class OptionsShown(msgspec.Struct):
    """The formula's price stands now; the aggressive one would undercut the lowest listing."""

    formula_price: str | None
    aggressive_price: str | None
    lowest_listing: str | None


class GateVerdict(msgspec.Struct):
    """`condition_listings` is the count of the decision, null where none was known."""

    condition_listings: int | None
    passed: bool
    reason: str


class HoldShown(msgspec.Struct):
    """`price_options` is null unless all evidence behind them is fresh at this moment."""

    marketplace_id: int
    card: RecommendedCard
    state: Literal["held", "bought_out", "stale"]
    price_options: OptionsShown | None
    buy_out_detected_at: datetime | None
    gate_verdict: GateVerdict
    observed_at: datetime | None


class HoldsShown(msgspec.Struct):
    holds: list[HoldShown]
    total: int


def holds_body(found: Holds) -> HoldsShown:
    return HoldsShown([_hold(one) for one in found.found], found.total)


def _hold(one: Hold) -> HoldShown:
    options = one.options
    return HoldShown(
        one.card.marketplace_id,
        card_body(one.card, one.card.id),
        one.state,  # type: ignore[arg-type]
        OptionsShown(*(money(price) for price in options)) if options else None,
        one.buy_out_detected_at,
        GateVerdict(one.listings, False, one.reason),
        one.observed_at,
    )


def card_body(row: Any, card_id: int) -> RecommendedCard:
    """Return the card of a row that has a card's columns."""
    return RecommendedCard(
        card_id,
        row.product_name,
        row.set_name,
        row.number,
        row.condition,
        row.printing,
    )
