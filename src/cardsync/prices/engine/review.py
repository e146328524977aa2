"""The step `review`: a card whose move is beyond the review limits keeps its price, and the column
`review` names the reason. Pure.

A price that the seller accepted (`approved_price`) passes, and so does each price on the way to it.
A larger move stops at the accepted price and waits there. If a card is on sale, its accepted price
is the regular price, so the sale's cut is taken from it before the comparison.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine.breaker import CONFIRMED_BP
from cardsync.prices.engine.expressions import first, scaled, true, where
from cardsync.prices.engine.holdout import keeps_limits
from cardsync.prices.engine.row_values import col, lit, when
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.engine.run_inputs import Run

# Append only, because stored receipts contain these values.
REASON: Final = pl.Enum(["rise", "drop", "first_price"])


def review(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Keep the current price of cards whose move needs review. If their accepted price is between
    the current and the new price, return that. Cards without a current or accepted price get no
    price.
    """
    current = col("current_price")
    approved = _approved(run)
    # No marketplace could show a price under a cent, so such a current price is not kept.
    shown = current >= UNITS_PER_CENT
    moves = shown & ((price - current).abs() >= max(run.seller.minimum_move, 1))
    rises = (price - current) * WHOLE_BP > current * col("_review_up")
    reasons = [
        ("first_price", col("_review_first") & current.is_null() & ~_near(price, approved)),
        ("rise", moves & rises & ~_up_to(price, approved)),
        ("drop", moves & (price < current) & _drops(price, run) & ~_down_to(price, approved)),
    ]
    reason = first([(true(holds), lit(name, REASON)) for name, holds in reasons], REASON)
    found = where(price.is_not_null(), reason)
    return [
        when(found.is_not_null()).then(_stays(price, run)).otherwise(price).alias("after_review"),
        found.alias("review"),
    ]


def _approved(run: Run) -> pl.Expr:
    approved = col("approved_price")
    if not run.on_sale:
        return approved
    at_sale = scaled(approved, col("_sale_factor"))
    return when(col("sale_id").is_null()).then(approved).otherwise(at_sale)


def _stays(price: pl.Expr, run: Run) -> pl.Expr:
    """Return the price of a card whose new price waits for review: the accepted price, if it is on
    the way to the new price and within the limits, and otherwise the current price. Cards on sale
    keep the current price, because each run prices them again.
    """
    current = col("current_price")
    approved = col("approved_price")
    rising = (current < approved) & (approved < price)
    falling = (price < approved) & (approved < current)
    passes = (current.is_null() | rising | falling) & keeps_limits(approved, run)
    return when(true(passes)).then(approved).otherwise(current)


def _drops(price: pl.Expr, run: Run) -> pl.Expr:
    """Return whether the price drops by more than the limit. The seller made the sale, so the
    sale's own cut is no drop: for cards on sale, the drop is measured from the regular price. If a
    card's current price is already the sale price, its accepted price counts as the regular price.
    """
    current = col("current_price")
    drops = (current - price) * WHOLE_BP > current * col("_review_down")
    if not run.on_sale:
        return drops
    factor = col("_sale_factor")
    approved = col("approved_price")
    # A current price nearer to the sale price than to the accepted price is the sale price:
    # rounding moved it away from the exact amount.
    at_sale = true(current * 2 * WHOLE_BP < approved * (WHOLE_BP + factor))
    regular = when(at_sale).then(approved).otherwise(current)
    lowest = scaled(scaled(regular, WHOLE_BP - col("_review_down")), factor)
    return when(col("sale_id").is_null()).then(drops).otherwise(price < lowest)


def _up_to(price: pl.Expr, approved: pl.Expr) -> pl.Expr:
    return true(price * WHOLE_BP <= approved * (WHOLE_BP + CONFIRMED_BP))


def _down_to(price: pl.Expr, approved: pl.Expr) -> pl.Expr:
    return true(price * WHOLE_BP >= approved * (WHOLE_BP - CONFIRMED_BP))


def _near(price: pl.Expr, approved: pl.Expr) -> pl.Expr:
    return _up_to(price, approved) & _down_to(price, approved)
