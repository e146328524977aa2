"""Collects the findings of a priced run: prices that need review, prices after the end of sales,
and cards of hold-outs. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import polars as pl

from cardsync.catalog.market.verdicts import SALES_FETCHED, SALES_WINDOW
from cardsync.prices.engine.breaker import CONFIRMED_BP
from cardsync.prices.engine.expressions import true
from cardsync.prices.engine.holdout_draw import window
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.engine.run_inputs import LISTINGS_MAX_AGE_HOURS, TIME, Run

_MOST: Final = 2**62
WAITING: Final[dict[str, pl.DataType]] = {
    "marketplace_id": pl.Int64(),
    "reason": pl.String(),
    "rule_id": pl.Int64(),
    "current_price": pl.Int64(),
    "proposed_price": pl.Int64(),
    "regular_price": pl.Int64(),
    "result": pl.Int64(),
    "worth": pl.Int64(),
    "expires_at": TIME,
}


@dataclass(frozen=True)
class RunFindings:
    """The findings of a priced run. `priced` are the ids of all its cards. `back` are the cards at
    a sale's price, with their price after the sale. `drawn` are the cards of hold-outs for which a
    rule asks another price. `groups` has each priced card's group in a hold-out, or null. `pins`
    are the pins that the run used. `part` is the number of the 30-day window.
    """

    priced: pl.Series
    waiting: pl.DataFrame
    back: pl.DataFrame
    drawn: pl.DataFrame
    groups: pl.DataFrame
    pins: pl.DataFrame
    part: int


def found_in(priced: pl.DataFrame, run: Run) -> RunFindings:
    waits = priced.filter(pl.col("review").is_not_null()) if run.reviewed else priced.clear()
    return RunFindings(
        priced["marketplace_id"],
        _waiting(waits, run),
        ways_back(priced, run),
        _drawn(priced if run.held_out else priced.clear(), run),
        priced.filter(pl.col("after_rounding").is_not_null()).select("marketplace_id", "holdout"),
        priced.filter(pl.col("pin").is_not_null()).select("marketplace_id", "pin"),
        window(run.now),
    )


def _waiting(waits: pl.DataFrame, run: Run) -> pl.DataFrame:
    proposed = pl.coalesce("after_holdout", "after_rounding")
    move = (proposed - pl.col("current_price").fill_null(0)).abs().cast(pl.Int128)
    worth = (move * pl.col("quantity")).clip(upper_bound=_MOST).cast(pl.Int64)
    hours = {
        rule.id: rule.market_gate.max_age_hours if rule.market_gate else LISTINGS_MAX_AGE_HOURS
        for rule in run.live
    }
    listings_for = pl.col("rule_id").replace_strict(hours, return_dtype=pl.Int64)
    return waits.select(
        "marketplace_id",
        pl.col("review").cast(pl.String).alias("reason"),
        "rule_id",
        "current_price",
        proposed.alias("proposed_price"),
        pl.when(pl.col("sale_id").is_null())
        .then(proposed)
        .otherwise(_regular())
        .alias("regular_price"),
        pl.col("after_bounds").alias("result"),
        worth.alias("worth"),
        _expires(run, listings_for).alias("expires_at"),
    )


def _expires(run: Run, listings_hours: pl.Expr) -> pl.Expr:
    """Return the time at which the first piece of evidence behind a price is too old."""
    upload = timedelta(hours=run.seller.max_age_hours)
    listed = pl.duration(hours=listings_hours)
    anchored = pl.col("source") == "sales_anchor"
    gated = pl.col("gate_verdict") == "taken"
    undercut = pl.col("undercut_verdict") == "taken"
    by_listings = undercut & (pl.col("undercut_source") == "listings")
    ages = [
        pl.when(~anchored).then(pl.col("source_observed_at") + upload),
        pl.when(anchored).then(pl.col("sales_fetched_at") + SALES_FETCHED),
        pl.when(anchored).then(pl.col("sales_newest_at") + SALES_WINDOW),
        *(
            pl.when(gated).then(pl.col(clock) + listed)
            for clock in ("observed_at", "listings_observed_at", "sales_fetched_at")
        ),
        pl.when(by_listings).then(pl.col("undercut_observed_at") + listed),
        pl.when(undercut & ~by_listings).then(pl.col("undercut_observed_at") + upload),
    ]
    # A price from the source `current` has no evidence, so its review lasts as long as prices of an
    # upload.
    return pl.coalesce(pl.min_horizontal(ages), pl.lit(run.now + upload, TIME)).cast(TIME)


def ways_back(priced: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return the cards at a sale's price, with the price that counts as accepted after the sale:
    the regular price, because the seller made the sale and so accepted its end. If the regular
    price rose beyond the review limits during the sale, it is the price before the rise.
    """
    if not (run.reviewed and run.on_sale):
        priced = priced.clear()
    regular = _regular()
    ups = {rule.id: (rule.review or run.seller.review).up_bp for rule in run.live}
    up = pl.col("rule_id").replace_strict(ups, default=None, return_dtype=pl.Int64)
    approved = pl.col("approved_price")
    before = pl.max_horizontal("current_price", approved)
    hidden = true((regular - before) * WHOLE_BP > before * up)
    hidden &= ~true((regular - approved) * WHOLE_BP <= approved * CONFIRMED_BP)
    return priced.filter(
        pl.col("sale_id").is_not_null() & pl.col("review").is_null() & (pl.col("target") < regular)
    ).select(
        "marketplace_id",
        "rule_id",
        price=pl.when(hidden).then(before).otherwise(regular),
        result="after_bounds",
    )


def _regular() -> pl.Expr:
    # `after_cap` is null in a run without caps.
    return pl.coalesce("after_cap", "after_bounds")


def _drawn(priced: pl.DataFrame, run: Run) -> pl.DataFrame:
    asked = pl.col("after_rounding")
    moves = (asked - pl.col("current_price")).abs() >= max(run.seller.minimum_move, 1)
    return priced.filter(pl.col("holdout").is_not_null() & moves).select(
        "marketplace_id",
        "rule_id",
        held=pl.col("holdout") == "held",
        price="current_price",
        asked=asked,
    )
