"""Defines which cards are in the export, in SQL and on frames, and the fingerprint of the exported
set, which is stored at the end of each pricing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.models import SyncState
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.derived.kept_figures import OF_PRICES, mark

# The cards that have enabled product lines and for which the marketplace accepts a price. The
# marketplace refuses a file with a repeated id, so an id that a custom listing shares with another
# active card is left out.
IMPORTABLE = queries_of(__package__)["importable"]


# The SQL condition for cards whose price the export changes. A card that sells at My Store Price
# has no marketplace price of its own, so even an equal target changes its price.
ASKED = "(c.target_price IS DISTINCT FROM c.price OR c.my_store_priced)"
EXPORTED = f"c.seller_id = {{seller_id}} AND c.target_price >= 0.01 AND {ASKED} AND {IMPORTABLE}"


# PostgreSQL returns the lines as one value: one row per line would cost more than the query itself.
FINGERPRINT_SQL = """
    SELECT string_agg(listing_id || ',' || target_price || chr(10), '' ORDER BY listing_id)
      FROM card c WHERE {exported}
"""


def fingerprint_of(asked: bytes) -> str:
    """Return the fingerprint of the export: the hash of its lines `id,target`, sorted by id."""
    return hashlib.blake2b(asked, digest_size=12).hexdigest()


NOTHING: Final = fingerprint_of(b"")
_CHANGED: Final = f"""
    SELECT coalesce(bool_or({EXPORTED}), false) AS exported,
           string_agg(c.id || ',' || coalesce(c.target_price::text, ''), ' ' ORDER BY c.id) AS asked
      FROM card c WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[]))
"""


async def end_pricing(
    session: AsyncSession, state: SyncState, exported: str, *, marks: bool = True
) -> None:
    """Store the export's fingerprint, and mark the figures of prices as outdated. Each step that
    wrote prices or targets of cards calls this in its last transaction. `state` is the seller's
    locked row.
    """
    state.export_fingerprint = exported
    state.prices_revision += 1
    await session.flush()
    if marks:
        await mark(session, state.seller_id, *OF_PRICES)


async def fingerprint(session: AsyncSession, seller_id: int) -> str:
    """Return the fingerprint, computed from the cards; a run that has the cards in memory uses
    `inventory.diff.exported` instead.

    The targets include active promotions, so the fingerprint is valid until
    `SyncState.export_until`.
    """
    return await fingerprint_served(session, EXPORTED.format(seller_id=int(seller_id)))


async def fingerprint_after(
    session: AsyncSession,
    seller_id: int,
    known: str | None,
    card_ids: Sequence[int],
) -> str:
    """Return the fingerprint after a change of at most these cards since the `known` fingerprint.
    The cost depends on the number of these cards, not on the size of the shop. Different exports
    have different fingerprints, but the same export may have several fingerprints.
    """
    query = text(_CHANGED.format(seller_id=int(seller_id)))
    cards = (await session.execute(query, {"seller": seller_id, "ids": [*card_ids]})).one()
    if known is None or not cards.exported:
        # The export may be empty now, so the fingerprint is computed from all cards.
        return await fingerprint(session, seller_id)
    return fingerprint_of(f"{known} {cards.asked}".encode())


async def fingerprint_served(session: AsyncSession, which: str) -> str:
    """Return the fingerprint of the cards that an SQL condition selects."""
    query = FINGERPRINT_SQL.format(exported=which)
    return fingerprint_of((await session.scalar(text(query)) or "").encode())


# The lowest exported price, in ten-thousandths.
MIN_TARGET = 100


def asks() -> pl.Expr:
    """Return `ASKED` as an expression: whether the target differs from the marketplace's price;
    false without a target.
    """
    target = pl.col("target_price")
    differs = target.ne_missing(pl.col("price")) | pl.col("my_store_priced")
    return target.is_not_null() & differs


def importable(active: pl.DataFrame) -> pl.DataFrame:
    """Return the ids and targets to export from a frame of all active cards. The frame needs the
    columns marketplace_id, listing_id, price, my_store_priced and target_price.
    """
    custom = active.filter(pl.col("marketplace_id") < 0)["listing_id"]
    shared = pl.concat(
        [
            custom.filter(custom.is_duplicated()),
            custom.filter(custom.is_in(active["marketplace_id"].implode())),
        ]
    )
    asked = pl.col("target_price").ge(MIN_TARGET) & asks()
    return (
        active.filter(asked & ~pl.col("listing_id").is_in(shared.implode()))
        .select("listing_id", "target_price")
        .sort("listing_id")
    )
