"""Packs the receipts of a run, the engine's inputs and every step's result, into one Parquet file,
and reads it back. Pure.

A step that did not change the price is stored as null, which takes no space. Rules, sales, settings
and the moment of the run are in the file's metadata, so that the file alone suffices to price all
of its cards again.
"""

from __future__ import annotations

import io
from datetime import datetime
from typing import Final

import msgspec
import polars as pl

from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.engine import INPUT_COLUMNS, NOTHING, PRICE_STEPS, RECEIPT_COLUMNS
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.engine.simulate import simulate

# Input columns that no step reads.
_TEXTS: Final = ("condition", "printing", "language")
_INPUTS: Final = {name: dtype for name, dtype in INPUT_COLUMNS.items() if name not in _TEXTS}
_COLUMNS: Final = {**_INPUTS, **RECEIPT_COLUMNS}
_RUN: Final = "cardsync.run"
_STEPS: Final = frozenset(step.output for step in PRICE_STEPS[:-1])
# A reader finds one row by the statistics of its row group.
_GROUP_ROWS: Final = 16_384


# Settings that older runs did not have, with the values that reproduce the receipts of these runs.
_UNKNOWN_THEN: Final[dict[str, object]] = {"minimum_cap_step": 0}


class _Kept(msgspec.Struct):
    rules: list[Rule]
    sales: list[Sale]
    seller: JsonObject
    now: datetime


def pack(taken: list[pl.DataFrame], run: Run) -> bytes:
    """Pack the cards of a run, as `engine.price` returned them, into a file sorted by
    marketplace_id.

    The frame is removed from the list `taken`, which contains only this frame. If there is no other
    reference to the frame, each column is freed before the next column is sorted. Two frames of a
    large run at once would be the peak of a worker's memory use.
    """
    frame = _sorted(filled(taken.pop()))
    kept = _Kept(
        list(run.rules),
        list(run.sales),
        msgspec.to_builtins(run.seller),
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


def receipt(data: bytes, marketplace_id: int) -> dict[str, object] | None:
    """Return one card's row, or None if the run did not price the card."""
    found = pl.scan_parquet(data).filter(pl.col("marketplace_id") == marketplace_id).collect()
    return _whole(found).row(0, named=True) if found.height else None


def run_of(data: bytes) -> Run:
    kept = msgspec.json.decode(pl.read_parquet_metadata(data)[_RUN], type=_Kept)
    seller = msgspec.convert({**_UNKNOWN_THEN, **kept.seller}, SellerPricing)
    return Run(kept.rules, seller, kept.now, kept.sales)


def replay(data: bytes) -> int:
    """Return the number of cards whose price differs when they are priced again from the file
    alone.
    """
    frame, run = unpack(data)
    given = frame.select(*_INPUTS, "rule_id", "sale_id", "guards").with_columns(
        pl.lit(None, pl.String).alias(name) for name in _TEXTS
    )
    priced = simulate(run, given).cards
    return int(priced["target"].ne_missing(frame["target"]).sum())


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort by marketplace_id, and leave out the prices of steps that changed nothing; the target is
    always stored, so that it can be compared. The columns are removed from `frame`.
    """
    order = frame["marketplace_id"].arg_sort()
    made: list[pl.Series] = []
    before: pl.Series | None = None
    for name in frame.columns:
        column = frame.drop_in_place(name).gather(order)
        if name == "base":
            before = column
        elif name in _STEPS and before is not None:
            step = pl.DataFrame([column, before.alias("before")])
            moved = pl.when(pl.col(name).ne_missing(pl.col("before"))).then(name)
            column = step.select(moved).to_series()
            before = step.select(pl.coalesce(name, "before")).to_series()
        made.append(column)
    return filled(pl.DataFrame(made))


def filled(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of a receipt that hold any value, and the card's id, which even a file
    without cards has.
    """
    nulls = frame.null_count().row(0, named=True)
    return frame.select(
        name
        for name in _COLUMNS
        if name == "marketplace_id" or nulls.get(name, frame.height) < frame.height
    )


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    held = set(frame.columns)
    absent = (NOTHING[name] for name in _COLUMNS if name not in held)
    return frame.with_columns(absent).select(*_COLUMNS)
