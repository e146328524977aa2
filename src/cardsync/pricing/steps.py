"""The steps of pricing.md, one function each, in the order of its table: a run's settings in, column expressions out.

Columns that begin with `_` are the working set (the governing rule's parameters, the limits of the rounding) and are
dropped at the end; all others are receipt columns. A later step (market gate, stale reduction, cap, sale, direct
minimum, fee gap) is one more function `(price, run) -> expressions` that writes `after_<its name>`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, reduce
from operator import or_
from typing import Final

import polars as pl

from cardsync.money import MAX_UNITS, UNITS_PER_CENT
from cardsync.pricing.rules import (
    PRICE_SOURCES,
    WHOLE_BP,
    PriceSource,
    Rounding,
    Rule,
    SellerPricing,
    down_to_cent,
    live_rules,
)

# The order is the bit of each code in the column `blockers`; append only, receipts are kept.
BLOCKERS: Final[dict[str, str]] = {
    "automatic_pricing_paused": "Automatic pricing is paused.",
    "pinned": "The price is pinned.",
    "product_line_disabled": "Its product line is switched off for pricing.",
    "no_rule": "No published rule selects it.",
    "rule_broken": "The query of a rule that might select it cannot be read.",
    "no_usable_reference": "None of the rule's price sources is present and recent enough.",
    "out_of_stock": "None are in stock.",
    "custom_without_reference": "It is a custom listing without a usable reference price.",
    "awaiting_review": "The run waits for your review.",
}
BLOCKER_BIT: Final = {code: 1 << bit for bit, code in enumerate(BLOCKERS)}

SOURCE: Final = pl.Enum(PRICE_SOURCES)
REFUSAL: Final = pl.Enum(["absent", "too_old", "too_few_sales", "sales_too_old", "evidence_too_old"])
BOUND: Final = pl.Enum(["floor", "ceiling", "never_lower", "marketplace_minimum", "largest_price"])

LARGEST_PRICE: Final = down_to_cent(MAX_UNITS)
SALES_ANCHOR_MIN_SALES: Final = 3
SALES_ANCHOR_NEWEST: Final = timedelta(days=30)
SALES_ANCHOR_FETCHED: Final = timedelta(hours=24)
# An ending is met where cents + 1 is a multiple of this.
ENDING_CENTS: Final[dict[Rounding, int]] = {"cent": 1, "x9": 10, "x99": 100, "x49_x99": 50}

_PRICE_COLUMN: Final[dict[PriceSource, str]] = {"sales_anchor": "sales_median"}


@dataclass(frozen=True)
class Run:
    """What is the same for every card of a run."""

    rules: Sequence[Rule]
    seller: SellerPricing
    now: datetime

    @cached_property
    def live(self) -> list[Rule]:
        return live_rules(self.rules, self.seller)

    @cached_property
    def orders(self) -> list[tuple[PriceSource, ...]]:
        """The different orders in which sources are tried: far fewer than rules, so each is worked out once."""
        return list(dict.fromkeys(rule.sources for rule in self.live))

    @property
    def sources(self) -> list[PriceSource]:
        return [source for source in PRICE_SOURCES if any(source in order for order in self.orders)]


def rule_parameters(run: Run) -> pl.DataFrame:
    """What the steps read of a rule, one row a live rule, to be joined to the cards by `rule_id`."""
    return pl.DataFrame(
        [
            {
                "rule_id": rule.id,
                "_order": run.orders.index(rule.sources),
                "_factor": WHOLE_BP + rule.adjust_bp,
                "_amount": rule.adjust_amount,
                "_floor": rule.floor,
                "_ceiling": rule.ceiling,
                "_never_lower": rule.never_lower,
                "_ending": ENDING_CENTS[rule.rounding],
            }
            for rule in run.live
        ],
        schema={
            "rule_id": pl.Int64,
            "_order": pl.Int16,
            "_factor": pl.Int64,
            "_amount": pl.Int64,
            "_floor": pl.Int64,
            "_ceiling": pl.Int64,
            "_never_lower": pl.Boolean,
            "_ending": pl.Int64,
        },
    )


# 1
def eligibility(run: Run) -> list[pl.Expr]:
    """Every reason why a card keeps its price, as bits. It is judged after steps 2 and 3, whose failures are reasons."""
    governed, usable = pl.col("rule_id").is_not_null(), pl.col("source").is_not_null()
    custom = pl.col("custom").fill_null(False)
    reasons = {
        "automatic_pricing_paused": pl.lit(run.seller.automatic_pricing_paused),
        "product_line_disabled": ~pl.col("product_line_enabled").fill_null(True),
        "no_rule": ~governed,
        "no_usable_reference": governed & ~usable & ~custom,
        "out_of_stock": pl.col("quantity").fill_null(0) <= 0,
        "custom_without_reference": governed & ~usable & custom,
    }
    bits = [flag.cast(pl.UInt16) * pl.lit(BLOCKER_BIT[code], pl.UInt16) for code, flag in reasons.items()]
    # No step runs for a pinned card, this one included: its blockers do not name the pin, nor anything else.
    unpinned = pl.col("pin").is_null().cast(pl.UInt16)
    return [(reduce(or_, bits) * unpinned).alias("blockers")]


# 2
def governing_rule(run: Run, *, resolved: bool) -> list[pl.Expr]:
    """With `resolved`, the column `rule_id` came with the cards (queries are answered in SQL); else the first live rule."""
    rule = pl.col("rule_id") if resolved else pl.lit(run.live[0].id if run.live else None, pl.Int64)
    return [_where(pl.col("pin").is_null(), rule).alias("rule_id")]


# 3
def references(run: Run) -> list[pl.Expr]:
    """Why each price that some rule asks for cannot be used; null where it can."""
    governed = pl.col("rule_id").is_not_null()
    return [_where(governed, _refusal(source, run)).alias(f"refused_{source}") for source in run.sources]


def price_source(run: Run) -> list[pl.Expr]:
    """The first source of the governing rule's order that was not refused; never the current price by itself."""
    picks = [
        (pl.col("_order") == number, pl.coalesce(*(_unrefused(source) for source in order)))
        for number, order in enumerate(run.orders)
    ]
    return [_first(picks, SOURCE).alias("source")]


def source_price(run: Run) -> list[pl.Expr]:
    source = pl.col("source")
    prices = [(source == name, price_of(name)) for name in run.sources]
    times = [(source == name, time) for name in run.sources if (time := _observed_at(name)) is not None]
    return [
        _first(prices, pl.Int64()).alias("base"),
        _first(times, pl.Datetime("us", "UTC")).alias("source_observed_at"),
    ]


def price_of(source: PriceSource) -> pl.Expr:
    if source == "current":
        # The period's first price, so that repeated runs do not compound.
        return pl.coalesce("period_start_price", "current_price")
    return pl.col(_PRICE_COLUMN.get(source, source))


def _observed_at(source: PriceSource) -> pl.Expr | None:
    if source == "current":
        return None
    return pl.col("sales_fetched_at" if source == "sales_anchor" else "observed_at")


def _refusal(source: PriceSource, run: Run) -> pl.Expr:
    price = price_of(source)
    checks = [("absent", price.is_null())]
    if source == "sales_anchor":
        checks += [
            ("too_few_sales", ~_true(pl.col("sales_count") >= SALES_ANCHOR_MIN_SALES)),
            ("sales_too_old", ~_since(run.now - SALES_ANCHOR_NEWEST, "sales_newest_at")),
            ("evidence_too_old", ~_since(run.now - SALES_ANCHOR_FETCHED, "sales_fetched_at")),
        ]
    elif source != "current":
        # A price of unknown age is not known to be young enough.
        checks += [("too_old", ~_since(run.now - timedelta(hours=run.seller.max_age_hours), "observed_at"))]
    return _first([(fails, pl.lit(reason, REFUSAL)) for reason, fails in checks], REFUSAL)


def _unrefused(source: PriceSource) -> pl.Expr:
    return _where(pl.col(f"refused_{source}").is_null(), pl.lit(source, SOURCE))


# 4
def formula(price: pl.Expr, run: Run) -> list[pl.Expr]:
    scaled = (price * pl.col("_factor") + WHOLE_BP // 2) // WHOLE_BP
    return [(scaled + pl.col("_amount")).alias("after_formula")]


# 7
def hard_limits(run: Run) -> list[pl.Expr]:
    """The range that `bounds` enforces and `rounding` stays in; cap and sale will narrow or widen it."""
    current = _where(pl.col("_never_lower"), pl.col("current_price"))
    return [
        pl.max_horizontal("_floor", current, pl.lit(UNITS_PER_CENT, pl.Int64)).alias("_low"),
        pl.min_horizontal("_ceiling", pl.lit(LARGEST_PRICE, pl.Int64)).alias("_high"),
    ]


def bounds(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """The ceiling comes last: never_lower yields to it."""
    low, high = pl.col("_low"), pl.col("_high")
    raised = price.clip(lower_bound=low)
    too_high, too_low = raised > high, price < low
    binding = [
        (too_high & (pl.col("_ceiling") == high), "ceiling"),
        (too_high, "largest_price"),
        (too_low & (pl.col("_floor") == low), "floor"),
        (too_low & pl.col("_never_lower") & (pl.col("current_price") == low), "never_lower"),
        (too_low, "marketplace_minimum"),
    ]
    return [
        raised.clip(upper_bound=high).alias("after_bounds"),
        _first([(holds, pl.lit(bound, BOUND)) for holds, bound in binding], BOUND).alias("bound"),
    ]


# 12
def rounding(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Half-up to cents inside the limits (a floor's fraction rounds up, a ceiling's down), then up to the ending."""
    lowest, highest = -(-pl.col("_low") // UNITS_PER_CENT), pl.col("_high") // UNITS_PER_CENT
    cents = ((price + UNITS_PER_CENT // 2) // UNITS_PER_CENT).clip(lower_bound=lowest).clip(upper_bound=highest)
    ending = cents + (pl.col("_ending") - 1 - cents % pl.col("_ending"))
    # An ending that would pass the ceiling is not applied: the cent price stands.
    chosen = pl.when(ending <= highest).then(ending).otherwise(cents)
    return [(chosen * UNITS_PER_CENT).alias("after_rounding")]


# 13
def change(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """A pin is taken as it is; a move below the minimum keeps the price, unless no marketplace could show it."""
    current, pin = pl.col("current_price"), pl.col("pin")
    keeps = ((price - current).abs() < max(run.seller.minimum_move, 1)) & (current >= UNITS_PER_CENT)
    target = pl.coalesce(pin, pl.when(keeps).then(current).otherwise(price))
    return [target.alias("target"), (target.is_not_null() & target.ne_missing(current)).alias("changed")]


def _where(condition: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(value)


def _first(choices: Iterable[tuple[pl.Expr, pl.Expr]], dtype: pl.DataType) -> pl.Expr:
    """The value of the first choice whose condition holds, null when none does."""
    result: pl.Expr = pl.lit(None, dtype)
    for condition, value in reversed(list(choices)):
        result = pl.when(condition).then(value).otherwise(result)
    return result


def _true(condition: pl.Expr) -> pl.Expr:
    return condition.fill_null(False)


def _since(oldest: datetime, column: str) -> pl.Expr:
    return _true(pl.col(column) >= pl.lit(oldest, pl.Datetime("us", "UTC")))
