"""The shapes of holds and recommendations: operations return them, the API sends them and pages
show them. Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from cardsync.platform.clock import exact
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, Usd, struct_of
from cardsync.prices.engine.rules import CapPeriod
from cardsync.prices.proposals.models import State
from cardsync.prices.recommendations.generation import AdviceKind, ReviewKind
from cardsync.prices.recommendations.why_held import WORDS
from cardsync.prices.rules.rule_forms import CAPS

# A card with at most this many listings gets a badge.
FEW: Final = 3


class RecommendedCard(msgspec.Struct):
    id: Annotated[int, Column("card_id")]
    """The id of the inventory row"""
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str


def _card(row: Any) -> RecommendedCard | None:
    """Return the card of a row, or None if there is no card that the caller may see."""
    known = row.card_id and row.product_name is not None
    return struct_of(RecommendedCard, row) if known else None


_Evidence = Annotated[dict[str, Any], Reads(lambda text: msgspec.Raw(text.encode()))]


class RecommendationShown(msgspec.Struct):
    """`expected_value` is an estimate and no return. `evidence` has the figures with their clocks,
    `reason`, `would_change` and `competing_signals`; advice on a rule has no card.
    """

    id: int
    kind: Annotated[str, Like(ReviewKind | AdviceKind)]
    """The kind of the review or the advice"""
    card: Annotated[RecommendedCard | None, OfRow(_card)]
    marketplace_id: int | None
    rule_id: int | None
    current_price: Usd | None
    proposed_price: Usd | None
    expected_value: Usd | None
    confidence: Literal["low", "medium", "high"]
    state: Annotated[str, Like(State)]
    revision: Annotated[str, Reads(exact)]
    """A UTC time with six fractional digits; sent back with the decision"""
    created_at: datetime
    expires_at: datetime
    # The evidence is sent as stored in the database.
    evidence: _Evidence

    @property
    def seen(self) -> Any:
        """The evidence for a page."""
        return msgspec.json.decode(self.evidence)  # type: ignore[call-overload]


class RecommendationsShown(msgspec.Struct):
    """`total` counts the price reviews, and `expected_value` sums what they may bring."""

    recommendations: list[RecommendationShown]
    """Reviews of prices; a card has at most one"""
    liquidation: list[RecommendationShown]
    account: list[RecommendationShown]
    total: int
    expected_value: str
    page: int
    per_page: int
    total_pages: int
    revision: str | None


class DecisionShown(msgspec.Struct):
    """`run_id` is the pricing run of an accepted price."""

    status: Literal["accepted", "dismissed", "snoozed", "preview_queued"]
    """The action that was taken on the review"""
    revision: str
    run_id: int | None


class RecordedShown(msgspec.Struct):
    recorded: int


class OutcomeShown(msgspec.Struct):
    """The net that applied reviews of one kind, or of one rule, brought a card within thirty days,
    beside matched cards that were left alone. `interval` holds 95 %; it is null where the verdict
    is `not_enough_sales`. `waiting` decisions are younger than thirty days.
    """

    kind: Annotated[str, Like(ReviewKind)] | None
    """The kind of the reviews"""
    rule_id: int | None
    rule_name: str | None
    accepted: int
    auto_applied: int
    """The ones that the automatic mode applied"""
    waiting: int
    cards: int
    cards_sold: int
    control_cards: int
    control_sold: int
    """Matched cards that sold"""
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
    """The rule's cards that changed their price"""
    cards_sold: int
    held_cards: int
    """Cards that kept their price by chance"""
    held_sold: int
    """Those of them that sold"""
    net_per_card: str | None
    held_per_card: str | None
    """Their net per card, in USD"""
    difference_per_card: str | None
    interval: list[str] | None
    verdict: Literal["more", "less", "no_difference", "not_enough_sales"]
    reason: str


class AppliedShown(msgspec.Struct):
    """One applied review: the net that its card brought within thirty days, and the mean of the
    matched cards that were left alone. One card alone proves nothing, so it has no verdict.
    """

    id: int
    kind: Annotated[str, Like(ReviewKind)]
    """The kind of the review"""
    rule_id: int | None
    state: Literal["accepted", "auto_applied"]
    card_id: int
    product_name: str
    settled_at: str
    current_price: str
    proposed_price: str
    sold: bool
    """The card sold"""
    net: str | None
    """The amount that the card brought within 30 days, in USD"""
    control_per_card: str | None
    control_cards: int


class OutcomesShown(msgspec.Struct):
    """`reviews` are the latest applied reviews whose thirty days have ended."""

    window_days: int
    """Over how many days"""
    outcomes: list[OutcomeShown]
    """The results of applied reviews, by kind or rule"""
    holdouts: list[HoldoutShown]
    """The same of rules, beside cards that kept their price"""
    reviews: list[AppliedShown]
    """The latest applied reviews whose days have ended"""


class HeldShown(msgspec.Struct, omit_defaults=True):
    """`price` is the price that is not asked."""

    reason: Literal["rise", "drop", "first_price", "holdout", "cap", "gate"]
    """The cause that holds the price"""
    message: str
    """Why the price is held, for people"""
    price: str | None
    """The price that is not asked, in USD"""
    cap_period: CapPeriod | None = None
    """The period of the cap that limits the price"""

    @property
    def word(self) -> str:
        if self.reason == "cap":
            return f"limited by {CAPS[self.cap_period or 'day']}"
        return WORDS.get(self.reason, "needs review")


class CardBadges(msgspec.Struct):
    """Null where it is unknown, stale, or does not hold."""

    card_id: int
    marketplace_id: int
    bought_out_at: datetime | None
    """When a buyout was seen; null: none"""
    condition_listings: int | None
    listings_observed_at: datetime | None
    """When the listings were observed"""
    held: HeldShown | None
    """Why the price is held; null: it is not"""

    @property
    def few(self) -> bool:
        return self.condition_listings is not None and self.condition_listings <= FEW


class BadgesShown(msgspec.Struct):
    cards: list[CardBadges]
    """The cards that were asked for"""


class OptionsShown(msgspec.Struct):
    """The price is the formula's now; the aggressive one would undercut the lowest listing."""

    formula_price: str | None
    aggressive_price: str | None
    lowest_listing: str | None


class GateVerdict(msgspec.Struct):
    """`condition_listings` is the count of the decision, null where none was known."""

    condition_listings: int | None
    passed: bool
    """The evidence was enough"""
    reason: str


class HoldShown(msgspec.Struct):
    """`price_options` is null unless all evidence behind them is fresh at this moment."""

    marketplace_id: int
    card: RecommendedCard
    state: Literal["held", "bought_out", "stale"]
    """Why the price is held"""
    price_options: OptionsShown | None
    buy_out_detected_at: datetime | None
    gate_verdict: GateVerdict
    observed_at: datetime | None


class HoldsShown(msgspec.Struct):
    holds: list[HoldShown]
    total: int
