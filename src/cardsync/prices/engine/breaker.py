"""The breaker: decides whether a priced run stops for the seller's look, because too many of its
cards leap. Pure.

Step 7's result is judged, before caps soften it. A card leaps only where its exported price
changes. Leaps that the seller confirmed are remembered: such a card counts again once its result
has moved further, or once the confirmation has expired.
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
# In ten-thousandths of a dollar: a penny card that costs two pennies more is no reason to stop.
LEAST_MOVE: Final = 2_500
# How far a confirmed result may move, and for how long it is remembered.
CONFIRMED_BP: Final = 1_000
REMEMBERED: Final = timedelta(days=30)
# The seller's confirmations: the result of step 7 that was confirmed, and when.
CONFIRMED: Final[dict[str, pl.DataType]] = {
    "marketplace_id": pl.Int64(),
    "price": pl.Int64(),
    "confirmed_at": TIME,
}
# A card without a price has nothing to move from: new cards must not dilute the share.
_MOVABLE: Final = pl.col("after_bounds").is_not_null() & pl.col("current_price").is_not_null()


def leaps(priced: pl.DataFrame) -> pl.DataFrame:
    """`marketplace_id` and `price`, the result of step 7, of the cards that would leap."""
    leaping = priced.filter(_MOVABLE & _is_far("current_price") & pl.col("changed"))
    return leaping.select("marketplace_id", price="after_bounds")


def deep_sales(priced: pl.DataFrame) -> pl.DataFrame:
    """The same columns of the cards whose sale's price is a leap away from their result.

    The seller made the sale, and so confirmed the way back: beside the sale's price, once the
    marketplace shows it, the result of step 7 would look like a leap, and at the sale's end it is
    one.
    """
    reduced = pl.col("sale_id").is_not_null() & pl.col("after_bounds").is_not_null()
    return priced.filter(reduced & _is_far("target")).select("marketplace_id", price="after_bounds")


def _is_far(before: str) -> pl.Expr:
    distance = (pl.col("after_bounds") - pl.col(before)).abs()
    return (distance * WHOLE_BP > pl.col(before) * MOVE_BP) & (distance >= LEAST_MOVE)


def stops(priced: pl.DataFrame, leaping: pl.DataFrame) -> bool:
    """Return whether enough of the run's cards leap that it has to stop for a review."""
    cards = priced.select(_MOVABLE.sum()).item()
    return bool(cards >= BREAKER_MIN_CARDS and leaping.height * WHOLE_BP > cards * SHARE_BP)


def unconfirmed(leaping: pl.DataFrame, confirmed: pl.DataFrame, now: datetime) -> pl.DataFrame:
    """The leaps that the seller has not confirmed; `confirmed` has the columns of CONFIRMED."""
    was = confirmed.rename({"price": "was"})
    beside = leaping.join(was, on="marketplace_id", how="left", maintain_order="left")
    near = (pl.col("price") - pl.col("was")).abs() * WHOLE_BP <= pl.col("was") * CONFIRMED_BP
    young = pl.col("confirmed_at") > now - REMEMBERED
    return beside.filter(~(near & young).fill_null(False)).select(leaping.columns)
