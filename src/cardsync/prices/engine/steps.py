"""The thirteen steps of `docs/pricing.md` as column expressions: a function for each step, in the
order of that file's table.

Each step from 4 on takes the price of the previous step and writes the column `after_<step name>`;
the last step writes `target`. Columns whose names begin with `_` are temporary parameters
(`engine.run_inputs`); all other columns are part of the receipt.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

import polars as pl

from cardsync.platform.money import MAX_UNITS, UNITS_PER_CENT
from cardsync.prices.engine.expressions import (
    first,
    scaled,
    true,
    where,
)
from cardsync.prices.engine.row_values import (
    coalesce,
    col,
    lit,
    max_horizontal,
    min_horizontal,
    when,
)
from cardsync.prices.engine.rules import WHOLE_BP, Rule, down_to_cent, up_to_cent
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.engine.sources import SOURCE, observed_at, price_of, unrefused

# A code's position is its bit in the column `blockers`. Append only, because stored receipts
# contain these bits.
BLOCKERS: Final[dict[str, str]] = {
    "automatic_pricing_paused": "Automatic pricing is paused.",
    "pinned": "The price is pinned.",
    "product_line_disabled": "Its game is turned off.",
    "no_rule": "No published rule matches it.",
    "rule_broken": "The search of a rule that might match it doesn't work.",
    "no_usable_reference": "None of the rule's price sources is available and recent enough.",
    "out_of_stock": "It is out of stock.",
    "custom_without_reference": "It is a custom listing without a usable reference price.",
    "awaiting_review": "The run needs your review.",
    "game_without_rules": "Only the default rule matches cards of its game.",
}
BLOCKER_BIT: Final = {code: 1 << bit for bit, code in enumerate(BLOCKERS)}
# Append only, because stored receipts contain these values.
BOUND: Final = pl.Enum(
    [
        "floor",
        "ceiling",
        "never_lower",
        "marketplace_minimum",
        "largest_price",
        "hard_floor",
        "cost_floor",
        "guard_floor",
        "guard_ceiling",
    ]
)
LARGEST_PRICE: Final = down_to_cent(MAX_UNITS)


# Step 1
def eligibility(run: Run) -> list[pl.Expr]:
    """Return the reasons why a card is not priced, as bits.

    The engine runs this step after steps 2 and 3, because their failures are among the reasons.
    """
    governed = col("rule_id").is_not_null()
    usable = col("source").is_not_null()
    # A guard whose query is broken might limit any card, so it blocks all cards.
    broken = true(col("_broken")) | lit(any(guard.broken for guard in run.guards))
    lacking = governed & ~usable & ~broken
    custom = col("custom").fill_null(False)
    reasons = {
        "automatic_pricing_paused": lit(run.seller.automatic_pricing_paused),
        "product_line_disabled": ~col("product_line_enabled").fill_null(True),
        "no_rule": ~governed,
        "rule_broken": broken,
        "no_usable_reference": lacking & ~custom,
        "out_of_stock": col("quantity").fill_null(0) <= 0,
        "custom_without_reference": lacking & custom,
        "awaiting_review": lit(run.seller.awaiting_review),
        "game_without_rules": _out_of_scope(run),
    }
    bits = [
        flag.cast(pl.UInt16) * lit(BLOCKER_BIT[code], pl.UInt16) for code, flag in reasons.items()
    ]
    # A pinned card has no blockers, not even `pinned`, because no step applies to it.
    unpinned = col("pin").is_null().cast(pl.UInt16)
    return [(reduce(or_, bits) * unpinned).alias("blockers")]


def _out_of_scope(run: Run) -> pl.Expr:
    """Return whether only the default rule selects cards of the card's game."""
    if run.every_game:
        return lit(False)
    return ~col("game_has_rules").fill_null(True) if run.own_rules else lit(True)


# Step 2
def governing_rule(run: Run, *, resolved: bool) -> list[pl.Expr]:
    """Return each card's governing rule; a pinned card has none. If `resolved`, SQL evaluated the
    queries and filled `rule_id`; otherwise no rule has a query, and the first live rule governs all
    cards.
    """
    rule = col("rule_id") if resolved else lit(run.live[0].id if run.live else None, pl.Int64)
    return [where(col("pin").is_null(), rule).alias("rule_id")]


# Step 3
def price_source(run: Run) -> list[pl.Expr]:
    """Return the first source of the governing rule that was not refused. The current price is a
    source only if the rule names it.
    """
    picks = [
        (col("_order") == number, coalesce(*(unrefused(source) for source in order)))
        for number, order in enumerate(run.orders)
    ]
    return [where(~true(col("_broken")), first(picks, SOURCE)).alias("source")]


def source_price(run: Run) -> list[pl.Expr]:
    source = col("source")
    prices = [(source == name, price_of(name)) for name in run.sources]
    times = [
        (source == name, time) for name in run.sources if (time := observed_at(name)) is not None
    ]
    return [first(prices, pl.Int64()).alias("base"), first(times, TIME).alias("source_observed_at")]


# Step 4
def formula(price: pl.Expr, run: Run) -> list[pl.Expr]:
    return [(scaled(price, col("_factor")) + col("_amount")).alias("after_formula")]


# Step 4, for all rules
def shipping_adder(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Add the seller's surcharge for tracked shipping to prices from the tracking threshold on."""
    adder = lit(run.seller.shipping_adder, pl.Int64)
    dear = true(price >= run.seller.tracking_threshold)
    return [when(dear).then(price + adder).otherwise(price).alias("after_shipping_adder")]


# Step 7, guards
def guards(run: Run, *, resolved: bool) -> list[pl.Expr]:
    """Return the guards that limit each card, as bits. Guards without a query limit every card.
    Pinned cards and cards without a rule are not priced, so they have no guards.
    """
    if not resolved and any(guard.query for guard in run.guards):
        raise ValueError("queries are resolved before the engine: the cards lack guards")
    every = sum(1 << bit for bit, guard in enumerate(run.guards) if not guard.query)
    held = col("guards").fill_null(every) if resolved else lit(every, pl.Int64)
    return [where(col("rule_id").is_not_null(), held).alias("guards")]


def guarded(run: Run) -> list[pl.Expr]:
    """Return the highest floor and the lowest ceiling of a card's guards, in whole cents, and the
    guards that set them: the first guard, if several guards set the same limit. If the floor is
    above the ceiling, `hard_limits` uses the floor.
    """
    low: list[tuple[int, pl.Expr]] = []
    high: list[tuple[int, pl.Expr]] = []
    for bit, guard in enumerate(run.guards):
        holds = col("guards") // (1 << bit) % 2 == 1
        floors = _floors_of(guard)
        if floors:
            low.append((guard.id, where(holds, max_horizontal(*floors))))
        if guard.ceiling is not None:
            ceiling = lit(down_to_cent(guard.ceiling), pl.Int64)
            high.append((guard.id, where(holds, ceiling)))
    nothing = lit(None, pl.Int64)
    floor = max_horizontal(*(one for _, one in low)) if low else nothing
    ceiling = min_horizontal(*(one for _, one in high)) if high else nothing
    return [
        floor.alias("guard_floor"),
        first([(true(one == floor), lit(id)) for id, one in low], pl.Int64()).alias(
            "guard_floor_id"
        ),
        ceiling.alias("guard_ceiling"),
        first([(true(one == ceiling), lit(id)) for id, one in high], pl.Int64()).alias(
            "guard_ceiling_id"
        ),
    ]


def _floors_of(guard: Rule) -> list[pl.Expr]:
    floors = []
    if guard.floor is not None:
        floors.append(lit(up_to_cent(guard.floor), pl.Int64))
    if guard.floor_cost_bp is not None:
        floors.append(_above_cost(lit(WHOLE_BP + guard.floor_cost_bp, pl.Int64)))
    if guard.never_lower:
        current = col("current_price")
        floors.append(-(-current // UNITS_PER_CENT) * UNITS_PER_CENT)
    return floors


# Step 7
def hard_limits(run: Run) -> list[pl.Expr]:
    current = where(col("_never_lower"), col("current_price"))
    hard = hard_floor_of(run)
    guard = [col("guard_ceiling")] if run.guards else []
    low = max_horizontal("_floor", current, lit(UNITS_PER_CENT, pl.Int64), *hard)
    high = min_horizontal("_ceiling", lit(LARGEST_PRICE, pl.Int64), *guard)
    return [low.alias("_low"), max_horizontal(high, *hard).alias("_high")]


def floors_by_cost() -> list[pl.Expr]:
    """Raise the rule's floor to the card's cost plus `floor_cost_bp`, if the cost is known."""
    by_cost = _above_cost(col("_cost_factor"))
    return [max_horizontal("_floor", by_cost).alias("_floor"), by_cost.alias("_cost_floor")]


def _above_cost(factor: pl.Expr) -> pl.Expr:
    """Return the card's cost times a factor in basis points, rounded up to a cent."""
    a_cent = WHOLE_BP * UNITS_PER_CENT
    return (col("cost") * factor + (a_cent - 1)) // a_cent * UNITS_PER_CENT


def hard_floor_of(run: Run) -> list[pl.Expr]:
    """Return the seller-wide floor and the floor of the card's guards, in whole cents. They
    override ceilings, caps and sales.
    """
    hard = run.seller.hard_floor
    guards = [col("guard_floor")] if run.guards else []
    return guards if hard is None else [lit(up_to_cent(hard), pl.Int64), *guards]


def bounds(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Apply the floor, then the ceiling: the ceiling overrides `never_lower`."""
    low = col("_low")
    high = col("_high")
    raised = price.clip(lower_bound=low)
    too_high = raised > high
    too_low = price < low
    hard = run.seller.hard_floor
    at_hard_floor = lit(False) if hard is None else low == up_to_cent(hard)
    binding = [
        *([(too_high & (col("guard_ceiling") <= high), "guard_ceiling")] if run.guards else []),
        (too_high & (col("_ceiling") <= high), "ceiling"),
        (too_high, "largest_price"),
        *([(too_low & (col("guard_floor") == low), "guard_floor")] if run.guards else []),
        *([(too_low & (col("_cost_floor") == low), "cost_floor")] if run.costed else []),
        (too_low & (col("_floor") == low), "floor"),
        (too_low & col("_never_lower") & (col("current_price") == low), "never_lower"),
        (too_low & at_hard_floor, "hard_floor"),
        (too_low, "marketplace_minimum"),
    ]
    return [
        raised.clip(upper_bound=high).alias("after_bounds"),
        first([(holds, lit(bound, BOUND)) for holds, bound in binding], BOUND).alias("bound"),
    ]


# Step 8
def cap_limits(run: Run) -> list[pl.Expr]:
    """Return the lowest and the highest price that the rule's cap allows, measured from the
    period's first price. A cap that allows a move allows at least the seller's minimum step. If the
    current price is outside a limit, it is the limit.
    """
    start = col("period_start_price")
    current = col("current_price")
    small = true(start < col("_small_below"))
    up = when(small).then("_small_up").otherwise("_cap_up")
    down = when(small).then("_small_down").otherwise("_cap_down")
    step = run.seller.minimum_cap_step
    highest = max_horizontal(
        start * (WHOLE_BP + up) // WHOLE_BP, when(up > 0).then(start + step), current
    )
    lowest = min_horizontal(
        -(-(start * (WHOLE_BP - down)) // WHOLE_BP), when(down > 0).then(start - step), current
    )
    return [
        where(current.is_not_null() & down.is_not_null(), lowest).alias("_cap_low"),
        where(current.is_not_null() & up.is_not_null(), highest).alias("_cap_high"),
    ]


def guard_cap_limits(run: Run) -> list[pl.Expr]:
    """Narrow the cap's limits by the guards' daily caps, measured from the day's first price.
    `_guard_low_id` and `_guard_high_id` name the first of the strictest guards. `_rule_low` and
    `_rule_high` are the limits of the rule's own cap.
    """
    current = col("current_price")
    start = coalesce("day_start_price", "current_price")
    step = run.seller.minimum_cap_step
    low: list[tuple[int, pl.Expr]] = []
    high: list[tuple[int, pl.Expr]] = []
    for bit, guard in enumerate(run.guards):
        if guard.cap is None:
            continue
        holds = (col("guards") // (1 << bit) % 2 == 1) & current.is_not_null()
        if (up := guard.cap.up_bp) is not None:
            most = start * (WHOLE_BP + up) // WHOLE_BP
            farthest = max_horizontal(most, start + step if up else most, current)
            high.append((guard.id, where(holds, farthest)))
        if (down := guard.cap.down_bp) is not None:
            least = -(-(start * (WHOLE_BP - down)) // WHOLE_BP)
            farthest = min_horizontal(least, start - step if down else least, current)
            low.append((guard.id, where(holds, farthest)))
    own_low, own_high = col("_cap_low"), col("_cap_high")
    lowest = max_horizontal(own_low, *(one for _, one in low))
    highest = min_horizontal(own_high, *(one for _, one in high))
    return [
        own_low.alias("_rule_low"),
        own_high.alias("_rule_high"),
        lowest.alias("_cap_low"),
        highest.alias("_cap_high"),
        _first_at(lowest, own_low, low).alias("_guard_low_id"),
        _first_at(highest, own_high, high).alias("_guard_high_id"),
    ]


def _first_at(limit: pl.Expr, own: pl.Expr, found: list[tuple[int, pl.Expr]]) -> pl.Expr:
    """Return the first guard that sets the limit; null if the rule's own limit is as strict."""
    of_rule = (true(own == limit), lit(None, pl.Int64))
    return first([of_rule, *((true(one == limit), lit(id)) for id, one in found)], pl.Int64())


def cap(price: pl.Expr, run: Run) -> list[pl.Expr]:
    up = true(price > col("_cap_high"))
    down = true(price < col("_cap_low"))
    limit = when(up).then("_cap_high").when(down).then("_cap_low")
    beyond = limit.is_not_null()
    if run.guard_capped:
        # Only the rule's own cap can hold the current price: guards always clamp.
        beyond = true(price > col("_rule_high")) | true(price < col("_rule_low"))
    held = beyond & col("_cap_hold")
    stopped = [
        when(held).then("current_price").otherwise(coalesce(limit, price)).alias("after_cap"),
        limit.alias("seller_limit"),
        where(price.is_not_null(), true(held)).alias("held"),
    ]
    if run.guard_capped:
        guard = when(up).then("_guard_high_id").when(down).then("_guard_low_id")
        stopped.append(where(~true(held), guard).alias("guard_cap_id"))
    return stopped


# Step 9
def sale(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Reduce the capped price by the sale, down to the sale's floor. Prices of `never_lower` rules
    are reduced, too, unless the sale has `keep_never_lower`. The sale's floor by cost never raises
    a price.
    """
    stops = [where(col("_never_lower") & col("_sale_keeps"), col("current_price"))]
    if run.sale_costed:
        stops.append(_above_cost(col("_sale_cost_factor")))
    kept = min_horizontal(max_horizontal(*stops, lit(0, pl.Int64)), price)
    reduced = max_horizontal(scaled(price, col("_sale_factor")), "_sale_floor", kept)
    applies = col("_sale_factor").is_not_null() & price.is_not_null()
    return [
        when(applies).then(reduced).otherwise(price).alias("after_sale"),
        where(applies, "sale_id").alias("sale_id"),
        where(applies, "sale_ends_at").alias("sale_ends_at"),
    ]


# Step 9, floors of the seller and guards
def hard_floor(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Raise prices that are below the seller-wide or the guards' floor after the cap and
    the sale.
    """
    raised = max_horizontal(price, *(where(price.is_not_null(), low) for low in hard_floor_of(run)))
    return [raised.alias("after_hard_floor")]


# Step 10
def direct_minimum(price: pl.Expr, run: Run) -> list[pl.Expr]:
    return [
        max_horizontal(price, where(price.is_not_null(), direct_low_of(run))).alias(
            "after_direct_minimum"
        )
    ]


def direct_low_of(run: Run) -> pl.Expr:
    """Return the Direct program's minimum price for cards with a Direct low; null for
    other cards.
    """
    return where(col("direct_low").is_not_null(), lit(run.seller.direct_minimum, pl.Int64))


# Step 11
def fee_gap(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Raise a price in the fee gap to the first price above the gap, if the ceiling allows it. A
    price in the gap pays the seller less than the highest price of the lower fee tier.
    """
    assert run.fee_gap is not None
    begin, end = run.fee_gap
    asked = col("_fee_gap") & col("direct_low").is_not_null() & (col("_high") >= end)
    inside = true(asked & (price >= begin) & (price < end))
    return [when(inside).then(lit(end, pl.Int64)).otherwise(price).alias("after_fee_gap")]


# Step 13
def change(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Return the target. A pin is the target, unchanged. A move smaller than the minimum keeps the
    current price, unless that is less than a cent, which no marketplace shows.
    """
    current = col("current_price")
    pin = col("pin")
    keeps = ((price - current).abs() < max(run.seller.minimum_move, 1)) & (
        current >= UNITS_PER_CENT
    )
    target = coalesce(pin, when(keeps).then(current).otherwise(price))
    return [
        target.alias("target"),
        (target.is_not_null() & target.ne_missing(current)).alias("changed"),
    ]
