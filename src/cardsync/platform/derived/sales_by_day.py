"""Stores sums of sales for each day of orders, and recomputes the days that an upload changed. The
SQL that reads the sums is here, too.

A day is outdated from the transaction that changes its orders or items (`mark_changed`) until the
transaction that stores it again. A reader takes the stored rows of current days and computes
outdated days itself, so its sums are always exact. `sales/orders/sales_sums.py` declares the
refresh. `ordered` is the date of the order, by which uploads find a day. `day` is the account's own
day, in the zone that the row names.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.database.transaction_settings import joined_by_hash, planned_each_time
from cardsync.platform.value_types import Values

# Each turn reads most of a large shop's order items, so turns of fewer days would take longer.
DAYS_AT_ONCE: Final = 1_000
# The day of orders without a date.
UNDATED: Final = date.min
# The day of a moment is at most one day away from the order's date.
DAY: Final = "coalesce(CAST(timezone(:zone, orders.placed_at_given) AS date), orders.order_date)"
SOLD: Final = "orders.seller_id = :seller AND orders.status_group <> 'Cancelled'"
# The buyer's payment; if the total was not uploaded, the sum of its known parts.
TOTAL: Final = """
    coalesce(orders.total_amt, orders.product_amt + coalesce(orders.shipping_amt, 0),
             coalesce((SELECT sum(x.unit_price * coalesce(x.quantity, 1)) FROM order_item x
                        WHERE x.seller_id = :seller AND x.order_id = orders.id), 0)
             + coalesce(orders.shipping_amt, 0))
"""
# A line `i` of an order counts with its price, if the line has a price. Lines without a price share
# the rest of the order's product total evenly, copy by copy; if there is no rest, their prices are
# unknown. A query with this window must read all lines of its orders, and may filter lines only
# outside the query.
SHARED: Final = """
    CASE WHEN i.unit_price IS NULL THEN round(
        nullif(greatest(orders.product_amt - coalesce(
            sum(i.unit_price * coalesce(i.quantity, 1)) OVER (PARTITION BY i.order_id), 0), 0), 0)
        * coalesce(i.quantity, 1)
        / nullif(sum(coalesce(i.quantity, 1)) FILTER (WHERE i.unit_price IS NULL)
                 OVER (PARTITION BY i.order_id), 0), 2) END
"""
# `estimated` copies count with such a share, and `unpriced` copies do not count.
PIECES: Final = f"""
    coalesce(i.quantity, 1) AS pieces,
    coalesce(i.unit_price * coalesce(i.quantity, 1), {SHARED}) AS gross,
    CASE WHEN {SHARED} IS NULL THEN 0 ELSE coalesce(i.quantity, 1) END AS estimated,
    CASE WHEN i.unit_price IS NULL AND {SHARED} IS NULL
         THEN coalesce(i.quantity, 1) ELSE 0 END AS unpriced
"""
COUNTED: Final = """
    CAST(sum(pieces) AS bigint) AS pieces, sum(gross) AS gross,
    CAST(sum(estimated) AS bigint) AS estimated, CAST(sum(unpriced) AS bigint) AS unpriced
"""
_ITEMS: Final = f"""
    SELECT orders.id AS order_id, orders.order_date AS ordered, {DAY} AS day, i.sku_id,
           coalesce(i.product_line, '') AS game, {PIECES}
      FROM orders JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
     WHERE {SOLD} {{on}}
"""
# The days of a span whose rows are stored, and the outdated days that a reader computes itself.
SPLIT: Final = queries_of(__package__)["split"]
PERIODS: Final = queries_of(__package__)["periods"].format(
    split=SPLIT, day=DAY, total=TOTAL, sold=SOLD
)
# Each day is looked up separately, because the planner cannot know that only a few days must be
# computed.
_FOUND: Final = f"""
    SELECT live.* FROM days CROSS JOIN LATERAL (
        {_ITEMS.format(on="AND orders.order_date = days.ordered")} OFFSET 0) live
"""
GAMES: Final = queries_of(__package__)["games"].format(split=SPLIT, found=_FOUND, counted=COUNTED)

_CHANGED: Final = """
    INSERT INTO sales_stale (seller_id, ordered)
    SELECT DISTINCT CAST(:seller AS bigint), coalesce(found.order_date, DATE '0001-01-01')
      FROM ({found}) found
"""
_ZONE: Final = "SELECT time_zone FROM account WHERE seller_id = :seller"
# Days that were stored for another zone are outdated as well.
_STALE: Final = """
    SELECT ordered, array_remove(array_agg(id), NULL) FROM (
        SELECT ordered, id FROM sales_stale WHERE seller_id = :seller
        UNION ALL
        SELECT ordered, NULL FROM sales_kept WHERE seller_id = :seller AND zone <> :zone) stale
     GROUP BY ordered ORDER BY ordered DESC LIMIT :most
"""
# The number of the days' orders, and lower bounds for the numbers of all orders and of all items.
_COUNTS: Final = """
    SELECT count(*),
           (SELECT coalesce(sum(s.orders), 0) FROM sales_sum s WHERE s.seller_id = :seller),
           (SELECT coalesce(sum(g.orders), 0) FROM sales_game g WHERE g.seller_id = :seller)
      FROM orders
     WHERE orders.seller_id = :seller AND orders.order_date = ANY (CAST(:days AS date[]))
"""
_EXPECTED: Final = "EXPLAIN (FORMAT JSON) SELECT FROM {table} WHERE seller_id = :seller"
_TABLES: Final = ("sales_sum", "sales_game", "sales_pace", "sales_kept")
_OF_DAYS: Final = "AND orders.order_date = ANY (CAST(:days AS date[]))"
_SUM: Final = f"""
    INSERT INTO sales_sum (seller_id, ordered, day, orders, gross, refunded, refunds)
    SELECT CAST(:seller AS bigint), orders.order_date, {DAY}, count(*),
           coalesce(sum({TOTAL}), 0), count(orders.refund_amt),
           coalesce(sum(orders.refund_amt), 0)
      FROM orders WHERE {SOLD} {_OF_DAYS} GROUP BY 2, 3
"""
_THESE: Final = _ITEMS.format(on=_OF_DAYS)
_GAME: Final = f"""
    INSERT INTO sales_game (seller_id, ordered, day, game, orders, pieces, gross, estimated,
                            unpriced)
    SELECT CAST(:seller AS bigint), ordered, day, game, count(DISTINCT order_id), {COUNTED}
      FROM ({_THESE}) sold GROUP BY 2, 3, 4
"""
_PACE: Final = f"""
    INSERT INTO sales_pace (seller_id, ordered, day, game, days, items)
    SELECT CAST(:seller AS bigint), s.ordered, s.day, s.game, s.day - CAST(c.created_at AS date),
           count(*)
      FROM ({_THESE}) s JOIN card c ON c.seller_id = :seller AND c.marketplace_id = s.sku_id
     WHERE s.day >= CAST(c.created_at AS date) GROUP BY 2, 3, 4, 5
"""
_KEPT: Final = """
    INSERT INTO sales_kept (seller_id, ordered, zone, kept_at)
    SELECT CAST(:seller AS bigint), given.ordered, :zone, :now
      FROM unnest(CAST(:days AS date[])) AS given (ordered)
"""
_DONE: Final = """
    DELETE FROM sales_stale WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))
"""


async def mark_changed(session: AsyncSession, found: str, values: dict[str, object]) -> None:
    """Mark the days of the orders that the query `found` selects (by `order_date`), in the
    transaction that changes them. Rows are only added, so two writers never wait for each other.
    """
    await run(session, _CHANGED.format(found=found), values)


async def keep_days(session: AsyncSession, seller_id: int, now: datetime) -> list[date]:
    """Store the sums of outdated days, newest first, up to `DAYS_AT_ONCE`, and return these days.
    A change that commits in the meantime leaves its day outdated.
    """
    values: Values = {"seller": seller_id, "now": now, "most": DAYS_AT_ONCE}
    await session.execute(text(planned_each_time()))
    values["zone"] = await session.scalar(text(_ZONE), values)
    stale = (await session.execute(text(_STALE), values)).all()
    if not stale:
        return []
    values["days"] = [row[0] for row in stale]
    values["ids"] = [id for row in stale for id in row[1]]
    if await _reads_most(session, values):
        await session.execute(text(joined_by_hash()))
    for table in _TABLES:
        days = "ordered = ANY (CAST(:days AS date[]))"
        await run(session, f"DELETE FROM {table} WHERE seller_id = :seller AND {days}", values)
    for statement in (_SUM, _GAME, _PACE, _KEPT, _DONE):
        await run(session, statement, values)
    return list(values["days"])


async def _reads_most(session: AsyncSession, values: dict[str, object]) -> bool:
    """Return whether to read all of the shop's rows once: if the days have many orders, or if the
    statistics do not include the shop yet, because a nested loop would then read all rows for each
    order.
    """
    count, orders, items = (await session.execute(text(_COUNTS), values)).one()
    if 10 * count >= orders:
        return True
    for table, least in (("orders", orders), ("order_item", items), ("customer_order", orders)):
        [expected] = await session.scalar(text(_EXPECTED.format(table=table)), values)
        if 10 * expected["Plan"]["Plan Rows"] < least:
            return True
    return False
