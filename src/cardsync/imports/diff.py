"""Compares an upload's identified rows with the stored cards, and finds the rows to write. Pure.

Amounts are integer ten-thousandths. A run that restarts after a crash compares with the rows that
it has already written, and so continues where it stopped.
"""

from __future__ import annotations

import polars as pl

from cardsync.agents.seller_state.exported import asks, importable
from cardsync.imports.limits import SHORT_INVENTORY_MIN_ROWS
from cardsync.stock.cards.changes import AMOUNTS, IDENTITY, Changes

# The columns of a stored card that `stored_cards` reads. The quantity, and amounts other than the
# price, are only in `values_hash`.
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
    """Return a 64-bit hash of all texts of each row. Comparing hashes saves reading the stored
    texts. A change of the hash function would only rewrite all cards once.
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
    """Return a 64-bit hash of the amounts and the quantity of each row. Any single change of these
    values, or of the price's source, changes the hash. No row has the hash 0, which marks cards
    that an upload removed from stock.
    """
    own = pl.col("price")
    # Prices are not negative, so a negative sign can mark My Store Price. Hashes of marketplace
    # prices are the same as without this mark.
    frame = frame.with_columns(price=pl.when("my_store_priced").then(-own).otherwise(own))
    # The steps are separate: a single expression would contain itself twice per step, and planning
    # it would take longer than computing it.
    mixed = pl.repeat(1, frame.height, dtype=pl.UInt64, eager=True)
    for name in (*AMOUNTS, "quantity"):
        # The product with an odd number loses no bit. The XOR copies high bits to low positions,
        # from where the next product spreads them.
        mixed = (mixed + frame[name].fill_null(-1).cast(pl.Int64).reinterpret(signed=False)) * _ODD
        mixed = mixed ^ (mixed // (1 << 32))
    return mixed.reinterpret(signed=True).replace(0, 1).alias("values_hash")


def with_stored(frame: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of its stored card to each row, with names ending in `_old`. `id` is null for
    a new card.
    """
    old = stored.drop("product_line").rename(
        lambda name: name if name in ("id", "marketplace_id") else f"{name}_old"
    )
    # Only the ids are joined, because a join of the whole rows would copy all their columns.
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
    """Return the active stored cards without a row in the file. Only cards of the upload's product
    line are returned, or, if the upload has none, cards of the product lines of its rows.

    A rejected row counts as a row of its card. `gone` is true for cards of product lines with rows
    in the file. It is false for all cards if the file has `unnamed` rows, because any of these may
    be the card's row.
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
    """Return a note for the seller about absent cards that remain in stock; None without such
    cards.
    """
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
    """Return the product lines with at least 20 active cards, of which more than half are absent.
    An upload with such lines needs the seller's confirmation.
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
    """Divide the rows of `with_stored`, which also have target_price and rule_id, by the kind of
    write that they need. A stored row is a rename if its texts or product changed, and an update if
    only values changed.

    `observed` marks rows whose prices or quantity changed; their old values are added to the
    history. `asked` marks rows whose target is a price change that was not exported before with the
    same price and target; with `hold`, no row is marked.
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
        # The rows are sorted by key, so that adjacent index pages are written together, and two
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
    """Return listing_id and target_price of every card in the export after this run, sorted by id.

    `rows` have their new targets. Stored cards without a row are unchanged, except the `absent`
    cards, which are no longer in stock. The condition is the same as `EXPORTED`
    (agents/seller_state/exported.py), but for data frames.
    """
    columns = ("marketplace_id", "listing_id", "price", "my_store_priced", "target_price")
    # Stored cards of a disabled product line have a null product line.
    others = (
        stored.select("id", "gone", "product_line", *columns)
        .filter(~pl.col("gone") & pl.col("product_line").is_not_null())
        .join(rows.select("marketplace_id"), on="marketplace_id", how="anti")
    )
    others = others.join(absent.select("id"), on="id", how="anti")
    own = rows.select(*columns, "gone").filter(~pl.col("gone"))
    return importable(pl.concat([own.select(columns), others.select(columns)]))
