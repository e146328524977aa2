"""Identifies each row of an upload: its card, its product, and the kind of match.

A stored card with the row's SKU keeps its product if it was matched, or if its texts are unchanged.
All other stored cards are matched with the catalog; without a match, a provisional product is made
from the row. New cards get no product here: `new_products` finds it while other cards are written.
"""

from __future__ import annotations

import asyncio

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state import state as sync_state
from cardsync.catalog import products
from cardsync.catalog.condition import condition_columns
from cardsync.imports import diff
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database


async def identify(
    database: Database,
    seller_id: int,
    frame: pl.DataFrame,
    stored: pl.DataFrame,
) -> pl.DataFrame:
    """Return the frame with marketplace_id, id (null for a new card), `*_old`, condition, printing,
    language, gone, product_id and match.
    """
    frame = await number_listings(database, seller_id, frame)
    rows = await asyncio.to_thread(_described, frame, stored)
    rows = await _with_adopted(database, rows)
    same_texts = pl.col("identity_hash") == pl.col("identity_hash_old")
    known = pl.col("product_id_old").is_not_null() & (
        same_texts | (pl.col("match_old") == "matched")
    )
    rows = rows.with_columns(
        product_id=pl.when(known).then("product_id_old"), match=pl.when(known).then("match_old")
    ).with_row_index("row")
    asked = rows.select("row", "id", *products.ROW_COLUMNS, "title", "product_id")
    asked = asked.filter(pl.col("id").is_not_null() & pl.col("product_id").is_null())
    if asked.height:
        found = await products.resolve(database, asked.drop("id", "product_id"))
        del asked
        # Only the row numbers are joined, because a join of the whole rows would copy all their
        # columns.
        beside = rows.select("row").join(found, on="row", how="left", maintain_order="left")
        rows = rows.with_columns(
            product_id=pl.coalesce("product_id", beside["product_id"]),
            match=pl.coalesce("match", beside["match"]),
        )
    return rows.drop("row")


def _described(frame: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    described = condition_columns(frame["condition_label"])
    frame = frame.with_columns(
        described["condition"],
        described["printing"],
        described["language"],
        diff.identity_hash(frame),
        diff.values_hash(frame),
        gone=pl.col("quantity") == 0,
    )
    return diff.with_stored(frame, stored)


async def number_listings(database: Database, seller_id: int, frame: pl.DataFrame) -> pl.DataFrame:
    """Add the column marketplace_id: the listing's own id, or, for a custom listing, a negative
    number that is assigned when the listing is first uploaded.
    """
    frame = frame.with_columns(marketplace_id=pl.col("listing_id"))
    # The columns are selected first, because a filter copies every column of its frame.
    custom = frame.select("listing_id", "title", "custom").filter("custom").drop("custom")
    if custom.is_empty():
        return frame
    async with database.tenant(seller_id) as session:
        # The lock allows only one worker at a time to assign numbers, even if a worker that lost
        # its lease is still running.
        await sync_state.locked(session, seller_id)
        numbers = await _numbers_of(session, seller_id, custom.unique(maintain_order=True))
    minted = frame.select("listing_id", "title", "custom").join(
        numbers.with_columns(custom=pl.lit(True)),
        on=["listing_id", "title", "custom"],
        how="left",
        maintain_order="left",
    )
    if minted.filter("custom")["number"].null_count():
        raise RuntimeError("a custom listing got no number")
    return frame.with_columns(marketplace_id=pl.coalesce(minted["number"], pl.col("listing_id")))


async def _numbers_of(session: AsyncSession, seller_id: int, custom: pl.DataFrame) -> pl.DataFrame:
    """Return the number of each listing_id and title. New numbers are committed at once, so that a
    restarted import finds the same numbers.
    """
    await session.execute(
        text(queries_of(__package__)["number_custom_listings"]),
        {
            "seller": seller_id,
            "ids": custom["listing_id"].to_list(),
            "titles": custom["title"].to_list(),
        },
    )
    rows = await session.execute(
        text("""
            SELECT listing_id, title, marketplace_id FROM custom_listing
             WHERE seller_id = :seller AND listing_id = ANY(CAST(:ids AS bigint[]))
        """),
        {
            "seller": seller_id,
            "ids": custom["listing_id"].to_list(),
        },
    )
    schema = {
        "listing_id": pl.Int64,
        "title": pl.String,
        "number": pl.Int64,
    }
    return pl.DataFrame(
        [tuple(row) for row in rows],
        schema=schema,
        orient="row",
    )


async def _with_adopted(database: Database, rows: pl.DataFrame) -> pl.DataFrame:
    """Prepare cards for another match if a later catalog adopted their provisional product."""
    waiting = (
        rows.select("match_old", "product_id_old")
        .filter(pl.col("match_old").is_in(["provisional", "ambiguous"]))
        .select("product_id_old")
        .unique()
    )
    if waiting.is_empty():
        return rows
    adopted = await products.adopted(database, waiting["product_id_old"].to_list())
    if adopted.is_empty():
        return rows
    # A row whose `identity_hash_old` is null is matched again by `identify` and written by
    # `diff.changes`.
    joined = rows.join(adopted, on="product_id_old", how="left", maintain_order="left")
    return joined.with_columns(
        identity_hash_old=pl.when(pl.col("adopted_id").is_null()).then("identity_hash_old")
    ).drop("adopted_id")
