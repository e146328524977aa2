"""The breaker: stops a pricing run for the seller's review if too many of its cards leap. A leap is
a move by more than half of the price. Pure.

The breaker judges the result of step 7, before caps limit the move. A card leaps only if its
exported price changes. A leap that the seller confirmed counts again once the card's result has
moved further, or once the confirmation has expired.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import polars as pl

from cardsync.prices.engine.run_inputs import TIME
from cardsync.prices.limits import BREAKER_MIN_CARDS

WHOLE_BP: Final = 10_000
MOVE_BP: Final = 5_000
SHARE_BP: Final = 2_000
# 25 cents, in ten-thousandths of a dollar: a penny card that rises by two pennies does not leap.
LEAST_MOVE: Final = 2_500
# A confirmation covers results within this distance of the confirmed result, for this long.
CONFIRMED_BP: Final = 1_000
REMEMBERED: Final = timedelta(days=30)
# Columns of the seller's confirmations: the confirmed result of step 7, and when it was confirmed.
CONFIRMED: Final[dict[str, pl.DataType]] = {
    "marketplace_id": pl.Int64(),
    "price": pl.Int64(),
    "confirmed_at": TIME,
}
# Cards without a current price are not counted: new cards must not lower the share of cards that
# leap.
_MOVABLE: Final = pl.col("after_bounds").is_not_null() & pl.col("current_price").is_not_null()


def leaps(priced: pl.DataFrame) -> pl.DataFrame:
    """Return `marketplace_id` and `price`, the result of step 7, of the cards that leap."""
    leaping = priced.filter(_MOVABLE & _is_far("current_price") & pl.col("changed"))
    return leaping.select("marketplace_id", price="after_bounds")


def deep_sales(priced: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `leaps` for the cards on sale whose regular price (the result of step
    7) differs from the sale price by a leap.

    While the marketplace shows the sale price, the regular price looks like a leap, and it is a
    leap when the sale ends. The seller made the sale, so these leaps count as confirmed.
    """
    reduced = pl.col("sale_id").is_not_null() & pl.col("after_bounds").is_not_null()
    return priced.filter(reduced & _is_far("target")).select("marketplace_id", price="after_bounds")


def _is_far(before: str) -> pl.Expr:
    distance = (pl.col("after_bounds") - pl.col(before)).abs()
    return (distance * WHOLE_BP > pl.col(before) * MOVE_BP) & (distance >= LEAST_MOVE)


def stops(priced: pl.DataFrame, leaping: pl.DataFrame) -> bool:
    """Return whether so many of the run's cards leap that the run stops for a review."""
    cards = priced.select(_MOVABLE.sum()).item()
    return bool(cards >= BREAKER_MIN_CARDS and leaping.height * WHOLE_BP > cards * SHARE_BP)


def unconfirmed(leaping: pl.DataFrame, confirmed: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """Return the leaps that the seller has not confirmed; `confirmed` has the columns of
    CONFIRMED.
    """
    was = confirmed.rename({"price": "was"})
    beside = leaping.join(was, on="marketplace_id", how="left", maintain_order="left")
    near = (pl.col("price") - pl.col("was")).abs() * WHOLE_BP <= pl.col("was") * CONFIRMED_BP
    young = pl.col("confirmed_at") > now - REMEMBERED
    return beside.filter(~(near & young).fill_null(False)).select(leaping.columns)
