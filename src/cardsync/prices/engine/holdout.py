"""The step `holdout`: a small random share of a rule's cards keeps its price, and a second share of
the same size is marked as the comparison group. Pure.

The draw depends only on the rule, the 30-day window and the card's marketplace id, so every run,
preview and replay draws the same cards.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from cardsync.platform.money import UNITS_PER_CENT
from cardsync.prices.engine.expressions import true, where
from cardsync.prices.engine.row_values import col, lit, when
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.engine.run_inputs import Run

# Append only, because stored receipts contain these values. `twin` cards follow the rule; `held`
# cards are compared with them.
GROUP: Final = pl.Enum(["held", "twin"])
# The multipliers of MurmurHash3's 64-bit finalizer, which turns consecutive ids into unrelated
# numbers.
_MIX: Final = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)


def _part(seed: pl.Expr) -> pl.Expr:
    """Return a number from 0 to 9,999 for each card. Products overflow 64 bits, as in MurmurHash3.
    Custom listings have negative ids, whose bits are read as an unsigned number.
    """
    mixed = col("marketplace_id").reinterpret(signed=False) ^ seed
    for factor in _MIX:
        mixed = mixed ^ (mixed // 2**33)
        mixed = mixed * lit(factor, pl.UInt64)
    return (mixed ^ (mixed // 2**33)) % WHOLE_BP


def keeps_limits(price: pl.Expr, run: Run) -> pl.Expr:
    """Return whether a current or accepted price is in whole cents and within the limits, and its
    card is not on sale.
    """
    kept = (price >= col("_low")) & (price <= col("_high"))
    kept &= price % UNITS_PER_CENT == 0
    if run.on_sale:
        kept &= col("sale_id").is_null()
    if run.seller.direct_program:
        kept &= col("direct_low").is_null() | (price >= run.seller.direct_minimum)
    return kept


def holdout(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Keep the current price of the cards that are held out. Cards on sale and cards whose current
    price is missing or outside the limits are not drawn.
    """
    current = col("current_price")
    drawn = price.is_not_null() & keeps_limits(current, run)
    part = where(true(drawn), _part(col("_holdout_seed")))
    share = col("_holdout")
    held = true(part < share)
    group = (
        when(held).then(lit("held", GROUP)).when(true(part < 2 * share)).then(lit("twin", GROUP))
    )
    return [
        when(held).then(current).otherwise(price).alias("after_holdout"),
        group.alias("holdout"),
    ]
