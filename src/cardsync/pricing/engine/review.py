"""The step `review`: rounded prices come in; a move beyond the seller's review limits goes out as
the price that the card has, with the reason. The module is pure.

A price that the seller accepted passes, and so does each price on the way to it.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from cardsync.money import UNITS_PER_CENT
from cardsync.pricing.engine.breaker import CONFIRMED_BP
from cardsync.pricing.engine.expressions import first, scaled, true, where
from cardsync.pricing.engine.rules import WHOLE_BP
from cardsync.pricing.engine.run_inputs import Run

# Append only, as with every Enum of a receipt.
REASON: Final = pl.Enum(["rise", "drop", "first_price"])


def review(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Leave the price as it is where the move has to be looked at. A card that has no price stays
    without one.
    """
    current = pl.col("current_price")
    approved = pl.col("approved_price")
    # No marketplace could show a price under a cent, so there is nothing to stay at.
    shown = current >= UNITS_PER_CENT
    moves = shown & ((price - current).abs() >= max(run.seller.minimum_move, 1))
    rises = (price - current) * WHOLE_BP > current * pl.col("_review_up")
    reasons = [
        ("first_price", pl.col("_review_first") & current.is_null() & ~_near(price, approved)),
        ("rise", moves & rises & ~_up_to(price, approved)),
        ("drop", moves & _drops(price, run) & ~_down_to(price, approved)),
    ]
    reason = first([(true(holds), pl.lit(name, REASON)) for name, holds in reasons], REASON)
    found = where(price.is_not_null(), reason)
    return [
        pl.when(found.is_not_null()).then(current).otherwise(price).alias("after_review"),
        found.alias("review"),
    ]


def _drops(price: pl.Expr, run: Run) -> pl.Expr:
    """Return whether the price falls too far. The seller made the sale, so a sale's own cut is no
    drop.
    """
    current = pl.col("current_price")
    drops = (current - price) * WHOLE_BP > current * pl.col("_review_down")
    if not run.on_sale:
        return drops
    lowest = scaled(scaled(current, WHOLE_BP - pl.col("_review_down")), pl.col("_sale_factor"))
    return pl.when(pl.col("sale_id").is_null()).then(drops).otherwise(price < lowest)


def _up_to(price: pl.Expr, approved: pl.Expr) -> pl.Expr:
    return true(price * WHOLE_BP <= approved * (WHOLE_BP + CONFIRMED_BP))


def _down_to(price: pl.Expr, approved: pl.Expr) -> pl.Expr:
    return true(price * WHOLE_BP >= approved * (WHOLE_BP - CONFIRMED_BP))


def _near(price: pl.Expr, approved: pl.Expr) -> pl.Expr:
    return _up_to(price, approved) & _down_to(price, approved)
