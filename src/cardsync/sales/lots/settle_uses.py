"""Updates `lot_use` and `card_cost` of outdated cards. Sold items take copies from lots, the oldest
lot first. Cancelled, refunded and restocked copies return to their lots.

A sale takes copies only from lots that were bought on or before its day. Later refreshes do not
assign these copies again. The SQL uses window functions over the cards' lots and items: a running
balance finds the sold copies that no lot could supply, and running sums match all other sold copies
with lots.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.database.transaction_settings import joined_by_hash, planned_each_time
from cardsync.platform.derived.kept_figures import Figure, KeptFigure, Refresh, mark
from cardsync.platform.derived.sales_by_day import DAY, mark_changed

CARDS_AT_ONCE: Final = 50_000
# Up to this many cards, PostgreSQL may look up lots and items card by card; for more cards, hash
# joins read all lots and items once.
LOOKED_UP: Final = 2_000

_STALE: Final = """
    CREATE TEMP TABLE settling ON COMMIT DROP AS
    SELECT t.marketplace_id AS card, array_agg(t.id) AS ids
      FROM lot_stale t WHERE t.seller_id = :seller GROUP BY 1 LIMIT :most
"""
WANTED: Final = """
    CASE WHEN orders.status_group = 'Cancelled'
           OR (orders.refund_amt >= orders.total_amt) IS TRUE THEN 0
         ELSE greatest(0, coalesce(i.quantity, 1) - i.restocked) END
"""
SOLD_ON: Final = f"coalesce({DAY}, CAST(orders.created_at AS date))"
# The order items of the outdated cards, each with its day of sale, the copies that it needs
# (`wanted`), and the copies that it took from lots (`has`).
_ITEMS: Final = queries_of(__package__)["items"].format(sold_on=SOLD_ON, wanted=WANTED)
_CHANGED: Final = """
    CREATE TEMP TABLE settled (item_id bigint, lot_id bigint, copies integer) ON COMMIT DROP
"""
# An item that needs fewer copies keeps the copies from its oldest lots.
_GIVE_BACK: Final = queries_of(__package__)["give_back_uses"]
# The lots with remaining copies, of the cards with items that need more copies.
STOCK: Final = """
    SELECT l.id, l.marketplace_id AS card, l.bought_on AS day, l.cost, l.remaining AS copies
      FROM (SELECT DISTINCT card FROM settling_item WHERE wanted > has) s
      JOIN lot l ON l.seller_id = :seller AND l.marketplace_id = s.card
     WHERE l.remaining > 0
"""
# `balance` adds the copies of a card's lots and subtracts its sales, day by day, with lots before
# sales. Each time that it falls to a new minimum below zero, no lot can have supplied the copies
# below the previous minimum.
TAKES: Final = queries_of(__package__)["takes"]
TAKEN: Final = """
    SELECT d.id AS item_id, p.id AS lot_id, p.cost,
           least(d.until, p.until) - greatest(d.until - d.copies, p.until - p.copies) AS copies
      FROM demand d JOIN supply p ON p.card = d.card
       AND d.until - d.copies < p.until AND p.until - p.copies < d.until
"""
# The statement updates an existing row if an item takes copies again from the same lot.
_TAKE: Final = queries_of(__package__)["take"].format(stock=STOCK, takes=TAKES, taken=TAKEN)
_BY_LOT: Final = "l.cost"
# Copies of unknown cost keep an unknown cost. Other copies get the average cost of the card's
# copies that were bought on or before the day of sale.
_ON_AVERAGE: Final = """
    CASE WHEN l.cost IS NOT NULL THEN (
        SELECT round(sum(k.cost * k.quantity) / sum(k.quantity), 4) FROM lot k
         WHERE k.seller_id = :seller AND k.marketplace_id = i.card
           AND k.bought_on <= i.day AND k.cost IS NOT NULL) END
"""
_COST: Final = queries_of(__package__)["cost_of_uses"]
_REMAINING: Final = """
    UPDATE lot SET remaining = lot.remaining - moved.copies
      FROM (SELECT lot_id, sum(copies) AS copies FROM settled GROUP BY 1) moved
     WHERE lot.seller_id = :seller AND lot.id = moved.lot_id AND moved.copies <> 0
"""
_COUNTED: Final = "UPDATE settled SET copies = 0"
_GONE: Final = """
    DELETE FROM card_cost c WHERE c.seller_id = :seller
       AND c.marketplace_id IN (SELECT card FROM settling)
       AND NOT EXISTS (SELECT FROM lot l
                        WHERE l.seller_id = :seller AND l.marketplace_id = c.marketplace_id
                          AND l.remaining > 0)
"""
_KEEP: Final = queries_of(__package__)["keep_uses"]
_DATES: Final = """
    SELECT DISTINCT o.order_date FROM (SELECT DISTINCT item_id FROM settled) s
      JOIN order_item i ON i.seller_id = :seller AND i.id = s.item_id
      JOIN orders o ON o.seller_id = :seller AND o.id = i.order_id
"""
_DONE: Final = """
    DELETE FROM lot_stale WHERE seller_id = :seller
       AND id IN (SELECT unnest(ids) FROM settling)
"""
_WAITS: Final = "SELECT EXISTS (SELECT FROM lot_stale WHERE seller_id = :seller)"
_ANEW: Final = "DROP TABLE IF EXISTS settling, settling_item, settled"
_ACCOUNT: Final = "SELECT time_zone, costing FROM account WHERE seller_id = :seller"


async def settle_now(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Update all outdated cards in this transaction, for a caller that needs current costs. The
    already requested refresh runs later, and finds no outdated card.
    """
    own = {"seller": seller_id}
    if not await session.scalar(text(_WAITS), own):
        return
    await locked(session, Lock.LOTS, seller_id)
    while not await _refresh(session, Refresh(seller_id, now, now, None)):
        pass


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    values: dict[str, object] = {"seller": asked.seller_id, "most": CARDS_AT_ONCE}
    await session.execute(text(_ANEW))
    await session.execute(text(planned_each_time()))
    zone, costing = (await session.execute(text(_ACCOUNT), values)).one()
    values["zone"] = zone
    cards = await run(session, _STALE, values)
    if not cards:
        return True
    await session.execute(text("ANALYZE settling"))
    if cards > LOOKED_UP:
        await session.execute(text(joined_by_hash()))
    await run(session, _ITEMS, values)
    await session.execute(text("ANALYZE settling_item"))
    await session.execute(text(_CHANGED))
    await settle(session, values, costing)
    for statement in (_REMAINING, _GONE, _KEEP, _DONE):
        await run(session, statement, values)
    if await session.scalar(text("SELECT EXISTS (SELECT FROM settled)")):
        await mark_changed(session, _DATES, values)
        await mark(session, asked.seller_id, Figure.SALES_SUMS)
    return cards < CARDS_AT_ONCE


async def settle(session: AsyncSession, values: Mapping[str, object], costing: str) -> None:
    """Return copies to lots, take copies from lots, and write the cost of each taken copy. The temp
    table `settled` collects the changed rows of `lot_use`.
    """
    await run(session, _GIVE_BACK, values)
    # The lots must contain the returned copies before other items take copies.
    if await run(session, _REMAINING, values):
        await session.execute(text(_COUNTED))
    await run(session, _TAKE, values)
    # `_TAKE` has already written the lot's cost of the copies that it took.
    by_lot = (_BY_LOT, "i.has > 0")
    cost, which = (_ON_AVERAGE, "true") if costing == "average" else by_lot
    await run(session, _COST.format(cost=cost, which=which), values)


LOTS = KeptFigure[None](
    Figure.LOTS,
    tables=("lot_use", "card_cost"),
    source="lots, the items of orders with their refunds, and the account's costing",
    marked_by="lots that are added or corrected, an upload that changes orders and copies that are"
    " back in stock, which name their cards in `lot_stale`, and another costing",
    meanwhile="profit has the cost of the last refresh; items that wait for one count as unknown",
    refresh=_refresh,
)
