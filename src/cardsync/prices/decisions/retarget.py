"""Writes the targets of single cards as the next run would: the card's pin, or else the price of
the live rules. The caller applies the consequences (`ended.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import run
from cardsync.platform.money import from_units
from cardsync.prices import standing
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.prices.decisions.on_sale import note_accepted
from cardsync.prices.inputs.cards_to_price import price_chosen, read_stock
from cardsync.prices.inputs.rule_rows import live_run

_CARD_IDS: Final = """
    SELECT id FROM card
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
     ORDER BY id
"""
_OPEN_GATES: Final = """
    DELETE FROM gate_hold WHERE seller_id = :seller
      AND marketplace_id = ANY (CAST(:ids AS bigint[]))
"""


_TARGETS: Final = """
    UPDATE card c SET target_price = w.price, priced_at = :now, updated_at = :now
      FROM unnest(CAST(:ids AS bigint[]), CAST(:prices AS numeric[])) AS w (id, price)
     WHERE c.seller_id = :seller AND c.id = w.id
"""


async def write_targets(
    session: AsyncSession,
    seller_id: int,
    card_ids: Sequence[int],
    prices: Sequence[int | None],
    now: datetime,
) -> None:
    """Write targets, which are in ten-thousandths of a dollar."""
    values = {
        "seller": seller_id,
        "ids": [*card_ids],
        "prices": [None if price is None else from_units(price) for price in prices],
        "now": now,
    }
    await run(session, _TARGETS, values)


async def retargeted(
    session: AsyncSession, seller_id: int, marketplace_ids: Sequence[int], now: datetime
) -> list[int]:
    """Write the targets of cards whose pins have changed. Return the ids of the cards whose target
    moved.
    """
    found = await session.scalars(text(_CARD_IDS), {"seller": seller_id, "ids": [*marketplace_ids]})
    account, live = await live_run(session, seller_id, now)
    stock = await read_stock(session, account, live, card_ids=[*found])
    priced = await price_chosen(stock)
    asked = priced.select("marketplace_id", "sale_id", "pin", "target")
    asked = asked.with_columns(id=stock.cards["id"], was=stock.cards["target_price"])
    await _let_go(session, seller_id, asked)
    on_sale = asked.filter(pl.col("sale_id").is_not_null() & pl.col("target").is_not_null())
    await note_accepted(
        session, seller_id, dict(on_sale.select("marketplace_id", "sale_id").iter_rows()), now
    )
    moved = asked.filter(pl.col("target").ne_missing(pl.col("was")))
    ids: list[int] = moved["id"].to_list()
    await write_targets(session, seller_id, ids, moved["target"].to_list(), now)
    return ids


async def _let_go(session: AsyncSession, seller_id: int, asked: pl.DataFrame) -> None:
    """Delete the sales of the old targets, and the caps and gates of pinned cards."""
    await standing.drop(session, seller_id, "sale", asked["marketplace_id"].to_list())
    pinned = asked.filter(pl.col("pin").is_not_null())["marketplace_id"].to_list()
    await standing.drop(session, seller_id, "cap", pinned)
    await run(session, _OPEN_GATES, {"seller": seller_id, "ids": pinned})


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
