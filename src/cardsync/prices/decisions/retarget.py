"""Gives cards immediately the targets of their pins, or else of the live rules, as the next run
would: a typed price is shown, exported and searched from the same moment on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.seller_state.models import SyncState
from cardsync.platform.database.session import run
from cardsync.prices import standing
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.prices.decisions.on_sale import note_accepted
from cardsync.prices.decisions.set_targets import write_targets
from cardsync.prices.inputs.cards_to_price import price_stock, read_stock
from cardsync.prices.inputs.rule_rows import run_of

_CARD_IDS: Final = """
    SELECT id FROM card
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
     ORDER BY id
"""
_OPEN_GATES: Final = """
    DELETE FROM gate_hold WHERE seller_id = :seller
      AND marketplace_id = ANY (CAST(:ids AS bigint[]))
"""


async def retarget(
    session: AsyncSession, state: SyncState, marketplace_ids: Sequence[int], now: datetime
) -> None:
    """Write the targets of these cards whose pins have changed; `state` is the seller's row,
    locked.

    A run that prices at the same time ends with `retake_pins`.
    """
    seller_id = state.seller_id
    account = await session.get_one(Account, seller_id)
    found = await session.scalars(text(_CARD_IDS), {"seller": seller_id, "ids": [*marketplace_ids]})
    live = await run_of(session, account, now)
    stock = await read_stock(session, account, live, card_ids=[*found])
    priced = await price_stock(stock)
    asked = priced.select("marketplace_id", "sale_id", "pin", "target")
    asked = asked.with_columns(id=stock.cards["id"], was=stock.cards["target_price"])
    await _let_go(session, seller_id, asked)
    on_sale = asked.filter(pl.col("sale_id").is_not_null() & pl.col("target").is_not_null())
    await note_accepted(
        session, seller_id, dict(on_sale.select("marketplace_id", "sale_id").iter_rows()), now
    )
    moved = asked.filter(pl.col("target").ne_missing(pl.col("was")))
    if not moved.is_empty():
        await write_targets(session, state, moved["id"].to_list(), moved["target"].to_list(), now)


async def _let_go(session: AsyncSession, seller_id: int, asked: pl.DataFrame) -> None:
    """Forget the promotions of the old targets, and the caps and gates of pinned cards."""
    await standing.drop(session, seller_id, "sale", asked["marketplace_id"].to_list())
    pinned = asked.filter(pl.col("pin").is_not_null())["marketplace_id"].to_list()
    await standing.drop(session, seller_id, "cap", pinned)
    await run(session, _OPEN_GATES, {"seller": seller_id, "ids": pinned})


async def retake_pins(
    session: AsyncSession, state: SyncState, found: RunFindings, now: datetime
) -> None:
    """End a run whose cards were pinned or unpinned while it wrote: the last word is the person's."""
    pins = await standing.pins_of(session, state.seller_id, now)
    taken = dict(found.pins.iter_rows())
    if pins == taken:
        return
    priced = set(found.priced)
    changed = {id for id, price in pins.items() ^ taken.items() if id in priced}
    if changed:
        await retarget(session, state, sorted(changed), now)
