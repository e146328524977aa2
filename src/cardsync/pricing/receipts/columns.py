"""Receipts of a run: the engine's inputs and every step's result go in; one Parquet file comes out,
and can be read back. The module is pure.

A step that left the price as it was is a null, which costs nothing; rules, sales, settings and the
moment of the run stand in the file's metadata, so that a file alone prices every card of it again.
"""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any, Final

import msgspec
import polars as pl

from cardsync.pricing.engine import engine
from cardsync.pricing.engine.engine import INPUT_COLUMNS, PRICE_STEPS, RECEIPT_COLUMNS
from cardsync.pricing.engine.rules import Rule, Sale, SellerPricing
from cardsync.pricing.engine.run_inputs import Run

# No step reads these columns.
_TEXTS: Final = ("condition", "printing", "language")
_INPUTS: Final = {name: dtype for name, dtype in INPUT_COLUMNS.items() if name not in _TEXTS}
_COLUMNS: Final = {**_INPUTS, **RECEIPT_COLUMNS}
_RUN: Final = "cardsync.run"
# A reader finds one row by the statistics of its group.
_GROUP_ROWS: Final = 16_384


class _Kept(msgspec.Struct):
    rules: list[Rule]
    sales: list[Sale]
    seller: SellerPricing
    now: datetime


def pack(priced: pl.DataFrame, run: Run) -> bytes:
    """Pack the cards of a run, as `engine.price` left them, into a file sorted by
    marketplace_id.
    """
    # Sorting comes last, after empty columns and repeated values are gone, because it copies every
    # column.
    frame = filled(_without_repeats(filled(priced))).sort("marketplace_id")
    kept = _Kept(
        list(run.rules),
        list(run.sales),
        run.seller,
        run.now,
    )
    out = io.BytesIO()
    frame.write_parquet(
        out,
        compression="zstd",
        compression_level=1,
        row_group_size=_GROUP_ROWS,
        metadata={_RUN: msgspec.json.encode(kept).decode()},
    )
    return out.getvalue()


def unpack(data: bytes) -> tuple[pl.DataFrame, Run]:
    return _whole(pl.read_parquet(data)), run_of(data)


def receipt(data: bytes, marketplace_id: int) -> dict[str, Any] | None:
    """Return one card's row, None if the run did not price it."""
    found = pl.scan_parquet(data).filter(pl.col("marketplace_id") == marketplace_id).collect()
    return _whole(found).row(0, named=True) if found.height else None


def run_of(data: bytes) -> Run:
    kept = msgspec.json.decode(pl.read_parquet_metadata(data)[_RUN], type=_Kept)
    return Run(kept.rules, kept.seller, kept.now, kept.sales)


def replay(data: bytes) -> int:
    """Return how many cards get another price when they are priced again from the file alone."""
    frame, run = unpack(data)
    given = frame.select(*_INPUTS, "rule_id", "sale_id").with_columns(
        pl.lit(None, pl.String).alias(name) for name in _TEXTS
    )
    priced = engine.price(
        given,
        run.rules,
        run.seller,
        run.now,
        run.sales,
    )
    return int((priced["target"].ne_missing(frame["target"])).sum())


def _without_repeats(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the prices of steps that changed nothing; the target always stands, so that it can
    be compared.
    """
    columns: list[pl.Expr] = []
    before = pl.col("base")
    if "base" not in frame.columns:
        return frame
    for step in PRICE_STEPS[:-1]:
        if step.output not in frame.columns:
            continue
        after = pl.col(step.output)
        columns.append(pl.when(after.ne_missing(before)).then(after).alias(step.output))
        before = pl.coalesce(after, before)
    return frame.with_columns(columns)


def filled(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a receipt that hold anything, and the card's id, which even a file
    without cards has.
    """
    nulls = frame.null_count().row(0, named=True)
    return frame.select(
        name
        for name in _COLUMNS
        if name == "marketplace_id" or nulls.get(name, frame.height) < frame.height
    )


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    absent = (
        pl.lit(None, dtype).alias(name)
        for name, dtype in _COLUMNS.items()
        if name not in frame.columns
    )
    return frame.with_columns(absent).select(*_COLUMNS)
