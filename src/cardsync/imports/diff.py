"""Compares an upload's identified rows with the stored cards, and finds the rows to write. Pure.

Amounts are integer ten-thousandths. A run that starts again after a crash diffs against the rows
that it already wrote, and so goes on where it stopped.
"""

from __future__ import annotations

import polars as pl

from cardsync.agents.seller_state.exported import asks, importable
from cardsync.imports.limits import SHORT_INVENTORY_MIN_ROWS
from cardsync.stock.cards.changes import AMOUNTS, IDENTITY, Changes

# One stored card as `stored_cards` reads it. Its amounts and quantity are present only in
# `values_hash`.
STORED: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.Int64,
    "marketplace_id": pl.Int64,
    "listing_id": pl.Int64,
    "product_id": pl.Int64,
    "identity_hash": pl.Int64,
    "values_hash": pl.Int64,
    "match": pl.String,
    "product_line": pl.String,
    "gone": pl.Boolean,
    "price": pl.Int64,
    "my_store_priced": pl.Boolean,
    "target_price": pl.Int64,
}


_SEPARATOR = "\x1f"
_HASHED_ROWS = 25_000


def identity_hash(frame: pl.DataFrame) -> pl.Series:
    """Return 64 bits over every text of a row.

    The hash saves reading the stored texts; a changed hash function only costs one rewrite.
    """
    texts = pl.concat_str(IDENTITY, separator=_SEPARATOR)
    # The texts are hashed part by part: all rows' texts at once would be another copy of the file.
    parts = [
        part.select(texts.hash(seed=7)).to_series()
        for part in frame.select(IDENTITY).iter_slices(_HASHED_ROWS)
    ]
    return (
        pl.concat(parts or [pl.Series(dtype=pl.UInt64)])
        .reinterpret(signed=True)
        .alias("identity_hash")
    )


_ODD = 0x9E3779B97F4A7C15


def values_hash(frame: pl.DataFrame) -> pl.Series:
    """Return 64 bits over amounts and quantity. Any single change of these values, or of the
    price's source, changes the bits.

    No row has the hash 0, which marks cards that an upload made gone.
    """
    own = pl.col("price")
    # No price is negative, so the sign marks the source, and hashes of marketplace prices stay
    # unchanged.
    frame = frame.with_columns(price=pl.when("my_store_priced").then(-own).otherwise(own))
    # The steps are separate: a single expression would contain itself twice per step, and planning
    # it would take longer than computing it.
    mixed = pl.repeat(1, frame.height, dtype=pl.UInt64, eager=True)
    for name in (*AMOUNTS, "quantity"):
        # Multiplying by an odd number loses no bit, and folding carries high bits back to where the
        # next product spreads them.
        mixed = (mixed + frame[name].fill_null(-1).cast(pl.Int64).reinterpret(signed=False)) * _ODD
        mixed = mixed ^ (mixed // (1 << 32))
    return mixed.reinterpret(signed=True).replace(0, 1).alias("values_hash")


def with_stored(frame: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Join each row to its stored card: `id` is null for a new card; stored columns end in `_old`."""
    old = stored.drop("product_line").rename(
        lambda name: name if name in ("id", "marketplace_id") else f"{name}_old"
    )
    # The join is by id alone: a join of the rows themselves would copy every column of them.
    beside = frame.select("marketplace_id").join(
        old,
        on="marketplace_id",
        how="left",
        maintain_order="left",
    )
    return frame.hstack(beside.drop("marketplace_id"))


def absent_cards(
    frame: pl.DataFrame,
    rejected_ids: list[int],
    unnamed: int,
    stored: pl.DataFrame,
    product_line: str | None,
) -> pl.DataFrame:
    """Return the active stored cards that the file does not mention, in the product line that the
    upload names, otherwise in the lines of its rows.

    A row that was left out still mentions its card. `gone` is true in the lines that have rows in
    the file; no card is gone where the file has `unnamed` rows, because any of them may be that
    card.
    """
    occurring = frame["product_line"].unique().to_list()
    lines = occurring if product_line is None else [product_line]
    cards = stored.select("id", "marketplace_id", "listing_id", "product_line", "gone")
    active = cards.filter(~pl.col("gone") & pl.col("product_line").is_in(lines))
    absent = active.join(frame.select("marketplace_id"), on="marketplace_id", how="anti")
    spoken_for = pl.col("product_line").is_in([] if unnamed else occurring)
    return absent.filter(~pl.col("listing_id").is_in(rejected_ids)).select(
        "id",
        "product_line",
        gone=spoken_for,
    )


def why_kept(absent: pl.DataFrame, unnamed: int) -> str | None:
    """Build the seller's notes about absent cards that the file cannot speak for."""
    kept = absent.filter(~pl.col("gone"))
    if kept.is_empty():
        return None
    lines = ", ".join(sorted(kept["product_line"].unique()))
    why = (
        f"unreadable rows ({unnamed:,}) may belong to them"
        if unnamed
        else "the file has no rows for this game"
    )
    return f"{kept.height:,} missing cards of {lines} stay in stock: {why}"


def short_lines(absent: pl.DataFrame, stored: pl.DataFrame) -> list[str]:
    """Return the product lines of which more than half of at least 20 active cards are absent: such
    a file is not believed until the seller confirms it.
    """
    if absent.is_empty():
        return []
    active = stored.filter(~pl.col("gone")).group_by("product_line").len("active")
    counts = absent.group_by("product_line").len("absent").join(active, on="product_line")
    short = counts.filter(
        (pl.col("active") >= SHORT_INVENTORY_MIN_ROWS) & (pl.col("absent") * 2 > pl.col("active"))
    )
    return sorted(short["product_line"].to_list())


_INSERT, _UPDATE, _RENAME, _RETARGET = range(4)


def changes(rows: pl.DataFrame, *, hold: bool = False) -> Changes:
    """Split `with_stored` rows, which also carry target_price and rule_id, by the kind of write
    that they need.

    `observed` marks rows whose prices or quantity moved; the old values go to history. `asked`
    marks rows whose target is a price change with a pair of price and target that was not exported
    before; with `hold` there are no such rows. Stored rows are renames when their texts or product
    changed, and updates when only values did.
    """
    known = pl.col("id").is_not_null()
    moved = pl.col("values_hash").ne_missing(pl.col("values_hash_old"))
    renamed = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(f"{name}_old"))
        for name in ("identity_hash", "product_id", "match")
    )
    returned = pl.col("gone_old") != pl.col("gone")
    retargeted = pl.col("target_price").ne_missing(pl.col("target_price_old"))
    repriced = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(f"{name}_old")) for name in ("price", "my_store_priced")
    )
    rows = rows.with_columns(
        observed=(known & moved).fill_null(False),
        asked=((retargeted | repriced) & asks() & pl.lit(not hold)).fill_null(False),
        kind=pl.when(~known).then(pl.lit(_INSERT))
        .when(renamed).then(pl.lit(_RENAME))
        .when(moved | returned).then(pl.lit(_UPDATE))
        .when(retargeted).then(pl.lit(_RETARGET)).cast(pl.Int8),
    )  # fmt: skip
    keys = rows.select("kind", "id", "marketplace_id").with_row_index("at")

    def at(kind: int, key: str) -> pl.Series:
        # The rows are ordered by key: neighbouring index pages are touched together, and two
        # writers cannot deadlock.
        return keys.filter(pl.col("kind") == kind).sort(key)["at"]

    return Changes(
        rows,
        at(_INSERT, "marketplace_id"),
        at(_UPDATE, "id"),
        at(_RENAME, "id"),
        at(_RETARGET, "id"),
    )


def exported(rows: pl.DataFrame, stored: pl.DataFrame, absent: pl.DataFrame) -> pl.DataFrame:
    """Return (listing_id, target_price) of every card that the export will hold once the run is
    written, sorted by id.

    `rows` carry their targets; stored cards that they do not mention stay as they are, and `absent`
    ones are gone. The rule is that of `cards.exported.EXPORTED`, on frames.
    """
    columns = ("marketplace_id", "listing_id", "price", "my_store_priced", "target_price")
    # The product line is null here if it is switched off.
    others = (
        stored.select("id", "gone", "product_line", *columns)
        .filter(~pl.col("gone") & pl.col("product_line").is_not_null())
        .join(rows.select("marketplace_id"), on="marketplace_id", how="anti")
    )
    others = others.join(absent.select("id"), on="id", how="anti")
    own = rows.select(*columns, "gone").filter(~pl.col("gone"))
    return importable(pl.concat([own.select(columns), others.select(columns)]))
