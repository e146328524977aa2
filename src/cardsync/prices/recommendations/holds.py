"""Lists market-depth holds: the gates that did not pass in the newest priced sync, from its
receipts, and the price options that each gate offers the seller now.

A receipt holds the times of the evidence. These times are compared with the present again, because
prices are offered only while all of their evidence is fresh.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.market.verdicts import BUY_OUT_WINDOW, age_of, in_buy_out_window
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import dollars_or_none
from cardsync.platform.settings import Settings
from cardsync.platform.storage import ObjectMissing, Store, open_store
from cardsync.platform.value_types import JsonMapping, Row
from cardsync.prices.engine import engine
from cardsync.prices.receipts import parquet_file
from cardsync.prices.recommendations.schemas import (
    GateVerdict,
    HoldShown,
    HoldsShown,
    OptionsShown,
    RecommendedCard,
)
from cardsync.prices.recommendations.why_held import GATES

_CLOCKS: Final = ("observed_at", "listings_observed_at", "sales_fetched_at")
# The newest completed run of a sync. A run over an upload counts only while the upload is the
# newest of some product line.
_RUN: Final = """
    SELECT r.summary ->> 'receipts' AS key FROM price_run r
     WHERE r.seller_id = :seller AND r.trigger = 'sync' AND r.state = 'completed'
       AND (r.upload_id IS NULL OR EXISTS (
            SELECT FROM line_snapshot l
             WHERE l.seller_id = :seller AND l.upload_id = r.upload_id))
     ORDER BY r.id DESC LIMIT 1
"""
_CARDS: Final = """
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.number, c.condition, c.printing,
           count(*) OVER () AS total
      FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone
       AND c.marketplace_id = ANY (CAST(:held AS bigint[]))
     ORDER BY c.price * c.quantity DESC NULLS LAST, c.id
     LIMIT :limit OFFSET :offset
"""


async def holds_now(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    paging: Paging,
) -> HoldsShown:
    """Return the cards whose market gate did not pass in the newest priced sync, ordered by their
    worth, highest first. This is a heavy read, since the receipts of all cards are one file.
    """
    store = open_store(settings)
    async with database.tenant(caller.seller_id, snapshot=True, work=Work.LONG) as session:
        return await _holds(session, caller, store, paging, now)


async def _holds(
    session: AsyncSession,
    caller: Caller,
    store: Store,
    paging: Paging,
    now: datetime,
) -> HoldsShown:
    key = await session.scalar(text(_RUN), {"seller": caller.seller_id})
    if key is None:
        return HoldsShown([], 0)
    try:
        data = await store.read(key)
    except ObjectMissing:
        return HoldsShown([], 0)
    held = await asyncio.to_thread(_gated, data)
    cards = await session.execute(
        text(_CARDS),
        {
            "seller": caller.seller_id,
            "held": held["marketplace_id"].to_list(),
            **paging.values,
        },
    )
    rows = cards.all()
    shown = held.filter(pl.col("marketplace_id").is_in([row.marketplace_id for row in rows]))
    receipts = {row["marketplace_id"]: row for row in shown.iter_rows(named=True)}
    gates = {rule.id: rule.market_gate for rule in parquet_file.run_of(data).rules}
    found = []
    for card in rows:
        receipt = receipts[card.marketplace_id]
        gate = gates.get(receipt["rule_id"])
        within = timedelta(hours=gate.max_age_hours if gate else 0)
        found.append(hold_of(card, receipt, within, now))
    return HoldsShown(found, rows[0].total if rows else 0)


def _gated(data: bytes) -> pl.DataFrame:
    """Return the receipts of the gates that did not pass."""
    frame, _ = parquet_file.unpack(data)
    held = engine.gated(frame)
    # A step that did not change the price has no price in a receipt.
    formula = pl.coalesce("after_shipping_adder", "after_formula", "base")
    return frame.join(held, on="marketplace_id", maintain_order="left").select(
        "marketplace_id",
        "rule_id",
        "aggressive_price",
        "listings_low",
        "listings_count",
        "buy_out_detected_at",
        *_CLOCKS,
        formula.alias("formula_price"),
        "verdict",
    )


def hold_of(
    card: Row,
    receipt: JsonMapping,
    within: timedelta,
    now: datetime,
) -> HoldShown:
    """Return how to show a price that the market gate kept, by the times in its receipt. Pure."""
    bought_out_at: datetime | None = receipt["buy_out_detected_at"]
    bought_out = in_buy_out_window(bought_out_at, now)
    ages = [age_of(receipt[clock], now, within) for clock in _CLOCKS]
    # A buy-out that was observed more than four hours ago no longer holds a price.
    fresh = all(age == "fresh" for age in ages) and (bought_out or receipt["verdict"] != "buy_out")
    options = OptionsShown(
        dollars_or_none(receipt["formula_price"]),
        dollars_or_none(receipt["aggressive_price"]),
        dollars_or_none(receipt["listings_low"]),
    )
    if age_of(bought_out_at, now, BUY_OUT_WINDOW) == "future":
        bought_out_at = None
    return HoldShown(
        card.marketplace_id,
        struct_of(RecommendedCard, card, id=card.id),
        "bought_out" if bought_out else "held" if fresh else "stale",
        options if fresh else None,
        bought_out_at,
        GateVerdict(receipt["listings_count"], False, GATES[receipt["verdict"]]),
        receipt["listings_observed_at"],
    )
