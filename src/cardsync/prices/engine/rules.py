"""Defines the base rule, the sale, the four presets and the seller-wide settings as frozen objects
that cannot contradict themselves.

Values from the wire or the database have money in ten-thousandths of a dollar and percentages in
basis points; `InvalidRule` names the field that contradicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final, Literal, get_args

from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.money import MAX_UNITS, UNITS_PER_CENT, dollars
from cardsync.sales.lots.fee_schedule import WHOLE_BP as WHOLE_BP
from cardsync.sales.lots.fee_schedule import FeeLevel as FeeLevel

PriceSource = Literal["market", "low", "low_with_shipping", "direct_low", "sales_anchor", "current"]
Rounding = Literal["cent", "x9", "x99", "x49_x99"]
RuleState = Literal["draft", "published"]
CapPeriod = Literal["sync", "day", "week"]
CapMode = Literal["clamp", "hold"]
RepricingScope = Literal["all_games", "games_with_rules"]
PresetName = Literal["premium", "competitive", "move", "buy-box"]
PRICE_SOURCES: Final[tuple[PriceSource, ...]] = get_args(PriceSource)
# The spec has no such limit: +10,000 % keeps every product inside Int64, and a seller who types
# more has mistyped.
ADJUST_BP_MAX: Final = 1_000_000
# The limit is a hundred years: an age is subtracted from a time, and the result must stay a time.
DAYS_MAX: Final = 36_525
DEFAULT_PRESET: Final = "competitive"
UNDERCUT_UP_MAX: Final = 5_000
# With a larger least step, no cap would limit most cards.
CAP_STEP_MAX: Final = 1_000_000
# A hold-out is a small part of the cards: more would cost more than its answer is worth.
HOLDOUT_MAX: Final = 2_000


class InvalidRule(ValueError):
    """A value is one that no rule or setting may have; `field` is its name on the wire."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def _need(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise InvalidRule(field, message)


def _need_member(value: str, allowed: object, field: str) -> None:
    names = get_args(allowed)
    _need(value in names, field, f"must be one of {', '.join(names)}")


def _need_range(
    value: int | None,
    low: int,
    high: int,
    field: str,
) -> None:
    _need(value is None or low <= value <= high, field, f"must be between {low} and {high}")


def _need_amount(
    units: int | None,
    low: int,
    high: int,
    field: str,
) -> None:
    # A seller who wrote dollars gets the answer in dollars.
    amounts = [f"-{dollars(-limit)}" if limit < 0 else dollars(limit) for limit in (low, high)]
    _need(
        units is None or low <= units <= high,
        field,
        f"must be between {amounts[0]} and {amounts[1]}",
    )


@dataclass(frozen=True, slots=True)
class Stale:
    """From `after_days` without a sale on, the price falls by `step_bp` every `every_days`, by at
    most `limit_bp` in all.
    """

    after_days: int
    step_bp: int
    every_days: int
    limit_bp: int

    def __post_init__(self) -> None:
        _need_range(self.after_days, 0, DAYS_MAX, "stale.after_days")
        _need_range(self.every_days, 1, DAYS_MAX, "stale.every_days")
        _need_range(self.step_bp, 0, WHOLE_BP, "stale.step_bp")
        _need_range(self.limit_bp, 0, WHOLE_BP, "stale.limit_bp")


@dataclass(frozen=True, slots=True)
class SmallCap:
    """Separate limits bind cards whose period began below this price."""

    below: int
    up_bp: int | None
    down_bp: int | None

    def __post_init__(self) -> None:
        _need_amount(self.below, 1, MAX_UNITS, "cap.small.below")
        _need_range(self.up_bp, 0, ADJUST_BP_MAX, "cap.small.up_bp")
        _need_range(self.down_bp, 0, WHOLE_BP, "cap.small.down_bp")


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap limits a price's move within a period. None leaves that direction free, 0 forbids
    it.
    """

    up_bp: int | None
    down_bp: int | None
    period: CapPeriod = "day"
    mode: CapMode = "clamp"
    small: SmallCap | None = None

    def __post_init__(self) -> None:
        _need_range(self.up_bp, 0, ADJUST_BP_MAX, "cap.up_bp")
        _need_range(self.down_bp, 0, WHOLE_BP, "cap.down_bp")
        _need_member(self.period, CapPeriod, "cap.period")
        _need_member(self.mode, CapMode, "cap.mode")


@dataclass(frozen=True, slots=True)
class MarketGate:
    """The lowest listing is undercut only where this evidence exists."""

    min_listings: int
    min_sales_30d: int
    max_age_hours: int
    undercut_bp: int

    def __post_init__(self) -> None:
        _need(self.min_listings >= 0, "market_gate.min_listings", "must not be negative")
        _need(self.min_sales_30d >= 0, "market_gate.min_sales_30d", "must not be negative")
        _need_range(self.max_age_hours, 1, 24 * DAYS_MAX, "market_gate.max_age_hours")
        _need_range(self.undercut_bp, 0, WHOLE_BP, "market_gate.undercut_bp")


@dataclass(frozen=True, slots=True)
class ReviewLimits:
    """A larger rise or drop, and with `first_price` a card's very first price, waits for the
    seller's word instead of being exported. None sets no limit in that direction.
    """

    up_bp: int | None = None
    down_bp: int | None = None
    first_price: bool = False

    def __post_init__(self) -> None:
        _need_range(self.up_bp, 0, ADJUST_BP_MAX, "review.up_bp")
        _need_range(self.down_bp, 0, WHOLE_BP, "review.down_bp")

    @property
    def asked(self) -> bool:
        return self.up_bp is not None or self.down_bp is not None or self.first_price


@dataclass(frozen=True, slots=True)
class Rule:
    """A base rule has by default the values of a posted rule whose fields are omitted."""

    id: int
    name: str
    priority: int
    enabled: bool = True
    state: RuleState = "draft"
    query: str = ""
    price_source: PriceSource = "market"
    fallback_sources: tuple[PriceSource, ...] = ("market",)
    adjust_bp: int = 0
    adjust_amount: int = 0
    floor: int | None = None
    # The floor is also this much above the card's cost, where that is known.
    floor_cost_bp: int | None = None
    ceiling: int | None = None
    never_lower: bool = False
    stale: Stale | None = None
    velocity_boost_enabled: bool = False
    cap: Cap | None = None
    market_gate: MarketGate | None = None
    undercut_up_bp: int | None = None
    fee_gap_adjustment: bool = False
    rounding: Rounding = "cent"
    # The rule's own limits replace the seller-wide ones.
    review: ReviewLimits | None = None
    holdout_bp: int | None = None
    # A guard prices no card: its floors and ceiling hold beside the rule that does.
    guard: bool = False
    # Not a field of the seller's: true if the saved query can no longer be parsed. Such a rule
    # takes every card that no earlier rule governs, and blocks it.
    broken: bool = False

    def __post_init__(self) -> None:
        _check_names(self)
        _check_amounts(self)
        _check_bounds(self)

    @property
    def live(self) -> bool:
        return self.enabled and self.state == "published"

    @property
    def sources(self) -> tuple[PriceSource, ...]:
        """Return every source once, in the order in which the rule tries them: the default fallback
        repeats the default source.
        """
        return tuple(dict.fromkeys((self.price_source, *self.fallback_sources)))


def _check_names(rule: Rule) -> None:
    _need_member(rule.state, RuleState, "state")
    _need_member(rule.rounding, Rounding, "rounding")
    _need_member(rule.price_source, PriceSource, "price_source")
    for source in rule.fallback_sources:
        _need_member(source, PriceSource, "fallback_sources")


def _check_amounts(rule: Rule) -> None:
    _need_range(rule.adjust_bp, -WHOLE_BP, ADJUST_BP_MAX, "adjust_bp")
    _need_range(rule.floor_cost_bp, -WHOLE_BP, ADJUST_BP_MAX, "floor_cost_bp")
    _need_range(rule.undercut_up_bp, 0, UNDERCUT_UP_MAX, "undercut_up_bp")
    _need_range(rule.holdout_bp, 1, HOLDOUT_MAX, "holdout_bp")
    _need_amount(rule.adjust_amount, -MAX_UNITS, MAX_UNITS, "adjust_amount")
    _need_amount(rule.floor, 0, MAX_UNITS, "floor")
    _need_amount(rule.ceiling, UNITS_PER_CENT, MAX_UNITS, "ceiling")


def _check_bounds(rule: Rule) -> None:
    if rule.floor is None or rule.ceiling is None:
        return
    _need(rule.floor <= rule.ceiling, "floor", "is above the ceiling")
    # Final prices are whole cents: a floor of 1.001 and a ceiling of 1.009 leave none.
    _need(
        up_to_cent(rule.floor) <= down_to_cent(rule.ceiling),
        "floor",
        "leaves no whole cent below the ceiling",
    )


# A guard has no price of its own: these fields are as in a rule that omits them.
_PRICED: Final = (
    "price_source", "fallback_sources", "adjust_bp", "adjust_amount", "stale",
    "velocity_boost_enabled", "market_gate", "undercut_up_bp", "fee_gap_adjustment",
    "rounding", "review", "holdout_bp",
)  # fmt: skip


def check_guard(rule: Rule) -> None:
    """Raise InvalidRule for a guard with a price of its own or without a limit."""
    for field in fields(Rule):
        if field.name in _PRICED:
            given = getattr(rule, field.name)
            _need(given == field.default, field.name, "isn't allowed: guards only set limits")
    limits = (rule.floor, rule.floor_cost_bp, rule.ceiling, rule.never_lower or None, rule.cap)
    _need(
        any(limit is not None for limit in limits),
        "guard",
        "needs a limit: floor, floor_cost_bp, ceiling, never_lower or cap",
    )
    if (cap := rule.cap) is not None:
        _need(cap.period == "day", "cap.period", "must be day: guards limit a day's move")
        _need(cap.mode == "clamp", "cap.mode", "must be clamp: prices move up to a guard's limit")
        _need(cap.small is None, "cap.small", "isn't allowed: a guard's search names its cards")
        _need(cap.up_bp is not None or cap.down_bp is not None, "cap", "needs up_bp or down_bp")
    _need(rule.priority != DEFAULT_PRIORITY, "priority", "is the default rule's")


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale temporarily overlays the prices that the base rules ask."""

    id: int
    name: str
    priority: int
    adjust_bp: int
    starts_at: datetime
    ends_at: datetime
    query: str = ""
    floor: int | None = None
    enabled: bool = True
    # The reduced price is not below the card's cost plus this much, where the cost is known.
    floor_cost_bp: int | None = None
    # Prices that their rule never lowers stay; otherwise a sale lowers them, too.
    keep_never_lower: bool = False
    # The flag is the same as a rule's, but a sale that cannot be read only selects nothing: without
    # the sale the price stays.
    broken: bool = False

    def __post_init__(self) -> None:
        _need_range(self.adjust_bp, -WHOLE_BP, 0, "adjust_bp")
        _need_amount(self.floor, 0, MAX_UNITS, "floor")
        _need_range(self.floor_cost_bp, -WHOLE_BP, ADJUST_BP_MAX, "floor_cost_bp")
        _need(self.starts_at < self.ends_at, "ends_at", "must be after starts_at")

    def active(self, now: datetime) -> bool:
        return self.enabled and not self.broken and self.starts_at <= now < self.ends_at


def up_to_cent(units: int) -> int:
    return -(-units // UNITS_PER_CENT) * UNITS_PER_CENT


def down_to_cent(units: int) -> int:
    return units // UNITS_PER_CENT * UNITS_PER_CENT


@dataclass(frozen=True, slots=True)
class SellerPricing:
    """These settings hold for all rules of a seller. Pins are set per card, in the column `pin`."""

    direct_minimum: int = 4_000
    direct_program: bool = False
    default_rule_enabled: bool = True
    minimum_move: int = 100
    # A cap that allows any move allows at least this much: a part of a few cents is under a cent.
    minimum_cap_step: int = 500
    max_age_hours: int = 168
    fee_level: FeeLevel = "1-4"
    automatic_pricing_paused: bool = False
    awaiting_review: bool = False
    hard_floor: int | None = None
    repricing_scope: RepricingScope = "all_games"
    shipping_adder: int | None = None
    # The shipping adder is asked from this price on: such orders need a tracked parcel.
    tracking_threshold: int = 500_000
    review_up_bp: int | None = None
    review_down_bp: int | None = None
    review_first_price: bool = False

    def __post_init__(self) -> None:
        _need_amount(self.direct_minimum, 0, MAX_UNITS, "direct_minimum")
        _need_amount(self.minimum_move, 0, MAX_UNITS, "minimum_move")
        _need_amount(self.minimum_cap_step, 0, CAP_STEP_MAX, "minimum_cap_step")
        _need_range(self.max_age_hours, 1, 24 * DAYS_MAX, "max_age_hours")
        _need_member(self.fee_level, FeeLevel, "fee_level")
        _need_member(self.repricing_scope, RepricingScope, "repricing_scope")
        _need_amount(self.hard_floor, UNITS_PER_CENT, MAX_UNITS, "hard_floor")
        _need_amount(self.shipping_adder, 1, MAX_UNITS, "shipping_adder")
        _need_range(self.review_up_bp, 0, ADJUST_BP_MAX, "review_up_bp")
        _need_range(self.review_down_bp, 0, WHOLE_BP, "review_down_bp")

    @property
    def review(self) -> ReviewLimits:
        """Return the limits of the cards whose rule has no own limits."""
        return ReviewLimits(self.review_up_bp, self.review_down_bp, self.review_first_price)


def live_rules(rules: Iterable[Rule], seller: SellerPricing) -> list[Rule]:
    """Return the rules that may govern; the first that selects a card wins. A disabled default rule
    leaves cards that no other rule selects as they are.
    """
    candidates = (
        r
        for r in rules
        if r.live
        and not r.guard
        and (r.priority != DEFAULT_PRIORITY or seller.default_rule_enabled)
    )
    return sorted(candidates, key=lambda rule: (rule.priority, rule.id))


def live_guards(rules: Iterable[Rule]) -> list[Rule]:
    """Return the guards that hold; their order is that of the bits in the column `guards`."""
    return sorted((r for r in rules if r.live and r.guard), key=lambda rule: rule.id)


def active_sales(sales: Iterable[Sale], now: datetime) -> list[Sale]:
    """Return the sales that may apply at this moment; the first that selects a card wins."""
    return sorted(
        (sale for sale in sales if sale.active(now)), key=lambda sale: (sale.priority, sale.id)
    )


def _daily(bp: int, small_bp: int) -> Cap:
    return Cap(
        bp,
        bp,
        small=SmallCap(below=50_000, up_bp=small_bp, down_bp=small_bp),
    )


_PRESET = Rule(id=0, name="", priority=DEFAULT_PRIORITY, state="published")
PRESETS: Final[dict[PresetName, Rule]] = {
    "premium": replace(
        _PRESET,
        name="Premium",
        fallback_sources=("low",),
        adjust_bp=500,
        never_lower=True,
        undercut_up_bp=500,
        cap=_daily(1_500, 1_000),
    ),
    "competitive": replace(
        _PRESET,
        name="Competitive",
        fallback_sources=("low",),
        adjust_bp=-100,
        never_lower=True,
        undercut_up_bp=100,
        cap=_daily(2_000, 1_500),
    ),
    "move": replace(
        _PRESET,
        name="Sell-through",
        price_source="low",
        fallback_sources=("market",),
        stale=Stale(after_days=60, step_bp=500, every_days=7, limit_bp=4_000),
        cap=_daily(2_500, 5_000),
    ),
    "buy-box": replace(
        _PRESET,
        name="Lowest price",
        price_source="low_with_shipping",
        fallback_sources=("low", "market"),
        adjust_bp=-200,
        cap=_daily(3_000, 5_000),
    ),
}


def preset_rule(name: str) -> Rule:
    """Return the one ordinary rule that a preset makes; its id is 0 until it is saved."""
    for preset, rule in PRESETS.items():
        if preset == name:
            return rule
    raise InvalidRule("preset", f"must be one of {', '.join(PRESETS)}")
