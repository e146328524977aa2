"""Defines a buy rule as a frozen object. A rule with contradictory fields raises `InvalidRule`,
which names the field. Pure.

Money is in ten-thousandths of a dollar, percentages are in basis points.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, get_args

from cardsync.platform.declared_fields import Field, Whole
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.read_json import Id
from cardsync.prices.engine.rules import (
    DAYS_MAX,
    NAME,
    PRIORITY,
    QUERY,
    WHOLE_BP,
    InvalidRule,
    RuleState,
    check,
    need,
)

Base = Literal["target", "market", "low"]
Grade = Literal["NM", "LP", "MP", "HP", "DMG"]
BuyPresetName = Literal["conservative", "standard", "hungry"]
GRADES: Final[tuple[Grade, ...]] = get_args(Grade)
# A larger percentage is a typing error: no shop pays more than twice a card's selling price.
PAID_BP_MAX: Final = 2 * WHOLE_BP
COPIES_MAX: Final = 1_000_000
STEPS_MAX: Final = 50
_AMOUNT: Final = Field(0, money=True)
_PAID: Final = Field(0, PAID_BP_MAX)
_STEPS: Final = Field(parts=("StepFields", "StepShown"))


@dataclass(frozen=True, slots=True)
class Band:
    """A band: cards with at least the selling price `start` are paid with these percentages of
    their selling price.
    """

    start: Annotated[int, Field(0, money=True, json="from", api="From this price on, in USD")]
    cash_bp: Annotated[int, _PAID]
    credit_bp: Annotated[int, _PAID]

    def __post_init__(self) -> None:
        check(self, "bands.")


@dataclass(frozen=True, slots=True)
class BulkPrice:
    """The amounts that are paid for each bulk copy of this rarity and game. An empty rarity or game
    means any.
    """

    cash: Annotated[int, _AMOUNT]
    credit: Annotated[int, _AMOUNT]
    rarity: Annotated[str, Field(0, 100, api="The code of the rarity; empty: any")] = ""
    game: Annotated[str, Field(0, 100, api="The product line; empty: any")] = ""

    def __post_init__(self) -> None:
        check(self, "bulk.")


@dataclass(frozen=True, slots=True)
class Step:
    """A step: from `start` copies or days to sell on, the price of a card is lower by `less_bp`."""

    start: Annotated[int, Field(0, COPIES_MAX, json="from", api="From so many copies, or days, on")]
    less_bp: Annotated[int, Field(0, WHOLE_BP)]

    def __post_init__(self) -> None:
        check(self, "steps.")


@dataclass(frozen=True, slots=True)
class ListStep:
    """A change of the prices of the cards on one of the seller's lists by `change_bp`."""

    list_id: Annotated[int, Field(body=Id)]
    change_bp: Annotated[int, Field(-WHOLE_BP, WHOLE_BP)]
    name: Annotated[str, Field(0, 100)] = ""

    def __post_init__(self) -> None:
        check(self, "lists.")


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest amounts that may be paid in an offer and in a day. None means no limit."""

    offer_cash: Annotated[int | None, _AMOUNT] = None
    offer_credit: Annotated[int | None, _AMOUNT] = None
    day_cash: Annotated[int | None, _AMOUNT] = None
    day_credit: Annotated[int | None, _AMOUNT] = None

    def __post_init__(self) -> None:
        check(self, "budget.")


_ALL_GRADES: Final = (
    ("NM", 10_000),
    ("LP", 8_500),
    ("MP", 7_000),
    ("HP", 5_000),
    ("DMG", 3_000),
)


@dataclass(frozen=True, slots=True)
class BuyRule:
    """A buy rule: the cards that a shop buys, and the prices that it pays for them.

    The first of `bands` begins at 0, and each further band above the previous band. A condition
    that is missing in `conditions` is not bought. Cards with a selling price below `bulk_below` are
    bulk; if it is None, no card is bulk. `most_copies` limits the copies in stock, on order and in
    the offer together.
    """

    id: int
    name: Annotated[str, NAME]
    priority: Annotated[int, PRIORITY]
    enabled: bool = True
    state: Annotated[RuleState, Field(api="draft or published")] = "draft"
    query: Annotated[str, QUERY] = ""
    base: Base = "market"
    bands: Annotated[tuple[Band, ...], Field(parts=("BandFields", "BandShown"))] = (
        Band(0, 5_000, 6_000),
    )
    conditions: Annotated[
        tuple[tuple[str, int], ...],
        Field(
            body=dict[Grade, Whole],
            answer=dict[str, int],
            api="The share of a Near Mint price that each condition counts, in basis points",
        ),
    ] = _ALL_GRADES
    bulk_below: Annotated[int | None, _AMOUNT] = None
    bulk: Annotated[tuple[BulkPrice, ...], Field(parts=("BulkFields", "BulkShown"))] = ()
    most_copies: Annotated[int | None, Field(0, COPIES_MAX)] = None
    stock_steps: Annotated[tuple[Step, ...], _STEPS] = ()
    days_steps: Annotated[tuple[Step, ...], _STEPS] = ()
    lists: Annotated[
        tuple[ListStep, ...],
        Field(parts=("ListFields", "ListShown"), api="How being on a list changes what is paid"),
    ] = ()
    budget: Annotated[Budget, Field(parts=("BudgetFields", "BudgetShown"))] = Budget()
    # True if the saved query can't be parsed any more. Such a rule governs all cards that no
    # earlier rule governs, and buys none of them.
    broken: bool = False

    def __post_init__(self) -> None:
        check(self)
        _check_bands(self.bands)
        _check_steps(self.stock_steps, "stock_steps", COPIES_MAX)
        _check_steps(self.days_steps, "days_steps", DAYS_MAX)
        _check_conditions(self.conditions)
        _check_distinct(self)

    @property
    def live(self) -> bool:
        return self.enabled and self.state == "published"


def _check_bands(bands: tuple[Band, ...]) -> None:
    need(0 < len(bands) <= STEPS_MAX, "bands", f"needs 1 to {STEPS_MAX} bands")
    starts = [band.start for band in bands]
    need(starts[0] == 0, "bands", "the first tier must start at 0")
    need(starts == sorted(set(starts)), "bands", "each tier must start above the one before")


def _check_steps(steps: tuple[Step, ...], name: str, most: int) -> None:
    need(len(steps) <= STEPS_MAX, name, f"has at most {STEPS_MAX} steps")
    starts = [step.start for step in steps]
    need(starts == sorted(set(starts)), name, "each step must start above the one before")
    less = [step.less_bp for step in steps]
    need(less == sorted(less), name, "each step must pay no more than the one before")
    need(not starts or starts[-1] <= most, name, f"must start at {most} or lower")


def _check_conditions(conditions: tuple[tuple[str, int], ...]) -> None:
    grades = [grade for grade, _ in conditions]
    known = all(grade in GRADES for grade in grades)
    need(known, "conditions", f"must be of {', '.join(GRADES)}")
    need(len(grades) == len(set(grades)), "conditions", "has a condition twice")
    for _, share in conditions:
        need(0 <= share <= WHOLE_BP, "conditions", f"must be between 0 and {WHOLE_BP}")


def _check_distinct(rule: BuyRule) -> None:
    kinds = [(price.rarity.lower(), price.game.lower()) for price in rule.bulk]
    need(len(kinds) == len(set(kinds)), "bulk", "has a rarity and game twice")
    need(len(kinds) <= STEPS_MAX, "bulk", f"has at most {STEPS_MAX} prices")
    ids = [step.list_id for step in rule.lists]
    need(len(ids) == len(set(ids)), "lists", "has a list twice")


def live_buy_rules(rules: Iterable[BuyRule]) -> list[BuyRule]:
    """Return the published, enabled rules by priority. The first rule that selects a card governs
    it.
    """
    live = [rule for rule in rules if rule.live]
    return sorted(live, key=lambda rule: (rule.priority, rule.id))


def _bulk(common: int, better: int) -> tuple[BulkPrice, ...]:
    return (
        BulkPrice(common, common),
        BulkPrice(better, better, "Rare"),
        BulkPrice(better, better, "Mythic"),
    )


_PRESET = BuyRule(
    id=0,
    name="Standard",
    priority=DEFAULT_PRIORITY,
    state="published",
    bands=(
        Band(0, 3_500, 4_500),
        Band(50_000, 5_000, 6_000),
        Band(250_000, 6_000, 7_000),
    ),
    bulk_below=10_000,
    bulk=_bulk(50, 500),
    most_copies=16,
    stock_steps=(Step(4, 1_000), Step(8, 3_000)),
    days_steps=(Step(90, 1_000), Step(180, 2_500)),
)
BUY_PRESETS: Final[dict[BuyPresetName, BuyRule]] = {
    "conservative": replace(
        _PRESET,
        name="Conservative",
        base="low",
        bands=(
            Band(0, 2_500, 3_500),
            Band(50_000, 4_000, 5_000),
            Band(250_000, 5_000, 6_000),
        ),
        bulk_below=20_000,
        bulk=_bulk(0, 200),
        most_copies=8,
        stock_steps=(Step(2, 1_500), Step(4, 4_000)),
        days_steps=(Step(60, 1_500), Step(120, 4_000)),
    ),
    "standard": _PRESET,
    "hungry": replace(
        _PRESET,
        name="Aggressive",
        bands=(
            Band(0, 4_500, 5_500),
            Band(50_000, 6_000, 7_000),
            Band(250_000, 7_000, 8_000),
        ),
        bulk_below=5_000,
        bulk=_bulk(100, 1_000),
        most_copies=24,
        stock_steps=(Step(12, 1_500),),
        days_steps=(Step(180, 1_500),),
    ),
}


def buy_preset(name: str) -> BuyRule:
    """Return the rule of a preset. Its ID is 0 until it is saved. Raises InvalidRule."""
    for preset, rule in BUY_PRESETS.items():
        if preset == name:
            return rule
    raise InvalidRule("preset", f"must be one of {', '.join(BUY_PRESETS)}")
