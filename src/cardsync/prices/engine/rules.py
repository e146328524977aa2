"""Declares rules, sales and the seller-wide pricing settings as frozen dataclasses that check their
own values.

Money is in ten-thousandths of a dollar, and percentages are in basis points. `InvalidRule` names
the field whose value is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, get_args

import msgspec

from cardsync.platform.declared_fields import Field, declared, refusal
from cardsync.platform.limits import (
    DEFAULT_PRIORITY,
    RULE_NAME_CHARACTERS,
    SALE_CUT_MOST_BP,
    SEARCH_CHARACTERS,
)
from cardsync.platform.money import MAX_UNITS, UNITS_PER_CENT
from cardsync.prices.limits import RULE_PRIORITY
from cardsync.sales.lots.fee_schedule import WHOLE_BP as WHOLE_BP
from cardsync.sales.lots.fee_schedule import FeeLevel as FeeLevel

PriceSource = Literal["market", "low", "low_with_shipping", "direct_low", "sales_anchor", "current"]
Rounding = Literal["cent", "x9", "x99", "x49_x99"]
RuleState = Literal["draft", "published"]
CapPeriod = Literal["sync", "day", "week"]
CapMode = Literal["clamp", "hold"]
PRICE_SOURCES: Final[tuple[PriceSource, ...]] = get_args(PriceSource)
# The spec sets no such limit. With +10,000 % every multiplication stays within Int64, and a seller
# who types more has mistyped.
ADJUST_BP_MAX: Final = 1_000_000
# A hundred years. The engine subtracts ages from the time of the run, and the result must be a
# valid datetime.
DAYS_MAX: Final = 36_525
UNDERCUT_UP_MAX: Final = 5_000
# A hold-out is at most 20% of a rule's cards: keeping old prices on more cards would cost more than
# the comparison is worth.
HOLDOUT_MAX: Final = 2_000
NAME: Final = Field(1, RULE_NAME_CHARACTERS)
PRIORITY: Final = Field(body=Annotated[int, msgspec.Meta(ge=1, le=RULE_PRIORITY)])
QUERY: Final = Field(0, SEARCH_CHARACTERS)


class InvalidRule(ValueError):
    """Error for a value that no rule or setting may have; `field` is its name in the API."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def need(holds: bool, field: str, message: str) -> None:
    """Raise InvalidRule unless the condition holds."""
    if not holds:
        raise InvalidRule(field, message)


def check(thing: object, at: str = "") -> None:
    """Raise InvalidRule for a field outside its bounds. `at` begins the place of the field."""
    if found := refusal(thing):
        need(False, at + found[0], found[1])


@dataclass(frozen=True, slots=True)
class Stale:
    """The stale reduction: after `after_days` without a sale, the price falls by `step_bp` every
    `every_days`, by at most `limit_bp` in all.
    """

    after_days: Annotated[int, Field(0, DAYS_MAX, label="After days")]
    step_bp: Annotated[int, Field(0, WHOLE_BP, label="By percent")]
    every_days: Annotated[int, Field(1, DAYS_MAX, label="Every days")]
    limit_bp: Annotated[int, Field(0, WHOLE_BP, label="Drop at most percent")]

    def __post_init__(self) -> None:
        check(self, "stale.")


@dataclass(frozen=True, slots=True)
class SmallCap:
    """The limits of cheap cards. They replace the cap's limits if the card's price was under
    `below` when the period began.
    """

    below: Annotated[int, Field(1, MAX_UNITS, money=True, label="Cards under dollars")]
    up_bp: Annotated[int | None, Field(0, ADJUST_BP_MAX, label="Percent up for cheap cards")] = None
    down_bp: Annotated[int | None, Field(0, WHOLE_BP, label="Percent down for cheap cards")] = None

    def __post_init__(self) -> None:
        check(self, "cap.small.")


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit on a price's moves up and down within a period. None means no limit in a direction; 0
    forbids every move in that direction.
    """

    up_bp: Annotated[int | None, Field(0, ADJUST_BP_MAX, label="Percent up")] = None
    down_bp: Annotated[int | None, Field(0, WHOLE_BP, label="Percent down")] = None
    period: Annotated[CapPeriod, Field(label="Per")] = "day"
    mode: Annotated[CapMode, Field(label="A bigger change")] = "clamp"
    small: Annotated[SmallCap | None, Field(parts=("SmallCapFields", "SmallLimits"))] = None

    def __post_init__(self) -> None:
        check(self, "cap.")


@dataclass(frozen=True, slots=True)
class MarketGate:
    """The market evidence that a card needs before its rule undercuts the lowest listing."""

    min_listings: Annotated[int, Field(0)]
    min_sales_30d: Annotated[int, Field(0)]
    max_age_hours: Annotated[int, Field(1, 24 * DAYS_MAX)]
    undercut_bp: Annotated[int, Field(0, WHOLE_BP)]

    def __post_init__(self) -> None:
        check(self, "market_gate.")


@dataclass(frozen=True, slots=True)
class ReviewLimits:
    """Limits of a rise and a drop: a larger move waits for the seller's approval. With
    `first_price`, a card's first price waits, too. None sets no limit in that direction.
    """

    up_bp: Annotated[
        int | None, Field(0, ADJUST_BP_MAX, label="An increase of more than percent")
    ] = None
    down_bp: Annotated[int | None, Field(0, WHOLE_BP, label="A drop of more than percent")] = None
    first_price: Annotated[bool, Field(form="first", label="Review a card's first price, too")] = (
        False
    )

    def __post_init__(self) -> None:
        check(self, "review.")

    @property
    def asked(self) -> bool:
        return self.up_bp is not None or self.down_bp is not None or self.first_price


@dataclass(frozen=True, slots=True)
class Rule:
    """A pricing rule. The defaults are the values of fields that an API request omits. A new field
    needs a line here and an engine step that reads it.
    """

    id: int
    name: Annotated[str, NAME]
    priority: Annotated[int, PRIORITY]
    enabled: bool = True
    state: Annotated[RuleState, Field(api="draft or published")] = "draft"
    query: Annotated[str, QUERY] = ""
    price_source: Annotated[PriceSource, Field(label="Price from", guard=False)] = "market"
    fallback_sources: Annotated[tuple[PriceSource, ...], Field(guard=False)] = ("market",)
    adjust_bp: Annotated[
        int,
        Field(
            -WHOLE_BP, ADJUST_BP_MAX, form="percent", label="Percent above or below", guard=False
        ),
    ] = 0
    adjust_amount: Annotated[
        int,
        Field(-MAX_UNITS, MAX_UNITS, money=True, label="Dollars more or less", guard=False),
    ] = 0
    floor: Annotated[
        int | None,
        Field(
            0,
            MAX_UNITS,
            money=True,
            section="limits",
            label="Never below",
            line="Never below $… or above $….",
            beside=("ceiling",),
            says="Never below $….",
        ),
    ] = None
    # The second floor is the card's cost plus this many basis points, if the cost is known.
    floor_cost_bp: Annotated[
        int | None,
        Field(
            -WHOLE_BP,
            ADJUST_BP_MAX,
            section="limits",
            label="Never below cost plus percent",
            line="Never below cost plus …%.",
            hint="Leave blank for no minimum. Doesn't apply when cost is unknown.",
            uses=("costs",),
        ),
    ] = None
    ceiling: Annotated[
        int | None,
        Field(UNITS_PER_CENT, MAX_UNITS, money=True, label="Never above", says="Never above $…."),
    ] = None
    never_lower: Annotated[
        bool,
        Field(section="limits", label="Never lower a price", says="Prices are never lowered."),
    ] = False
    stale: Annotated[
        Stale | None,
        Field(
            parts=("StaleFields", "StaleCuts"),
            section="advanced",
            line="After … days without a sale, drop by …% every … days, by at most …%.",
            says="After … days without a sale, prices drop … every … days, at most ….",
            uses=("orders",),
            guard=False,
        ),
    ] = None
    velocity_boost_enabled: Annotated[
        bool,
        Field(
            section="advanced",
            label="Price cards that sell fast higher",
            says="Cards that sell fast are priced higher.",
            uses=("orders",),
            guard=False,
        ),
    ] = False
    cap: Annotated[Cap | None, Field(parts=("CapFields", "CapLimits"))] = None
    market_gate: Annotated[
        MarketGate | None,
        Field(
            parts=("GateFields", "Gate"),
            says="The lowest listing is undercut only if enough copies sell.",
            uses=("market", "products"),
            guard=False,
        ),
    ] = None
    undercut_up_bp: Annotated[
        int | None,
        Field(
            0,
            UNDERCUT_UP_MAX,
            section="price",
            label="Go up to this percent below the lowest listing",
            line="If the lowest listing is higher, go up to …% below it.",
            hint="Leave blank to skip.",
            uses=("market", "products"),
            guard=False,
        ),
    ] = None
    fee_gap_adjustment: Annotated[
        bool,
        Field(
            section="advanced",
            label="Skip prices where a higher fee would pay you less",
            says="Prices skip amounts where a higher fee would pay you less.",
            guard=False,
        ),
    ] = False
    rounding: Annotated[Rounding, Field(label="Rounding", guard=False)] = "cent"
    # The rule's review limits replace the seller-wide review limits.
    review: Annotated[ReviewLimits | None, Field(parts=("ReviewFields", "Review"), guard=False)] = (
        None
    )
    holdout_bp: Annotated[
        int | None,
        Field(
            1,
            HOLDOUT_MAX,
            section="advanced",
            label="Keep this percent of cards as a control group",
            line="Keep …% of cards as a control group.",
            hint="Up to 20%. These cards keep their old price for 30 days, and Outcomes shows what"
            " the rule earns.",
            says="… of cards, picked every 30 days, keep their old price as a control group.",
            guard=False,
        ),
    ] = None
    # A guard sets no price: its floors, ceiling and daily cap limit the price of the rule that
    # governs the card.
    guard: Annotated[
        bool,
        Field(api="It prices no card: its floors and ceiling hold beside the rule that does"),
    ] = False
    # The service sets this field, not the seller: true if the saved query can no longer be parsed.
    # Such a rule governs every card that no earlier rule governs, and blocks its pricing.
    broken: bool = False

    def __post_init__(self) -> None:
        check(self)
        _check_bounds(self)

    @property
    def live(self) -> bool:
        return self.enabled and self.state == "published"

    @property
    def sources(self) -> tuple[PriceSource, ...]:
        """Return the sources in the order in which the rule tries them, without duplicates: by
        default, the fallback source equals the first source.
        """
        return tuple(dict.fromkeys((self.price_source, *self.fallback_sources)))


def _check_bounds(rule: Rule) -> None:
    if rule.floor is None or rule.ceiling is None:
        return
    need(rule.floor <= rule.ceiling, "floor", "is above the ceiling")
    # Final prices are whole cents: no price is between a floor of 1.001 and a ceiling of 1.009.
    need(
        up_to_cent(rule.floor) <= down_to_cent(rule.ceiling),
        "floor",
        "leaves no whole cent below the ceiling",
    )


def check_guard(rule: Rule) -> None:
    """Raise InvalidRule if a guard sets a price or has no limit."""
    for each in declared(Rule):
        if not each.field.guard:
            own = getattr(rule, each.name)
            need(own == each.default, each.name, "isn't allowed: guards only set limits")
    limits = (rule.floor, rule.floor_cost_bp, rule.ceiling, rule.never_lower or None, rule.cap)
    need(
        any(limit is not None for limit in limits),
        "guard",
        "needs a limit: floor, floor_cost_bp, ceiling, never_lower or cap",
    )
    if (cap := rule.cap) is not None:
        need(cap.period == "day", "cap.period", "must be day: guards limit a day's move")
        need(cap.mode == "clamp", "cap.mode", "must be clamp: prices move up to a guard's limit")
        need(cap.small is None, "cap.small", "isn't allowed: a guard's search names its cards")
        need(cap.up_bp is not None or cap.down_bp is not None, "cap", "needs up_bp or down_bp")
    need(rule.priority != DEFAULT_PRIORITY, "priority", "is the default rule's")


@dataclass(frozen=True, slots=True)
class Sale:
    """A promotion: it reduces the rules' prices from `starts_at` until `ends_at`."""

    id: int
    name: Annotated[str, NAME]
    priority: Annotated[int, PRIORITY]
    adjust_bp: Annotated[
        int, Field(-WHOLE_BP, 0, body=Annotated[int, msgspec.Meta(ge=-SALE_CUT_MOST_BP, le=0)])
    ]
    starts_at: datetime
    ends_at: datetime
    query: Annotated[str, QUERY] = ""
    floor: Annotated[int | None, Field(0, MAX_UNITS, money=True)] = None
    enabled: bool = True
    floor_cost_bp: Annotated[
        int | None,
        Field(
            -WHOLE_BP,
            ADJUST_BP_MAX,
            api="No price below the cost plus this many basis points, if the cost is known",
        ),
    ] = None
    # If true, the sale lowers no price whose rule has `never_lower`.
    keep_never_lower: bool = False
    # True if the saved query can no longer be parsed. Such a sale selects no card, so that cards
    # keep their regular prices.
    broken: bool = False

    def __post_init__(self) -> None:
        check(self)
        need(self.starts_at < self.ends_at, "ends_at", "must be after starts_at")

    def active(self, now: datetime) -> bool:
        return self.enabled and not self.broken and self.starts_at <= now < self.ends_at


def up_to_cent(units: int) -> int:
    return -(-units // UNITS_PER_CENT) * UNITS_PER_CENT


def down_to_cent(units: int) -> int:
    return units // UNITS_PER_CENT * UNITS_PER_CENT


def live_guards(rules: Iterable[Rule]) -> list[Rule]:
    """Return the live guards in the order of their bits in the column `guards`."""
    return sorted((r for r in rules if r.live and r.guard), key=lambda rule: rule.id)


def active_sales(sales: Iterable[Sale], now: datetime) -> list[Sale]:
    """Return the active sales in order of priority: the first sale that selects a card applies to
    it.
    """
    return sorted(
        (sale for sale in sales if sale.active(now)), key=lambda sale: (sale.priority, sale.id)
    )
