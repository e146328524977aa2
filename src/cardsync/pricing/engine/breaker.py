"""The run-level breaker: a priced run goes in; the decision whether it stops for the seller's
review comes out. The module is pure.

The breaker judges step 7's result, before caps soften it. A card leaps only where its exported
price changes. The breaker remembers a leap that the seller confirmed: such a card counts again when
its result has moved on, or when the confirmation has grown old.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import polars as pl

from cardsync.limits import BREAKER_MIN_CARDS
from cardsync.pricing.engine.run_inputs import TIME

WHOLE_BP: Final = 10_000
MOVE_BP: Final = 5_000
SHARE_BP: Final = 2_000
# The value is in ten-thousandths of a dollar: a penny card that costs two pennies more is no reason
# to stop.
LEAST_MOVE: Final = 2_500
# A confirmation holds while the result moves no further than this, and for this long.
CONFIRMED_BP: Final = 1_000
REMEMBERED: Final = timedelta(days=30)

# A confirmation names the result of step 7 that the seller confirmed, and its time.
CONFIRMED: Final[dict[str, pl.DataType]] = {
    "marketplace_id": pl.Int64(),
    "price": pl.Int64(),
    "confirmed_at": TIME,
}

# A card without a price has nothing to move from: new cards must not dilute the share.
_MOVABLE: Final = pl.col("after_bounds").is_not_null() & pl.col("current_price").is_not_null()


def leaps(priced: pl.DataFrame) -> pl.DataFrame:
    """Return `marketplace_id` and `price`, the result of step 7, of the cards that would leap."""
    distance = (pl.col("after_bounds") - pl.col("current_price")).abs()
    far = (distance * WHOLE_BP > pl.col("current_price") * MOVE_BP) & (distance >= LEAST_MOVE)
    leaping = priced.filter(_MOVABLE & far & pl.col("changed"))
    return leaping.select("marketplace_id", price="after_bounds")


def stops(priced: pl.DataFrame, leaping: pl.DataFrame) -> bool:
    """Return whether so many of the run's cards leap that the run has to stop for a review."""
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
