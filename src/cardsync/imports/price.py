"""Prices the rows of an import, and reports the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import polars as pl

from cardsync.imports.judge_upload import Verdict
from cardsync.prices.decisions import on_sale
from cardsync.prices.decisions.found_in_run import RunFindings, found_in
from cardsync.prices.engine import breaker, engine
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.price_history import Past
from cardsync.prices.receipts.parquet_file import filled
from cardsync.prices.standing import with_decided

MOVES: Final = ("held", "up", "down", "up_value", "down_value")


@dataclass(frozen=True)
class Prices:
    """The results of a run besides its targets. `held_back` is true if there are no targets,
    because the upload needs review or a run over the stored cards follows. `moves` are the
    summary's counts and values of rises and falls.
    """

    held_back: bool
    blocked: dict[str, int]
    moves: dict[str, int]
    limited: pl.DataFrame
    receipts: pl.DataFrame | None
    # The leaps that the seller confirmed, where the upload waited for that.
    confirmed: pl.DataFrame | None
    # The cards that the run priced, and which of them have a sale's price.
    sold: on_sale.OnSale | None
    # The prices that need review, and the cards of hold-outs.
    reviews: RunFindings | None


def price_rows(
    rows: pl.DataFrame,
    past: Past,
    seen: pl.DataFrame | None,
    decided: pl.DataFrame,
    run: Run,
    observed_at: datetime,
) -> pl.DataFrame:
    """Price the identified rows.

    The run's moment is when the upload was begun, so that one that starts again prices the same.
    Queries and market evidence are asked of the database: rules with either price the cards once
    they are written (`pricing.runs.reprice`), and no rule prices them here.
    """
    if run.asks_database:
        run = replace(run, rules=[], sales=[])
    cards = rows.select(
        "marketplace_id", "condition", "printing", "language", "quantity", "custom",
        "market", "low", "low_with_shipping", "direct_low",
        current_price="price", observed_at=pl.lit(observed_at),
    )  # fmt: skip
    cards = cards.with_columns(**past.columns(rows, observed_at))
    cards = with_decided(cards, decided)
    if seen is not None:
        # A new card has no evidence until its product is identified.
        found = rows.select("id").join(seen, on="id", how="left", maintain_order="left")
        cards = cards.hstack(found.drop("id"))
    return engine.price(cards, run.rules, run.seller, run.now, run.sales)


def prices_of(priced: pl.DataFrame, run: Run, verdict: Verdict, *, logged: bool) -> Prices:
    """Return the run's results other than targets; `logged` includes receipts."""
    held_back = bool(run.asks_database or verdict.review)
    counted = engine.summary(priced)
    return Prices(
        held_back,
        {} if run.asks_database else counted.blocked,
        {} if held_back else {name: getattr(counted, name) for name in MOVES},
        engine.limited(priced),
        # Empty columns go at once: the rest stays in memory until it is written.
        filled(priced) if logged and not held_back else None,
        breaker.leaps(priced) if verdict.settles_leaps else None,
        None if held_back else on_sale.on_sale(priced),
        None if held_back else found_in(priced, run),
    )


def with_targets(rows: pl.DataFrame, priced: pl.DataFrame, *, held_back: bool) -> pl.DataFrame:
    """Return the rows with their targets.

    While targets are held back, a card keeps its target only if its price stayed too.
    """
    if held_back:
        kept = pl.when(pl.col("price").eq_missing(pl.col("price_old"))).then("target_price_old")
        return rows.with_columns(target_price=kept, rule_id=pl.lit(None, pl.Int64))
    return rows.with_columns(target_price=priced["target"], rule_id=priced["rule_id"])
