"""Stores sums of each customer's orders, and recomputes the sums of customers who ordered on an
outdated day, together with the sums of sales.

`customer_order` contains the customer of each order. It replaces an index on an expression of
`orders`, which PostgreSQL would not use under row-level security (`models.py`). The table also has
the former customer of an order whose buyer's name changed.

A refresh of more days than one turn computes the sums of customers only in its last turn, and then
those of all customers. `customer_count` has no row of the seller until then. Readers sum all orders
instead while this row is missing or any day of the seller is outdated.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import run
from cardsync.platform.database.transaction_settings import joined_by_hash
from cardsync.platform.value_types import Values
from cardsync.sales.lots.profit_by_day import OF_DAYS, of_days
from cardsync.sales.orders.models import BUYER_HASH

_COMPLETE: Final = "EXISTS (SELECT FROM customer_count WHERE seller_id = :seller)"
# True while a reader must sum all orders itself.
STALE: Final = f"""
    EXISTS (SELECT FROM sales_stale WHERE seller_id = :seller) OR NOT {_COMPLETE}
"""
# The sums of more customers are not looked up customer by customer: all are computed.
NAMES_AT_ONCE: Final = 20_000
NAMELESS: Final = "hashtextextended('', 0)"
SUMS: Final = """
    count(*) AS order_count, coalesce(sum(total_amt), 0) AS lifetime_total, max(id) AS newest,
    min(placed_at_given) AS first_given, max(placed_at_given) AS last_given,
    min(order_date) FILTER (WHERE placed_at_given IS NULL) AS first_day,
    max(order_date) FILTER (WHERE placed_at_given IS NULL) AS last_day
"""
REFUNDS: Final = """
    count(refund_amt) AS refunded_orders, coalesce(sum(refund_amt), 0) AS refunded_total,
    max(id) FILTER (WHERE refund_amt IS NOT NULL) AS newest_refunded
"""
EARNED: Final = "sum(m.pieces) AS pieces, sum(m.costed) AS costed, sum(m.profit) AS profit"
# The days' orders with their current and former customers, read once: an order that is written
# later is in no statement. A cluster does not insert the rows of a query that reads `orders` and a
# temp table.
_ORDERS: Final = f"""
    CREATE TEMP TABLE refreshed_order ON COMMIT DROP AS
    SELECT orders.id AS order_id, {BUYER_HASH} AS name, m.name AS former
      FROM orders LEFT JOIN customer_order m ON m.seller_id = :seller AND m.order_id = orders.id
     WHERE orders.seller_id = :seller AND {OF_DAYS}
"""
_TOUCHED: Final = f"""
    SELECT DISTINCT touched.name
      FROM refreshed_order, unnest(ARRAY[name, former]) AS touched (name)
     WHERE touched.name <> {NAMELESS} LIMIT :most
"""
# An order without counted lines, such as a cancelled order, has a profit of 0.
_NAME: Final = f"""
    INSERT INTO customer_order AS kept (seller_id, order_id, name, pieces, costed, profit)
    SELECT CAST(:seller AS bigint), m.order_id, max(m.name), {EARNED} FROM (
        SELECT order_id, name, 0 AS pieces, 0 AS costed, CAST(0 AS numeric) AS profit
          FROM refreshed_order
        UNION ALL
        SELECT order_id, NULL, pieces, costed, profit FROM refreshed_line) m
     GROUP BY m.order_id HAVING max(m.name) IS NOT NULL
    ON CONFLICT (seller_id, order_id) DO UPDATE
       SET name = excluded.name, pieces = excluded.pieces, costed = excluded.costed,
           profit = excluded.profit
     WHERE (kept.name, kept.pieces, kept.costed, kept.profit)
           IS DISTINCT FROM (excluded.name, excluded.pieces, excluded.costed, excluded.profit)
"""
_NAMED: Final = "name = ANY (CAST(:names AS bigint[]))"
_ALL: Final = f"name <> {NAMELESS}"
_COUNTED: Final = """
    SELECT count(*) AS customers, count(*) FILTER (WHERE order_count > 1) AS repeat
      FROM customer_sum WHERE seller_id = :seller AND {which}
"""
_GONE: Final = """
    DELETE FROM customer_sum c
     WHERE c.seller_id = :seller AND c.{which}
       AND NOT EXISTS (SELECT FROM customer_order m
                        WHERE m.seller_id = :seller AND m.name = c.name)
"""
_COLUMNS: Final = (
    "order_count", "lifetime_total", "newest", "first_given", "last_given", "first_day",
    "last_day", "refunded_orders", "refunded_total", "newest_refunded",
    "pieces", "costed", "profit",
)  # fmt: skip
# A sum whose scale changed is written again, because the API returns the stored scale.
_SIDES: Final = (*_COLUMNS, "scale({of}.lifetime_total)", "scale({of}.refunded_total)")


def _side(of: str) -> str:
    return ", ".join(one.format(of=of) if "(" in one else f"{of}.{one}" for one in _SIDES)


_KEEP: Final = f"""
    INSERT INTO customer_sum AS kept (seller_id, name, {", ".join(_COLUMNS)})
    SELECT CAST(:seller AS bigint), m.name, {SUMS}, {REFUNDS}, {EARNED}
      FROM customer_order m JOIN orders ON orders.seller_id = :seller AND orders.id = m.order_id
     WHERE m.seller_id = :seller AND m.{{which}}
     GROUP BY m.name
    ON CONFLICT (seller_id, name) DO UPDATE
       SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}
     WHERE ({_side("kept")}) IS DISTINCT FROM ({_side("excluded")})
"""
_WAIT: Final = "DELETE FROM customer_count WHERE seller_id = :seller"
_COUNT: Final = """
    INSERT INTO customer_count AS kept (seller_id, customers, repeat_customers)
    VALUES (:seller, :customers, :repeat)
    ON CONFLICT (seller_id) DO UPDATE
       SET customers = kept.customers + excluded.customers,
           repeat_customers = kept.repeat_customers + excluded.repeat_customers
"""


async def keep_customers(
    session: AsyncSession, seller_id: int, days: Sequence[date], *, last: bool
) -> None:
    """Store the profit and the customers of the orders on `days`, and in the last turn of a refresh
    the sums of customers, in the transaction that stores the sums of these days.

    An order that another transaction writes meanwhile marks its day as outdated again, so the next
    refresh corrects the sums of its customer.
    """
    values: Values = {"seller": seller_id, "most": NAMES_AT_ONCE + 1, **of_days(days)}
    anew = not last or not await session.scalar(text(f"SELECT {_COMPLETE}"), values)
    touched: list[int] = []
    if days:
        await run(session, _ORDERS, values)
        if not anew:
            touched = list(await session.scalars(text(_TOUCHED), values))
            anew = len(touched) > NAMES_AT_ONCE
        await run(session, _NAME, values)
    if anew:
        await run(session, _WAIT, values)
    if last:
        await _sum(session, seller_id, None if anew else sorted(touched))


async def _sum(session: AsyncSession, seller_id: int, names: Sequence[int] | None) -> None:
    """Store the sums of the customers with these names; without `names`, of all customers."""
    values: Values = {"seller": seller_id, "names": names}
    which = _ALL if names is None else _NAMED
    counted = _COUNTED.format(which=which)
    before: dict[str, int] = {}
    if names is None:
        await session.execute(text(joined_by_hash()))
    else:
        before = (await session.execute(text(counted), values)).one()._asdict()
    for statement in (_GONE, _KEEP):
        await run(session, statement.format(which=which), values)
    after = (await session.execute(text(counted), values)).one()._asdict()
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    if names is None or any(more.values()):
        await run(session, _COUNT, {"seller": seller_id} | more)
