"""Orders put into a seller's tables as an upload leaves them, for tests of what is done with
orders rather than of uploads.
"""

from __future__ import annotations

import itertools
from typing import Any

from builders import Seller
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.sales.orders import ingest
from cardsync.sales.orders.sales_sums import SALES_SUMS

_numbers = itertools.count(1)


async def an_order(seller: Seller, **columns: Any) -> int:
    """One order, ready to ship if nothing else is said; columns by their name. Returns its id."""
    row: dict[str, Any] = {
        "order_number": f"ORDER-{next(_numbers)}",
        "status": "Ready to Ship",
    } | columns
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    [made] = await seller.service.sql(
        seller.id,
        f"INSERT INTO orders (seller_id, {names}) VALUES (:seller, {values}) RETURNING id",
        seller=seller.id,
        **row,
    )
    await _mark(seller, made["id"])
    return int(made["id"])


async def _mark(seller: Seller, order_id: int) -> None:
    """Mark the order's day as out of date, as each write of orders does."""
    await seller.service.sql(
        seller.id,
        "INSERT INTO sales_stale (seller_id, ordered)"
        " SELECT seller_id, coalesce(order_date, DATE '0001-01-01') FROM orders"
        "  WHERE seller_id = :seller AND id = :id",
        seller=seller.id,
        id=order_id,
    )


async def an_item(seller: Seller, order_id: int, **columns: Any) -> int:
    """One line of an order, and the order's sums with it. Returns its id."""
    row: dict[str, Any] = {
        "product_name": "Alacrian Jaguar",
        "product_line": "magic",
        "quantity": 1,
    } | columns
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    of_order = {"seller": seller.id, "order_id": order_id}
    [made] = await seller.service.sql(
        seller.id,
        f"INSERT INTO order_item (seller_id, order_id, {names})"
        f" VALUES (:seller, :order_id, {values}) RETURNING id",
        **of_order,
        **row,
    )
    await seller.service.sql(
        seller.id,
        """
        UPDATE orders SET (items_total, items_quantity, product_lines) = (
            SELECT count(*), coalesce(sum(quantity), 0),
                coalesce(array_agg(DISTINCT product_line), '{}')
              FROM order_item WHERE seller_id = :seller AND order_id = :order_id
        ) WHERE seller_id = :seller AND id = :order_id
        """,
        **of_order,
    )
    return int(made["id"])


async def change_order(seller: Seller, order_id: int, **columns: Any) -> None:
    """Change an order as a later upload does."""
    await _mark(seller, order_id)
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    await seller.service.sql(
        seller.id,
        f"UPDATE orders SET {changes} WHERE seller_id = :seller AND id = :order_id",
        seller=seller.id,
        order_id=order_id,
        **columns,
    )
    await _mark(seller, order_id)


async def apply_alone(seller, path, rows):
    """Upload rows and apply them, while the turn that keeps the sums waits."""
    answer = await seller.send(path, rows)
    assert answer.status_code == 202, answer.text
    assert await ingest.work_off_one(seller.service.work, seller.id)


async def keep_sums(seller):
    """Keep the sums of sales and customers now."""
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.SALES_SUMS)
    while await SALES_SUMS.work_off(seller.service.work, seller.id):
        pass
