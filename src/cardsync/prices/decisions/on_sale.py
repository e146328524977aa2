"""Records which targets are a sale's price, so that the price file omits them once the sale has
ended. It also records when a card had such a price, to attribute sold copies to the sale.

A run records the new sales before it writes its first target, and deletes the earlier sales after
its last target. In between, a card may have two sales, and its target is served only while both are
active, so a killed run leaves no target that is served too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.state import Lease, hold_lease
from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.session import Database, Statement, run_all
from cardsync.platform.database.transaction_settings import joined_as_planned, joined_by_hash
from cardsync.platform.work.jobs import SALES, mark_due_by
from cardsync.prices import standing
from cardsync.prices.decisions.confirmed import remember
from cardsync.prices.engine import breaker

_PAIR: Final = {"marketplace_id": pl.Int64, "sale_id": pl.Int64}
_NOTED = """
    SELECT coalesce(array_agg(marketplace_id), '{}') AS marketplace_id,
           coalesce(array_agg(source_id), '{}') AS sale_id
      FROM price_decision WHERE seller_id = :seller AND kind = 'sale'
"""
# Ends the card's time in the sale. The row of `promotion_card` stays, to attribute the copies sold
# during that time.
_LEAVE = """
    WITH dropped AS ({drop} RETURNING t.marketplace_id, t.source_id)
    UPDATE promotion_card p SET until = greatest(:now, p.since) FROM dropped
     WHERE p.seller_id = :seller AND p.sale_id = dropped.source_id
       AND p.marketplace_id = dropped.marketplace_id AND p.until IS NULL
"""
_DROP = _LEAVE.format(
    drop="""
    DELETE FROM price_decision t
     USING unnest(CAST(:ids AS bigint[]), CAST(:sales AS bigint[])) AS given (id, sale)
     WHERE t.seller_id = :seller AND t.kind = 'sale'
       AND t.marketplace_id = given.id AND t.source_id = given.sale
"""
)
_DROP_UNASKED = _LEAVE.format(
    drop="""
    DELETE FROM price_decision t
     WHERE t.seller_id = :seller AND t.kind = 'sale' AND NOT EXISTS (
        SELECT FROM card c
         WHERE c.seller_id = :seller AND c.marketplace_id = t.marketplace_id
           AND c.target_price IS NOT NULL)
"""
)
_ENTER = """
    INSERT INTO promotion_card (seller_id, sale_id, marketplace_id, since)
    SELECT :seller, given.sale, given.id, :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:sales AS bigint[])) AS given (id, sale)
    ON CONFLICT DO NOTHING
"""
# The sales that set targets; a deleted sale has no row in `pricing_sale`.
_SALES = """
    (SELECT DISTINCT source_id AS sale_id FROM price_decision
      WHERE seller_id = :seller AND kind = 'sale') t
      LEFT JOIN pricing_sale p ON p.seller_id = :seller AND p.id = t.sale_id
"""
_ENDED = f"""
    SELECT t.sale_id FROM {_SALES}
     WHERE p.id IS NULL OR NOT p.enabled OR p.starts_at > :now OR p.ends_at <= :now
     ORDER BY t.sale_id
"""
_UNTIL = f"""
    UPDATE sync_state SET export_until = (
        SELECT min(CASE WHEN p.enabled AND p.starts_at <= :now THEN p.ends_at
                        ELSE CAST(:now AS timestamptz) END)
          FROM {_SALES})
     WHERE seller_id = :seller
"""


@dataclass(frozen=True)
class OnSale:
    """The cards that a run prices. `rows` are the cards on sale, each with its sale.

    `deep` are the cards on sale whose regular price differs from the sale price by a leap (see
    `engine/breaker.py`).
    """

    priced: pl.Series
    rows: pl.DataFrame
    deep: pl.DataFrame


def on_sale(priced: pl.DataFrame) -> OnSale:
    reduced = pl.col("sale_id").is_not_null() & pl.col("target").is_not_null()
    rows = priced.filter(reduced).select(*_PAIR)
    return OnSale(priced["marketplace_id"], rows, breaker.deep_sales(priced))


async def note(database: Database, lease: Lease, found: OnSale, slab_rows: int) -> None:
    """Record the sales before the run writes its first target. Raises LeaseLost or
    CancelRequested.
    """
    for part in found.rows.iter_slices(slab_rows):
        now = clock.now()
        async with database.tenant(lease.seller_id) as session:
            await hold_lease(session, lease, now)
            pairs = _arrays(part)
            sales = dict(zip(pairs["ids"], pairs["sales"], strict=True))
            await run_all(session, note_sales(lease.seller_id, sales, now))


async def settle(session: AsyncSession, seller_id: int, found: OnSale, now: datetime) -> None:
    """Delete the earlier sales of the run's cards, and the sales of cards without a target, in the
    run's last transaction.

    The regular prices of `deep` cards count as confirmed.
    """
    if not found.deep.is_empty():
        await remember(session, seller_id, found.deep, now)
    row = (await session.execute(text(_NOTED), {"seller": seller_id})).one()
    noted = pl.DataFrame(dict(row._mapping), schema=_PAIR)
    if noted.is_empty():
        return
    earlier = noted.filter(pl.col("marketplace_id").is_in(found.priced.implode())).join(
        found.rows,
        on=list(_PAIR),
        how="anti",
    )
    await session.execute(text(joined_by_hash()))
    named = {"seller": seller_id, "now": now}
    await session.execute(text(_DROP), named | _arrays(earlier))
    await session.execute(text(_DROP_UNASKED), named)
    await session.execute(text(joined_as_planned()))
    await note_until(session, seller_id, now)
    if await ended_sales(session, seller_id, now):
        # Another run has to follow, because this run did not price the cards of these sales, or
        # priced them for a time before the sales ended.
        await mark_due_by(session, seller_id, SALES, now)


def note_sales(seller_id: int, sales: Mapping[int, int], now: datetime) -> list[Statement]:
    """Return the statements that record the sales of targets, by card. A run records no sale for a
    card without a target, and neither must another writer of targets.
    """
    ids, of_cards = [*sales], [*sales.values()]
    entered = {"seller": seller_id, "ids": ids, "sales": of_cards, "now": now}
    return [
        standing.put(seller_id, "sale", ids, now, sources=of_cards),
        (_ENTER, entered),
        (_UNTIL, {"seller": seller_id, "now": now}),
    ]


async def note_until(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Store the time at which the next sale among the targets ends and the price file's fingerprint
    is outdated. Call it after targets or sales changed.
    """
    await session.execute(text(_UNTIL), {"seller": seller_id, "now": now})


async def ended_sales(source: Source, seller_id: int, now: datetime) -> list[int]:
    """Return the sales that set some target and are not active now."""
    return [row[0] for row in await rows_of(source)(_ENDED, {"seller": seller_id, "now": now})]


def _arrays(pairs: pl.DataFrame) -> dict[str, list[int]]:
    return {"ids": pairs["marketplace_id"].to_list(), "sales": pairs["sale_id"].to_list()}
