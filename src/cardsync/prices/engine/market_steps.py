"""The steps that read market data or sales: the market gate, the undercut and the stale reduction.
Pure.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from cardsync.catalog.market.verdicts import BUY_OUT_WINDOW
from cardsync.prices.engine.expressions import (
    first,
    moment,
    scaled,
    since,
    true,
    where,
    within,
)
from cardsync.prices.engine.row_values import (
    coalesce,
    col,
    lit,
    max_horizontal,
    min_horizontal,
    when,
)
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.engine.run_inputs import Run

VERDICT: Final = pl.Enum(
    [
        "taken", "market_stale", "no_listing", "listings_stale", "too_few_listings", "sales_stale",
        "too_few_sales",
        "buy_out", "not_lower",
    ]
)  # fmt: skip
LISTING_SOURCE: Final = pl.Enum(["listings", "low"])
UNDERCUT: Final = pl.Enum(["taken", "no_listing", "not_above", "buy_out", "not_higher"])
RECENT_MOVE: Final = timedelta(days=14)


# With these verdicts, the gate did not hold the price: it undercut the lowest listing, or the
# undercut would not have been lower than the price.
GATE_PASSED: Final = ("taken", "not_lower")


# Step 5
def market_gate(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Undercut the lowest listing if the market evidence is fresh and sufficient and no buyer
    bought the market out. The gate never raises a price.
    """

    def fresh(column: str) -> pl.Expr:
        return true((col(column) >= col("_gate_since")) & (col(column) <= moment(run.now)))

    gated = col("_gate_since").is_not_null() & price.is_not_null()
    market = col("market").is_not_null() & fresh("observed_at")
    aggressive = where(gated & market, scaled(col("listings_low"), col("_gate_factor")))
    verdicts = [
        ("market_stale", ~market),
        ("no_listing", col("listings_low").is_null()),
        ("listings_stale", ~fresh("listings_observed_at")),
        ("too_few_listings", ~(col("listings_count").fill_null(0) >= col("_gate_listings"))),
        ("sales_stale", ~fresh("sales_fetched_at")),
        ("too_few_sales", ~(col("sales_count").fill_null(0) >= col("_gate_sales"))),
        ("buy_out", _bought_out(run)),
        ("not_lower", ~true(aggressive < price)),
        ("taken", lit(True)),
    ]
    verdict = first([(holds, lit(name, VERDICT)) for name, holds in verdicts], VERDICT)
    return [
        when(true(gated & (verdict == "taken")))
        .then(aggressive)
        .otherwise(price)
        .alias("after_market_gate"),
        aggressive.alias("aggressive_price"),
        where(gated, verdict).alias("gate_verdict"),
    ]


def _bought_out(run: Run) -> pl.Expr:
    """Return whether a buy-out was detected in the last four hours; a time in the future does not
    count.
    """
    return within(run.now - BUY_OUT_WINDOW, run.now, "buy_out_detected_at")


# Step 5b
def undercut(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Raise the price to just under the lowest listing, if that is higher; never lower a price.

    The lowest listing is that of fresh listings in the card's condition, or else the low price of
    the upload.
    """
    asked = col("_up_factor").is_not_null() & price.is_not_null()
    seen = true(col("listings_observed_at") >= col("_up_since")) & true(
        col("listings_observed_at") <= moment(run.now)
    )
    listed = asked & seen & col("listings_low").is_not_null()
    oldest = run.now - timedelta(hours=run.seller.max_age_hours)
    low = asked & ~listed & col("low").is_not_null() & since(oldest, "observed_at")
    lowest = when(listed).then("listings_low").when(low).then("low")
    wanted = scaled(lowest, col("_up_factor"))
    verdicts = [
        ("no_listing", lowest.is_null()),
        ("not_above", ~true(lowest > price)),
        ("buy_out", _bought_out(run)),
        ("not_higher", ~true(wanted > price)),
        ("taken", lit(True)),
    ]
    verdict = first([(holds, lit(name, UNDERCUT)) for name, holds in verdicts], UNDERCUT)
    source = first(
        [(listed, lit("listings", LISTING_SOURCE)), (low, lit("low", LISTING_SOURCE))],
        LISTING_SOURCE,
    )
    observed = when(listed).then("listings_observed_at").when(low).then("observed_at")
    return [
        when(true(asked & (verdict == "taken")))
        .then(wanted)
        .otherwise(price)
        .alias("after_undercut"),
        lowest.alias("undercut_listing"),
        source.alias("undercut_source"),
        observed.alias("undercut_observed_at"),
        where(asked, verdict).alias("undercut_verdict"),
    ]


# Step 6
def stale_reduction(price: pl.Expr, run: Run) -> list[pl.Expr]:
    """Lower the price of a card that does not sell, step by step. With `velocity_boost_enabled`,
    cards whose market price moved in the last 14 days are spared.
    """
    asked = col("_stale_after").is_not_null() & price.is_not_null()
    unsold_since = max_horizontal("listed_since", "last_sold_at")
    days = where(
        asked,
        (coalesce("observed_at", moment(run.now)) - unsold_since).dt.total_days(),
    )
    due = true(days >= col("_stale_after"))
    spared = due & true(col("_velocity")) & since(run.now - RECENT_MOVE, "last_moved_at")
    cuts = 1 + (days - col("_stale_after")) // col("_stale_every")
    off = min_horizontal(cuts * col("_stale_step"), "_stale_limit")
    return [
        when(due & ~spared)
        .then(scaled(price, WHOLE_BP - off))
        .otherwise(price)
        .alias("after_stale_reduction"),
        days.cast(pl.Int32).alias("stale_days"),
        where(asked, spared).alias("stale_spared"),
    ]
