"""Prices the rows of an import, and collects the results of the pricing run."""

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
    """The results of a pricing run, except its targets. `held_back` is true if the run sets no
    targets, because the upload needs review, or a run over the stored cards follows. `moves` has
    the counts and values of price rises and falls.
    """

    held_back: bool
    blocked: dict[str, int]
    moves: dict[str, int]
    limited: pl.DataFrame
    receipts: pl.DataFrame | None
    # The large price moves that the seller confirmed, if the upload needed review for them.
    confirmed: pl.DataFrame | None
    # The priced cards, with the promotion that set the price.
    sold: on_sale.OnSale | None
    # The prices that need review, and the cards of control groups.
    reviews: RunFindings | None


def price_rows(
    rows: pl.DataFrame,
    past: Past,
    seen: pl.DataFrame | None,
    decided: pl.DataFrame,
    run: Run,
    observed_at: datetime,
) -> pl.DataFrame:
    """Price the identified rows. `run.now` is when the import began, so that a restarted import
    computes the same prices.

    If pricing needs the database (`run.asks_database`), no rule prices the rows here: a pricing run
    over the stored cards follows (`prices/runs/reprice.py`).
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
        # A new card has no market evidence, because its product is not identified yet.
        found = rows.select("id").join(seen, on="id", how="left", maintain_order="left")
        cards = cards.hstack(found.drop("id"))
    return engine.price(cards, run.rules, run.seller, run.now, run.sales)


def prices_of(priced: pl.DataFrame, run: Run, verdict: Verdict, *, logged: bool) -> Prices:
    """Return the run's results, except targets; with receipts only if `logged`."""
    held_back = bool(run.asks_database or verdict.review)
    counted = engine.summary(priced)
    return Prices(
        held_back,
        {} if run.asks_database else counted.blocked,
        {} if held_back else {name: getattr(counted, name) for name in MOVES},
        engine.limited(priced),
        # Receipts remain in memory until they are written, so empty columns are dropped here.
        filled(priced) if logged and not held_back else None,
        breaker.leaps(priced) if verdict.settles_leaps else None,
        None if held_back else on_sale.on_sale(priced),
        None if held_back else found_in(priced, run),
    )


def with_targets(rows: pl.DataFrame, priced: pl.DataFrame, *, held_back: bool) -> pl.DataFrame:
    """Return the rows with their targets. If targets are held back, a card keeps its old target if
    its price is unchanged, and otherwise has no target.
    """
    if held_back:
        kept = pl.when(pl.col("price").eq_missing(pl.col("price_old"))).then("target_price_old")
        return rows.with_columns(target_price=kept, rule_id=pl.lit(None, pl.Int64))
    return rows.with_columns(target_price=priced["target"], rule_id=priced["rule_id"])
