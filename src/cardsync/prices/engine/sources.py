"""The sources of a rule's base price: the column of each source, and the reasons why it is
refused.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from cardsync.catalog.market.verdicts import ANCHOR_SALES, SALES_FETCHED, SALES_WINDOW
from cardsync.prices.engine.expressions import first, moment, since, true, where
from cardsync.prices.engine.row_values import coalesce, col, lit, when
from cardsync.prices.engine.rules import PRICE_SOURCES, PriceSource
from cardsync.prices.engine.run_inputs import Run

SOURCE: Final = pl.Enum(PRICE_SOURCES)
REFUSAL: Final = pl.Enum(
    ["absent", "too_old", "too_few_sales", "sales_too_old", "evidence_too_old", "future_evidence"],
)
_PRICE_COLUMN: Final[dict[PriceSource, str]] = {
    "sales_anchor": "sales_median",
    # The source `current` is the period's first price: with the latest price, repeated runs would
    # compound the rule's percentage.
    "current": "period_start_price",
}


def period_start(run: Run) -> list[pl.Expr]:
    """Return the card's price at the beginning of its rule's cap period; the current price if the
    earlier price is unknown.
    """
    period = col("_cap_period")
    began = first(
        [
            (period == "sync", lit(None, pl.Int64)),
            (period == "week", col("week_start_price")),
        ],
        pl.Int64(),
    )
    began = when(true(period.is_in(["sync", "week"]))).then(began).otherwise("day_start_price")
    return [coalesce(began, "current_price").alias("period_start_price")]


def refusals(run: Run) -> list[pl.Expr]:
    """Return a column for each source that some rule uses: the reason why its price is refused, or
    null.
    """
    governed = col("rule_id").is_not_null()
    return [
        where(governed, _refusal(source, run)).alias(f"refused_{source}") for source in run.sources
    ]


def price_of(source: PriceSource) -> pl.Expr:
    return col(_PRICE_COLUMN.get(source, source))


def observed_at(source: PriceSource) -> pl.Expr | None:
    if source == "current":
        return None
    return col("sales_fetched_at" if source == "sales_anchor" else "observed_at")


def unrefused(source: PriceSource) -> pl.Expr:
    return where(col(f"refused_{source}").is_null(), lit(source, SOURCE))


def _refusal(source: PriceSource, run: Run) -> pl.Expr:
    checks = [("absent", price_of(source).is_null())]
    if source == "sales_anchor":
        checks += [
            ("too_few_sales", ~true(col("sales_count") >= ANCHOR_SALES)),
            ("sales_too_old", ~since(run.now - SALES_WINDOW, "sales_newest_at")),
            ("evidence_too_old", ~since(run.now - SALES_FETCHED, "sales_fetched_at")),
            # Evidence with a time in the future has no valid age, so it is refused.
            ("future_evidence", true(col("sales_fetched_at") > moment(run.now))),
        ]
    elif source != "current":
        # A price of unknown age may be too old, so it is refused.
        checks += [
            ("too_old", ~since(run.now - timedelta(hours=run.seller.max_age_hours), "observed_at"))
        ]
    return first([(fails, lit(reason, REFUSAL)) for reason, fails in checks], REFUSAL)
