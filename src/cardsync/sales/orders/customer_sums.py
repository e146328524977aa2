"""Stores sums of each customer's orders, and recomputes the sums of customers who ordered on an
outdated day, together with the sums of sales.

`customer_order` contains the customer of each order. It replaces an index on an expression of
`orders`, which PostgreSQL would not use under row-level security (`models.py`). The table also has
the former customer of an order whose buyer's name changed. While any day of a seller is outdated,
readers sum all orders instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import run
from cardsync.platform.derived.sales_by_day import UNDATED
from cardsync.sales.lots.line_profit import lines_of
from cardsync.sales.lots.profit_by_day import settings_of_shop
from cardsync.sales.orders.models import BUYER_HASH

# True while any day is outdated; a reader must then sum all orders itself.
STALE: Final = "EXISTS (SELECT FROM sales_stale WHERE seller_id = :seller)"
# A shop's first upload contains years of days, and each part reads all orders of the shop again, so
# parts are as large as memory allows.
ORDERS_AT_ONCE: Final = 20_000
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
# The orders of the days with their current customer (`name`) and their stored customer (`former`).
_FOUND: Final = f"""
    SELECT orders.id, {BUYER_HASH} AS name, m.name AS former
      FROM orders LEFT JOIN customer_order m ON m.seller_id = :seller AND m.order_id = orders.id
     WHERE orders.seller_id = :seller AND {{on}}
"""
_ON_DAYS: Final = "orders.order_date = ANY (CAST(:days AS date[]))"
_WITHOUT_DAY: Final = "orders.order_date IS NULL"
_ORDERS: Final = f"""
    SELECT order_date, count(*) FROM orders WHERE seller_id = :seller AND {_ON_DAYS} GROUP BY 1
"""
_NAME: Final = """
    INSERT INTO customer_order (seller_id, order_id, name)
    SELECT CAST(:seller AS bigint), given.order_id, given.name
      FROM unnest(CAST(:ids AS bigint[]), CAST(:names AS bigint[])) AS given (order_id, name)
    ON CONFLICT (seller_id, order_id) DO UPDATE SET name = excluded.name
"""
# An order without counted lines, such as a cancelled order, has a profit of 0.
_EARN: Final = f"""
    UPDATE customer_order m SET pieces = e.pieces, costed = e.costed, profit = e.profit
      FROM (SELECT given.id, coalesce(sum(line.pieces), 0) AS pieces,
                   coalesce(sum(line.costed), 0) AS costed, coalesce(sum(line.profit), 0) AS profit
              FROM unnest(CAST(:ids AS bigint[])) AS given (id)
              LEFT JOIN ({lines_of("AND orders.id = ANY (CAST(:ids AS bigint[]))")}) line
                ON line.order_id = given.id
             GROUP BY 1) e
     WHERE m.seller_id = :seller AND m.order_id = e.id
       AND (m.pieces, m.costed, m.profit) IS DISTINCT FROM (e.pieces, e.costed, e.profit)
"""
_COUNTED: Final = """
    SELECT count(*), count(*) FILTER (WHERE order_count > 1) FROM customer_sum
     WHERE seller_id = :seller AND name = ANY (CAST(:names AS bigint[]))
"""
_GONE: Final = """
    DELETE FROM customer_sum c
     WHERE c.seller_id = :seller AND c.name = ANY (CAST(:names AS bigint[]))
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
     WHERE m.seller_id = :seller AND m.name = ANY (CAST(:names AS bigint[]))
     GROUP BY m.name
    ON CONFLICT (seller_id, name) DO UPDATE
       SET {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}
     WHERE ({_side("kept")}) IS DISTINCT FROM ({_side("excluded")})
"""
_COUNT: Final = """
    INSERT INTO customer_count AS kept (seller_id, customers, repeat_customers)
    VALUES (:seller, :customers, :repeat)
    ON CONFLICT (seller_id) DO UPDATE
       SET customers = kept.customers + excluded.customers,
           repeat_customers = kept.repeat_customers + excluded.repeat_customers
"""


async def keep_customers(session: AsyncSession, seller_id: int, days: Sequence[date]) -> None:
    """Store the sums of the customers with orders on `days`, in the transaction that stores the
    sums of these days.

    An order that another transaction writes meanwhile marks its day as outdated again, so this
    transaction updates only the customers that it has read.
    """
    values = {"seller": seller_id, "days": list(days)}
    orders = {row[0]: row[1] for row in await session.execute(text(_ORDERS), values)}
    for part in _parts(days, orders):
        await _keep_some(session, seller_id, part)


def _parts(days: Sequence[date], orders: Mapping[date, int]) -> Iterator[list[date]]:
    """Divide the days into parts of up to `ORDERS_AT_ONCE` orders, or of one larger day."""
    part: list[date] = []
    held = 0
    for day in days:
        if part and held + orders.get(day, 0) > ORDERS_AT_ONCE:
            yield part
            part, held = [], 0
        part.append(day)
        held += orders.get(day, 0)
    if part:
        yield part


async def _keep_some(session: AsyncSession, seller_id: int, days: Sequence[date]) -> None:
    values = {"seller": seller_id, "days": list(days)}
    found = list(await session.execute(text(_FOUND.format(on=_ON_DAYS)), values))
    if UNDATED in days:
        found += await session.execute(text(_FOUND.format(on=_WITHOUT_DAY)), values)
    nameless = await session.scalar(text(f"SELECT {NAMELESS}"))
    renamed = [(row.id, row.name) for row in found if row.name != row.former]
    names = {row.name for row in found} | {row.former for row in found}
    touched = sorted(names - {None, nameless})
    if renamed:
        ids, new = zip(*renamed, strict=True)
        await run(session, _NAME, {"seller": seller_id, "ids": list(ids), "names": list(new)})
    if found:
        settings = await settings_of_shop(session, seller_id)
        await run(session, _EARN, settings | {"ids": [row.id for row in found]})
    for first in range(0, len(touched), NAMES_AT_ONCE):
        some = {"seller": seller_id, "names": touched[first : first + NAMES_AT_ONCE]}
        await _sum(session, some)


async def _sum(session: AsyncSession, names: Mapping[str, object]) -> None:
    before = (await session.execute(text(_COUNTED), names)).one()
    for statement in (_GONE, _KEEP):
        await session.execute(text(statement), names)
    after = (await session.execute(text(_COUNTED), names)).one()
    more = {"customers": after[0] - before[0], "repeat": after[1] - before[1]}
    if any(more.values()):
        await session.execute(text(_COUNT), {"seller": names["seller"]} | more)
