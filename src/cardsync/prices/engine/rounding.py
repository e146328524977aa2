"""Rounds prices to the ending that the rule names, within the limits. Pure."""

from __future__ import annotations

import polars as pl

from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine.expressions import (
    cents,
    cents_down,
    cents_up,
    true,
    where,
)
from cardsync.prices.engine.row_values import col, lit, max_horizontal, min_horizontal, when
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.steps import direct_low_of, hard_floor_of


# Step 12
def rounding(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Round half-up to cents within the limits, then up to the ending. Floors round up to cents,
    ceilings down.
    """
    lowest = cents_up(_bound_below(run))
    highest = cents_down(col("_high"))
    rounded = cents(price)
    ending_limit = highest
    if run.capped:
        top = cents_down(col("_cap_high"))
        bottom = cents_up(col("_cap_low"))
        stopped = col("after_cap")
        limit = col("seller_limit")
        # A cap that limited the price overrides floor and ceiling. A price that steps 9 to 11 moved
        # past the cap stays past it.
        up = true(limit < col("after_bounds"))
        down = true(limit > col("after_bounds"))
        lowest = when(up).then(min_horizontal(lowest, cents_down(stopped))).otherwise(lowest)
        highest = when(down).then(max_horizontal(highest, cents_up(stopped))).otherwise(highest)
        rounded = (
            when(true(price < col("_cap_low")))
            .then(rounded)
            .otherwise(max_horizontal(rounded, bottom))
        )
        rounded = (
            when(true(price > col("_cap_high")))
            .then(rounded)
            .otherwise(min_horizontal(rounded, top))
        )
        ending_limit = min_horizontal(
            highest, where(top.is_not_null(), max_horizontal(top, rounded))
        )
    lowest = max_horizontal(lowest, *(cents_up(low) for low in _raised_to(run)), lit(1, pl.Int64))
    rounded = rounded.clip(lower_bound=lowest).clip(upper_bound=highest)
    ending = rounded + (col("_ending") - 1 - rounded % col("_ending"))
    # The price keeps its cents if the ending would exceed a limit.
    chosen = when(ending <= ending_limit).then(ending).otherwise(rounded) * UNITS_PER_CENT
    # A cap that holds the current price also keeps the price's fraction of a cent.
    shown = (price == col("current_price")) & (price >= UNITS_PER_CENT)
    untouched = col("held") & shown if run.capped else lit(False)
    chosen = when(true(untouched)).then(price).otherwise(chosen)
    return [where(price.is_not_null(), chosen).alias("after_rounding")]


def _bound_below(run: Run) -> pl.Expr:
    """Return the rule's floor, or the higher current price if the rule has `never_lower` and no
    sale lowers the price.
    """
    current = col("_never_lower")
    if run.on_sale:
        current = current & (col("sale_id").is_null() | col("_sale_keeps"))
    return max_horizontal("_floor", where(current, col("current_price")), lit(0, pl.Int64))


def _raised_to(run: Run) -> list[pl.Expr]:
    """Return the minimum prices of steps 9 and 10: floors of the sale, the seller and the guards,
    and the Direct minimum.
    """
    sale_floor = [col("_sale_floor")] if run.on_sale else []
    sale_floor += hard_floor_of(run)
    return sale_floor + ([direct_low_of(run)] if run.seller.direct_program else [])
