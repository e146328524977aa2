"""Writes the targets of single cards as the next run would: the card's pin, or else the price of
the live rules. The caller applies the consequences (`ended.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market.of_cards import the_market
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.session import SessionReading, Statement, run_all
from cardsync.platform.money import from_units
from cardsync.prices import standing
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.prices.decisions.on_sale import note_sales
from cardsync.prices.inputs.cards_to_price import price_chosen, read_stock
from cardsync.prices.inputs.rule_rows import live_run

_CARD_IDS: Final = """
    SELECT id FROM card
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
     ORDER BY id
"""
_MANY: Final = 1_000
_OPEN_GATES: Final = """
    DELETE FROM gate_hold WHERE seller_id = :seller
      AND marketplace_id = ANY (CAST(:ids AS bigint[]))
"""


_TARGETS: Final = """
    UPDATE card c SET target_price = w.price, priced_at = :now, updated_at = :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:prices AS numeric[])) AS w (id, price)
     WHERE c.seller_id = :seller AND c.id = w.id
"""


def write_targets(
    seller_id: int,
    card_ids: Sequence[int],
    prices: Sequence[int | None],
    now: datetime,
) -> Statement:
    """Return the statement that writes targets, which are in ten-thousandths of a dollar."""
    return _TARGETS, {
        "seller": seller_id,
        "ids": [*card_ids],
        "prices": [None if price is None else from_units(price) for price in prices],
        "now": now,
    }


async def retargeted(
    session: AsyncSession, seller_id: int, marketplace_ids: Sequence[int], now: datetime
) -> list[int]:
    """Write the targets of cards whose pins have changed. Return the ids of the cards whose target
    moved.
    """
    reads = SessionReading(session)
    found, (account, live), market = await at_once(
        reads.rows(_CARD_IDS, {"seller": seller_id, "ids": [*marketplace_ids]}),
        live_run(reads, seller_id, now),
        the_market(reads),
    )
    card_ids: list[int] = [id for (id,) in found]
    # A session reads many cards faster.
    source = session if len(card_ids) > _MANY else reads
    stock = await read_stock(source, account, live, card_ids=card_ids, market=market)
    priced = await price_chosen(stock)
    asked = priced.select("marketplace_id", "sale_id", "pin", "target")
    asked = asked.with_columns(id=stock.cards["id"], was=stock.cards["target_price"])
    on_sale = asked.filter(pl.col("sale_id").is_not_null() & pl.col("target").is_not_null())
    sales = dict(on_sale.select("marketplace_id", "sale_id").iter_rows())
    moved = asked.filter(pl.col("target").ne_missing(pl.col("was")))
    ids: list[int] = moved["id"].to_list()
    statements = [
        *_let_go(seller_id, asked),
        *note_sales(seller_id, sales, now),
        write_targets(seller_id, ids, moved["target"].to_list(), now),
    ]
    await run_all(session, statements)
    return ids


def _let_go(seller_id: int, asked: pl.DataFrame) -> list[Statement]:
    """Return the statements that delete the sales of the old targets, and the caps and gates of
    pinned cards.
    """
    pinned = asked.filter(pl.col("pin").is_not_null())["marketplace_id"].to_list()
    return [
        standing.drop(seller_id, "sale", asked["marketplace_id"].to_list()),
        standing.drop(seller_id, "cap", pinned),
        (_OPEN_GATES, {"seller": seller_id, "ids": pinned}),
    ]


async def retake_pins(
    session: AsyncSession, seller_id: int, found: RunFindings, now: datetime
) -> list[int]:
    """Find the cards that a person pinned or unpinned while a run wrote targets, and price them
    again, because a person's change overrides the run. Return the ids of the cards whose target
    moved.
    """
    pins = await standing.pins_of(session, seller_id, now)
    taken = dict(found.pins.iter_rows())
    if pins == taken:
        return []
    priced = set(found.priced)
    changed = {id for id, price in pins.items() ^ taken.items() if id in priced}
    return await retargeted(session, seller_id, sorted(changed), now) if changed else []
