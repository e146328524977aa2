"""Computes the newest listings and the sums of sales of each cell (product, condition, printing and
language) from observations, and finds the products whose supply fell. Pure.

An import stores the sums of the newest looks (`newest.py`), and a backtest computes the sums of
earlier looks (`of_past.py`). Times are microseconds, prices ten-thousandths.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from cardsync.catalog.market.verdicts import FALL_LEAVES_BP, SALES_WEEK, SALES_WINDOW, SUPPLY_SINCE

PRODUCT: Final = "product_id"
CELL: Final = (PRODUCT, "cell")
# The columns of looks at products: when their sales and listings were observed; null if never.
LOOKS: Final = (PRODUCT, "sales_fetched_at", "listings_observed_at")
SALES: Final = (PRODUCT, "at", "cell", "price")
LISTINGS: Final = (PRODUCT, "at", "cell", "listings", "copies", "low")
LISTED: Final = (*CELL, "listings_low", "listings_count")
SUMMED: Final = (*CELL, "sales_median", "sales_count", "sales_week", "sales_newest_at")
_WHOLE_BP: Final = 10_000
_COUNTS: Final = ("listings_count", "sales_count", "sales_week")


def _span(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def listed(listings: pl.DataFrame, looks: pl.DataFrame) -> pl.DataFrame:
    """Return the cells of each product's snapshot at its look. A cell without listings has no row."""
    seen = looks.select(PRODUCT, at="listings_observed_at")
    return listings.join(seen, on=(PRODUCT, "at"), how="semi").select(
        *CELL, listings_low="low", listings_count="listings"
    )


def fallen(listings: pl.DataFrame, looks: pl.DataFrame) -> pl.Series:
    """Return the products with a cell whose supply at the look is much less than it was recently.
    `verdicts.buy_out` decides whether that is a buy-out.
    """
    seen = pl.col("listings_observed_at")
    since = seen - _span(SUPPLY_SINCE)
    known = listings.join(looks.select(PRODUCT, seen), on=PRODUCT)
    now = known.filter(pl.col("at") == seen).select(*CELL, left="copies")
    before = known.filter(pl.col("at") >= since, pl.col("at") < seen)
    fell = pl.col("left").fill_null(0) * _WHOLE_BP <= pl.col("copies") * FALL_LEAVES_BP
    return before.join(now, on=CELL, how="left").filter(fell)[PRODUCT].unique()


def summed(sales: pl.DataFrame, looks: pl.DataFrame) -> pl.DataFrame:
    """Return the sums of each cell's sales in the thirty days before the look. The mean of two
    middle prices rounds half-up, as in `verdicts.median`.
    """
    seen = pl.col("sales_fetched_at")
    counted = sales.join(looks.select(PRODUCT, seen), on=PRODUCT).filter(
        pl.col("at") >= seen - _span(SALES_WINDOW), pl.col("at") <= seen
    )
    sums = counted.group_by(CELL).agg(
        prices=pl.col("price").sort(),
        sales_count=pl.len().cast(pl.Int64),
        sales_week=(pl.col("at") >= seen - _span(SALES_WEEK)).sum().cast(pl.Int64),
        sales_newest_at=pl.col("at").max(),
    )
    low, high = ((pl.col("sales_count") - one) // 2 for one in (1, 0))
    middle = pl.col("prices").list.get(low) + pl.col("prices").list.get(high)
    return sums.with_columns(sales_median=(middle + 1) // 2).select(SUMMED)


def figures(listed: pl.DataFrame, summed: pl.DataFrame) -> pl.DataFrame:
    """Return the listings and the sums of sales of each cell in one frame. The count of listings or
    of sales is 0 for a cell that has none.
    """
    both = listed.join(summed, on=CELL, how="full", coalesce=True)
    return both.with_columns(pl.col(_COUNTS).fill_null(0))
