"""Keeps figures of the price file: its sums, and the cards with the largest changes.

They hold only in a snapshot in which the seller's cards are still those of the figures: `_STAMP`
differs after each transaction that changed prices, targets or copies of cards, also after a part of
an import. The fingerprint and the time of the last pricing are in it, because an older worker,
which runs during an upgrade, does not count revisions. The definition is in it, because the figures
of another release may have another meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.exported import EXPORTED, fingerprint_of
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.kept_figures import PRICING_ENDS, Figure, KeptFigure, Refresh

# The number of cards with the largest changes that are stored.
KEPT: Final = 500
LARGEST_FIRST: Final = "abs(c.target_price - c.price) * c.quantity DESC NULLS FIRST, c.id"
# The last column counts first prices: cards without a price, and cards that have only a My Store
# Price, if it equals the target.
SUMS: Final = """
           count(*) AS total,
           count(*) FILTER (WHERE c.target_price > c.price) AS raised,
           coalesce(sum((c.target_price - c.price) * c.quantity)
               FILTER (WHERE c.target_price > c.price), 0) AS raised_by,
           count(*) FILTER (WHERE c.target_price < c.price) AS lowered,
           coalesce(sum((c.price - c.target_price) * c.quantity)
               FILTER (WHERE c.target_price < c.price), 0) AS lowered_by,
           count(*) FILTER (WHERE c.price IS NULL OR c.price = c.target_price) AS first_prices
"""


class Sums(NamedTuple):
    """The sums over a price file. `raised_by` and `lowered_by` are in dollars, for all copies of
    the raised and lowered cards.
    """

    total: int
    raised: int
    raised_by: Decimal
    lowered: int
    lowered_by: Decimal
    first_prices: int


_DEFINITION: Final = fingerprint_of(f"{EXPORTED} {SUMS} {LARGEST_FIRST} {KEPT}".encode())
# Null while an import or a run changes the cards.
_STAMP: Final = f"""
    '{_DEFINITION} ' || s.prices_revision || ' ' || s.export_fingerprint || ' '
        || coalesce(s.last_pricing_at::text, '')
"""
# One statement, so that the stamp is that of the cards.
_READ: Final = f"""
    WITH c AS MATERIALIZED (
        SELECT id, quantity, price, target_price FROM card c WHERE {{which}}
    )
    SELECT {_STAMP}, sums.*,
           ARRAY(SELECT c.id FROM c ORDER BY {LARGEST_FIRST} LIMIT {KEPT})
      FROM sync_state s CROSS JOIN (SELECT {SUMS} FROM c) sums
     WHERE s.seller_id = :seller AND {_STAMP} IS NOT NULL
"""
_FIELDS: Final = ("stamp", *Sums._fields, "largest")
_STORE: Final = f"""
    INSERT INTO price_file_figure (seller_id, {", ".join(_FIELDS)})
    VALUES (:seller, {", ".join(f":{name}" for name in _FIELDS)})
    ON CONFLICT (seller_id) DO UPDATE
       SET {", ".join(f"{name} = excluded.{name}" for name in _FIELDS)}
"""
_KEPT: Final = f"""
    SELECT {", ".join(f"f.{name}" for name in Sums._fields)}
      FROM price_file_figure f JOIN sync_state s ON s.seller_id = :seller AND f.stamp = {_STAMP}
     WHERE f.seller_id = :seller
"""
# PostgreSQL reads only the named cards, whatever the statistics, because of the limit.
_ROWS: Final = f"""
    SELECT {{columns}}
      FROM price_file_figure f
      JOIN sync_state s ON s.seller_id = :seller AND f.stamp = {_STAMP}
     CROSS JOIN unnest(f.largest) WITH ORDINALITY AS at (id, place)
     CROSS JOIN LATERAL (
           SELECT * FROM card WHERE card.seller_id = :seller AND card.id = at.id LIMIT 1) AS c
     WHERE f.seller_id = :seller AND at.place BETWEEN :first AND :last ORDER BY at.place
"""


async def kept_sums(reading: Reading, seller_id: int) -> Sums | None:
    """Return the sums of the file; None if the figures are outdated."""
    rows = await reading.rows(_KEPT, {"seller": seller_id})
    return Sums._make(rows[0]) if rows else None


async def kept_rows(
    reading: Reading, seller_id: int, columns: str, first: int, last: int
) -> Sequence[Sequence[Any]]:
    """Return the columns of the file's cards at these places, the largest change first; nothing if
    the figures are outdated.
    """
    values = {"seller": seller_id, "first": first, "last": last}
    return await reading.rows(_ROWS.format(columns=columns), values)


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    """Store the figures. During an import or a run nothing is stored, and its end marks them."""
    sql = _READ.format(which=EXPORTED.format(seller_id=int(asked.seller_id)))
    for row in await session.execute(text(sql), {"seller": asked.seller_id}):
        values = dict(zip(_FIELDS, row, strict=True))
        await run(session, _STORE, {"seller": asked.seller_id} | values)
    return True


PRICE_FILE = KeptFigure[None](
    Figure.PRICE_FILE,
    tables=("price_file_figure",),
    source="cards with their prices and targets, and the account's product lines",
    marked_by=PRICING_ENDS,
    meanwhile="a reader passes over all cards if any of them has changed since the refresh",
    refresh=_refresh,
)
