"""The step `holdout`: a small random part of a rule's cards keeps its price, and a second part of
the same size is named as the comparison group. Pure.

The part is drawn again every thirty days by a number made of the rule, the thirty days and the
card's marketplace id, so each run, preview and replay draws the same cards.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine.expressions import true, where
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.engine.run_inputs import Run

# Append only, as with every Enum of a receipt. `twin` follows the rule and is compared.
GROUP: Final = pl.Enum(["held", "twin"])
# The multipliers of the finalizer of MurmurHash3 (64 bit); it spreads ids that follow each other.
_MIX: Final = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)


def _part(seed: pl.Expr) -> pl.Expr:
    """Return a number from 0 to 9,999 of each card; 64 bits overflow as they do in the original,
    and the id of a custom listing, which is below zero, counts by its bits.
    """
    mixed = pl.col("marketplace_id").reinterpret(signed=False) ^ seed
    for factor in _MIX:
        mixed = mixed ^ (mixed // 2**33)
        mixed = mixed * pl.lit(factor, pl.UInt64)
    return (mixed ^ (mixed // 2**33)) % WHOLE_BP


def keeps_limits(price: pl.Expr, run: Run) -> pl.Expr:
    """Return whether a price that no step made, of a card that is not on sale, is one of whole
    cents within the limits.
    """
    kept = (price >= pl.col("_low")) & (price <= pl.col("_high"))
    kept &= price % UNITS_PER_CENT == 0
    if run.on_sale:
        kept &= pl.col("sale_id").is_null()
    if run.seller.direct_program:
        kept &= pl.col("direct_low").is_null() | (price >= run.seller.direct_minimum)
    return kept


def holdout(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Keep the price of the cards that are held out. A card on sale, without a price, or with one
    that breaks the limits is not drawn.
    """
    current = pl.col("current_price")
    drawn = price.is_not_null() & keeps_limits(current, run)
    part = where(true(drawn), _part(pl.col("_holdout_seed")))
    share = pl.col("_holdout")
    held = true(part < share)
    group = (
        pl.when(held)
        .then(pl.lit("held", GROUP))
        .when(true(part < 2 * share))
        .then(pl.lit("twin", GROUP))
    )
    return [
        pl.when(held).then(current).otherwise(price).alias("after_holdout"),
        group.alias("holdout"),
    ]
