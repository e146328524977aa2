"""The seller's customers, told by their names on the orders: a page of them by what they spent, and how many come back."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from cardsync.reading import Reading


class Customer(NamedTuple):
    """`buyer_name` as on the newest order; names that differ in case alone are one customer's."""

    buyer_name: str
    order_count: int
    first_order_at: datetime | None
    last_order_at: datetime | None
    lifetime_total: Decimal


class Customers(NamedTuple):
    page: list[Customer]
    total: int
    returning: int


# Grouped as they stand in ix_orders_buyer: a table of all customers in memory is what takes long.
_IN_ORDER = "SELECT set_config('enable_hashagg', 'off', true)"
_CUSTOMERS = """
WITH customer AS MATERIALIZED (
    SELECT buyer_key, count(*) AS order_count, min(order_placed_at) AS first_order_at, max(order_placed_at) AS last_order_at,
           coalesce(sum(total_amt), 0) AS lifetime_total
      FROM orders WHERE seller_id = :seller AND buyer_key <> '' GROUP BY buyer_key
), page AS (
    SELECT * FROM customer ORDER BY lifetime_total DESC, order_count DESC, buyer_key LIMIT :limit OFFSET :offset
), counted AS (SELECT count(*) AS total, count(*) FILTER (WHERE order_count > 1) AS returning FROM customer)
SELECT counted.total, counted.returning, newest.buyer_name, page.order_count, page.first_order_at, page.last_order_at, page.lifetime_total
  FROM counted LEFT JOIN page ON true LEFT JOIN LATERAL (
      SELECT buyer_name FROM orders WHERE seller_id = :seller AND orders.buyer_key = page.buyer_key ORDER BY id DESC LIMIT 1
  ) AS newest ON true
 ORDER BY page.lifetime_total DESC, page.order_count DESC, page.buyer_key
"""


async def customers(reading: Reading, seller_id: int, page: int, per_page: int) -> Customers:
    values = {"seller": seller_id, "limit": per_page, "offset": (page - 1) * per_page}
    _, rows = await reading.together([_IN_ORDER, _CUSTOMERS], values, last=True)
    total, returning = rows[0][:2]
    found = [Customer._make(row[2:]) for row in rows]
    # A page beyond the last has one row without a customer.
    return Customers([one for one in found if one.buyer_name is not None], total, returning)
