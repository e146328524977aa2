"""The JSON structs of holds and recommendations, for operations, the API and pages. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from cardsync.platform.clock import exact
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, DollarsOrNone, OfRow, Reads, Usd, struct_of
from cardsync.platform.value_types import Row
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


def _card(row: Row) -> RecommendedCard | None:
    """Return the card of a row, or None if there is no card that the caller may see."""
    known = row.card_id and row.product_name is not None
    return struct_of(RecommendedCard, row) if known else None


_Evidence = Annotated[dict[str, Any], Reads(lambda text: msgspec.Raw(text.encode()))]


class RecommendationShown(msgspec.Struct):
    """`expected_value` is an estimate, not a guarantee. `evidence` has the figures with their
    times, `reason`, `would_change` and `competing_signals`; advice on a rule has no card.
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
    """`total` counts the price reviews, and `expected_value` is the sum of their expected
    values.
    """

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
    """The net per card within thirty days of applied reviews of one kind or one rule, compared with
    matched cards whose price was left alone. `interval` is the 95 % interval of the difference; it
    is null if the verdict is `not_enough_sales`. `waiting` decisions are younger than thirty days.
    """

    kind: Annotated[str, Like(ReviewKind)] | None
    """The kind of the reviews"""
    rule_id: int | None
    rule_name: str | None
    accepted: int
    auto_applied: int
    """Reviews that the automatic mode applied"""
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
    """The net per card within thirty days of cards that followed a rule, compared with the rule's
    hold-out: cards drawn at random, which kept their price. `waiting` counts the cards that were
    drawn within the last thirty days.
    """

    rule_id: int
    rule_name: str | None
    waiting: int
    cards: int
    """Number of cards that followed the rule"""
    cards_sold: int
    held_cards: int
    """Number of cards of the hold-out"""
    held_sold: int
    """Number of cards of the hold-out that sold"""
    net_per_card: str | None
    held_per_card: str | None
    """Net per card of the hold-out, in USD"""
    difference_per_card: str | None
    interval: list[str] | None
    verdict: Literal["more", "less", "no_difference", "not_enough_sales"]
    reason: str


class AppliedShown(msgspec.Struct):
    """One applied review: the net of its card within thirty days, and the mean net of the matched
    cards. A single card proves nothing, so there is no verdict.
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
    """Whether the card sold"""
    net: str | None
    """The card's net within 30 days, in USD"""
    control_per_card: str | None
    control_cards: int


class OutcomesShown(msgspec.Struct):
    """`reviews` are the latest applied reviews whose thirty days have ended."""

    window_days: int
    """Number of days for which sales are counted"""
    outcomes: list[OutcomeShown]
    """The results of applied reviews, by kind or rule"""
    holdouts: list[HoldoutShown]
    """The results of rules with a hold-out"""
    reviews: list[AppliedShown]
    """The latest applied reviews whose thirty days have ended"""


class HeldShown(msgspec.Struct, omit_defaults=True):
    """`price` is the price that is withheld."""

    reason: Literal["rise", "drop", "first_price", "holdout", "cap", "gate"]
    """The reason why the price is held"""
    message: str
    """The reason as a sentence"""
    price: DollarsOrNone
    """The price that is withheld, in USD"""
    cap_period: Annotated[CapPeriod | None, Column("period")] = None
    """The period of the cap that limits the price"""

    @property
    def word(self) -> str:
        if self.reason == "cap":
            return f"limited by {CAPS[self.cap_period or 'day']}"
        return WORDS.get(self.reason, "needs review")


class CardBadges(msgspec.Struct):
    """The badges of a card. A badge is null if its evidence is unknown or stale, or if it does not
    apply.
    """

    card_id: int
    marketplace_id: int
    bought_out_at: datetime | None
    """Time at which a buyout was detected; null if none was"""
    condition_listings: int | None
    listings_observed_at: datetime | None
    """Time at which the listings were observed"""
    held: HeldShown | None
    """The reason why the price is held; null if it is not held"""

    @property
    def few(self) -> bool:
        return self.condition_listings is not None and self.condition_listings <= FEW


class BadgesShown(msgspec.Struct):
    cards: list[CardBadges]
    """The requested cards"""


class OptionsShown(msgspec.Struct):
    """`formula_price` is the card's price by the rule's formula; `aggressive_price` would undercut
    the lowest listing.
    """

    formula_price: str | None
    aggressive_price: str | None
    lowest_listing: str | None


class GateVerdict(msgspec.Struct):
    """`condition_listings` is the number of listings when the gate decided, null if it was
    unknown.
    """

    condition_listings: int | None
    passed: bool
    """Whether the evidence was sufficient"""
    reason: str


class HoldShown(msgspec.Struct):
    """`price_options` is null unless all evidence behind the prices is fresh now."""

    marketplace_id: int
    card: RecommendedCard
    state: Literal["held", "bought_out", "stale"]
    """The state of the hold"""
    price_options: OptionsShown | None
    buy_out_detected_at: datetime | None
    gate_verdict: GateVerdict
    observed_at: datetime | None


class HoldsShown(msgspec.Struct):
    holds: list[HoldShown]
    total: int
