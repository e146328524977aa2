"""Declares a seller's pricing settings, for all rules, and the order of the live rules. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cardsync.platform.declared_fields import Field
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.money import MAX_UNITS, UNITS_PER_CENT
from cardsync.prices.engine.rules import ADJUST_BP_MAX, DAYS_MAX, ReviewLimits, Rule, check
from cardsync.sales.lots.fee_schedule import WHOLE_BP, FeeLevel

RepricingScope = Literal["all_games", "games_with_rules"]
# Maximum of `minimum_cap_step`: with a step of more than $100, caps would limit few cards.
CAP_STEP_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class SellerPricing:
    """A seller's pricing settings, for all rules. Each card has its own pin, in the column
    `pin`.
    """

    direct_minimum: Annotated[
        int, Field(0, MAX_UNITS, money=True, section="direct", label="Minimum Direct price ($)")
    ] = 4_000
    direct_program: Annotated[
        bool, Field(section="direct", first=True, label="This store is in TCGplayer Direct")
    ] = False
    default_rule_enabled: Annotated[
        bool, Field(section="direct", label="Use the default rule for everything else")
    ] = True
    minimum_move: Annotated[
        int,
        Field(
            0,
            MAX_UNITS,
            money=True,
            section="moves",
            label="Smallest change ($)",
            hint="Skip changes smaller than this.",
        ),
    ] = 100
    # A cap that allows a move allows at least this much, because a percentage of a few cents is
    # less than a cent.
    minimum_cap_step: Annotated[
        int,
        Field(
            0,
            CAP_STEP_MAX,
            money=True,
            section="moves",
            label="Smallest daily limit ($)",
            hint="A daily cap always allows a change of at least this much.",
        ),
    ] = 500
    max_age_hours: Annotated[
        int, Field(1, 24 * DAYS_MAX, section="moves", label="Ignore market data older than (hours)")
    ] = 168
    fee_level: Annotated[
        FeeLevel,
        Field(section="fees", label="Fee level", options={"1-4": "Levels 1 to 4", "pro": "Pro"}),
    ] = "1-4"
    automatic_pricing_paused: bool = False
    awaiting_review: bool = False
    hard_floor: Annotated[
        int | None,
        Field(
            UNITS_PER_CENT,
            MAX_UNITS,
            money=True,
            section="limits",
            label="Minimum price ($)",
            hint="No rule or promotion goes below this. Leave blank for no minimum.",
        ),
    ] = None
    repricing_scope: Annotated[
        RepricingScope,
        Field(
            section="limits",
            label="Games to price",
            options={
                "all_games": "All games",
                "games_with_rules": "Only games with a rule other than the default",
            },
        ),
    ] = "all_games"
    shipping_adder: Annotated[
        int | None,
        Field(
            1,
            MAX_UNITS,
            money=True,
            section="limits",
            label="Added for tracked shipping ($)",
            hint="Added to prices that require tracking (Settings, Shop). Leave blank to add nothing.",
        ),
    ] = None
    # Prices from this amount on include the shipping adder, because such orders need tracked
    # shipping.
    tracking_threshold: Annotated[int, Field(money=True)] = 500_000
    review_up_bp: Annotated[
        int | None,
        Field(
            0,
            ADJUST_BP_MAX,
            section="review",
            label="Review increases over (%)",
            hint="Leave blank to skip review.",
        ),
    ] = None
    review_down_bp: Annotated[
        int | None,
        Field(
            0,
            WHOLE_BP,
            section="review",
            label="Review drops over (%)",
            hint="Leave blank to skip review.",
        ),
    ] = None
    review_first_price: Annotated[
        bool, Field(section="review", label="A card's first price needs review")
    ] = False

    def __post_init__(self) -> None:
        check(self)

    @property
    def review(self) -> ReviewLimits:
        """Return the review limits for rules without review limits of their own."""
        return ReviewLimits(self.review_up_bp, self.review_down_bp, self.review_first_price)


def live_rules(rules: Iterable[Rule], seller: SellerPricing) -> list[Rule]:
    """Return the live rules in order of priority: the first rule that selects a card governs it. If
    the default rule is disabled, cards that no other rule selects keep their prices.
    """
    candidates = (
        r
        for r in rules
        if r.live
        and not r.guard
        and (r.priority != DEFAULT_PRIORITY or seller.default_rule_enabled)
    )
    return sorted(candidates, key=lambda rule: (rule.priority, rule.id))
