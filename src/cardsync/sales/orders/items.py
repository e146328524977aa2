"""Applies item rows from the temp table `incoming`, and updates the sums on the orders. An order
has one line for each SKU. The upload's lines without a SKU replace all stored lines of the order
without a SKU.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.sales.lots.stale_cards import mark_sold
from cardsync.sales.orders.rows import KINDS, Rows

FIELDS = tuple(name for name in KINDS["items"] if name != "sku_id")
# The hash does not depend on the order of the lines, and covers only the fields that matter for
# pulling. The photo's address is not covered, because it can change without the card.
ITEMS_HASH = """sum(hashtextextended(
    ROW(sku_id, product_name, product_line, condition, set_name, rarity, quantity)::text, 0))"""
TEXTS = tuple(name for name in FIELDS if name not in ("quantity", "unit_price"))


async def apply(session: AsyncSession, rows: Rows, values: Mapping[str, object]) -> tuple[int, int]:
    values = dict(values)
    few = "numbers" in values
    found = await run(session, FOUND_SQL.format(**_narrowed(few)), values)
    skipped = rows.frame.height - found
    if not found:
        return skipped, 0
    values["orders"] = await session.scalar(text("SELECT array_agg(DISTINCT order_id) FROM found"))
    values["skus"] = (
        rows.frame["sku_id"].drop_nulls().unique().to_list() if rows.carries("sku_id") else []
    )
    written = 0
    if rows.carries("sku_id"):
        written += await run(session, _skus_sql(rows, few), values)
    written += await _without_sku(session, rows, few, values)
    if written:
        written += await run(session, SUMS_SQL.format(**_narrowed(few)), values)
        await mark_changed(session, _DATES.format(**_narrowed(few)), values)
        if rows.carries("sku_id"):
            await mark_sold(session, "SELECT sku_id FROM found", values)
    return skipped, written


def _narrowed(few: bool) -> dict[str, str]:
    """Return the conditions that limit the reads to the upload's orders, if these are few. For many
    orders the conditions are empty, and all rows of the seller are read once.
    """
    narrowed = {
        "by_number": "orders.order_number = ANY(:numbers)",
        "of_items": "order_id = ANY(:orders)",
        "of_orders": "o.id = ANY(:orders)",
        "of_cards": "marketplace_id = ANY(:skus)",
    }
    return {name: f"AND {condition}" if few else "" for name, condition in narrowed.items()}


_DATES = """
    SELECT DISTINCT o.order_date FROM orders o
     WHERE o.seller_id = :seller AND o.id IN (SELECT order_id FROM found) {of_orders}
"""
FOUND_SQL = f"""
    CREATE TEMP TABLE found ON COMMIT DROP AS
    SELECT orders.id AS order_id, {PLACED_AT} AS order_placed_at, i.*
      FROM incoming i
      JOIN orders ON orders.seller_id = :seller {{by_number}}
       AND orders.order_number = i.order_number
"""
# The card's price at the time of the order. The card has the newest observed price; the table
# `price_observation` has earlier prices.
PRICE_THEN_SQL = """
    trim_scale(CASE WHEN c.observed_at <= m.order_placed_at THEN c.price ELSE (
        SELECT p.price FROM price_observation p
         WHERE p.seller_id = :seller AND p.card_id = c.id AND p.observed_at <= m.order_placed_at
         ORDER BY p.observed_at DESC LIMIT 1) END)
"""


def _merged(rows: Rows, name: str) -> str:
    if rows.always(name):
        return f"i.{name}"
    return (
        f"CASE WHEN i.has_{name} THEN i.{name} ELSE o.{name} END"
        if rows.carries(name)
        else f"o.{name}"
    )


def _skus_sql(rows: Rows, few: bool) -> str:
    """Return the statement that writes new and changed lines with a SKU. A line without a price
    gets the card's price at the time of the order.
    """
    narrowed = _narrowed(few)
    new = ", ".join(f"n.{name}" for name in FIELDS)
    old = ", ".join(f"n.old_{name}" for name in FIELDS)
    return queries_of(__package__)["write_skus"].format(
        fields=", ".join(FIELDS),
        new=new,
        read=", ".join(f"m.{name}" for name in FIELDS if name != "unit_price"),
        price_then=PRICE_THEN_SQL,
        old_read=", ".join(f"m.old_{name}" for name in FIELDS),
        merged=", ".join(
            f"{_merged(rows, name)} AS {name}, o.{name} AS old_{name}" for name in FIELDS
        ),
        of_items=narrowed["of_items"],
        of_cards=narrowed["of_cards"],
        old=old,
        update=", ".join(f"{name} = excluded.{name}" for name in FIELDS),
    )


async def _without_sku(
    session: AsyncSession,
    rows: Rows,
    few: bool,
    values: Mapping[str, object],
) -> int:
    """Replace each order's lines without a SKU if they differ from the stored lines."""
    own = "i.sku_id IS NULL" if rows.carries("sku_id") else "true"
    carried = [name for name in FIELDS if rows.carries(name)]
    given = ", ".join(
        f"i.{name}" if name in carried else f"NULL::{KINDS['items'][name].sql}" for name in FIELDS
    )
    changed = await run(
        session,
        f"""
        CREATE TEMP TABLE replaced ON COMMIT DROP AS
        SELECT n.order_id FROM (
               SELECT i.order_id, array_agg(ROW({given})::text ORDER BY i.row) AS lines
                 FROM found i WHERE {own} GROUP BY 1) n
          LEFT JOIN (
               SELECT order_id, array_agg(ROW({", ".join(FIELDS)})::text ORDER BY id) AS lines
                 FROM order_item
                WHERE seller_id = :seller AND sku_id IS NULL {_narrowed(few)["of_items"]}
                GROUP BY 1) o USING (order_id)
         WHERE n.lines IS DISTINCT FROM o.lines
        """,
        values,
    )
    if not changed:
        return 0
    gone = f"""
        DELETE FROM order_item
         WHERE seller_id = :seller AND sku_id IS NULL {_narrowed(few)["of_items"]}
           AND order_id IN (SELECT order_id FROM replaced)
    """
    arrived = f"""
        INSERT INTO order_item (seller_id, order_id, {", ".join(FIELDS)})
        SELECT :seller, i.order_id, {given} FROM found i
         WHERE {own} AND i.order_id IN (SELECT order_id FROM replaced) ORDER BY i.row
    """
    return await run(session, gone, values) + await run(session, arrived, values)


SUMS_SQL = queries_of(__package__)["sums"].format(items_hash=ITEMS_HASH)
