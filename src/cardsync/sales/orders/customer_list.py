"""Lists the seller's customers, sorted by spending, with the number of repeat customers. A customer
is identified by the buyer's name on orders.

The list is read from the stored sums (`customer_sums.py`). While a day of orders is outdated, all
orders are summed instead, so that the list is always exact. Only profit is always read from the
stored sums: to compute it, the query would read every line that was ever sold.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import UNSET

from cardsync.access.caller import Caller
from cardsync.platform.database.marketplace_time import midnight
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.database.transaction_settings import grouped_by_sorting, joined_by_hash
from cardsync.platform.kit.row_pages import Paging
from cardsync.sales.orders.customer_sums import NAMELESS, STALE, SUMS
from cardsync.sales.orders.models import BUYER_HASH
from cardsync.sales.orders.schemas import CustomerBody, earned_fields, money


class Customers(NamedTuple):
    """A page of customers. Names that differ only in case belong to one customer, whose shown name
    is that of the newest order.
    """

    page: list[CustomerBody]
    total: int
    returning: int


def key_of(name_hash: int) -> str:
    """Return the key of the customer whose name has this hash."""
    return f"{name_hash % 2**64:016x}"


# A customer's first order is the earlier of the first order with a moment (`first_given`) and the
# first order with only a date (`first_day`). The last order is found likewise.
_SHOWN: Final = f"""
    SELECT counted.total, counted.returning, orders.buyer_name, page.order_count,
           least(page.first_given, {midnight("page.first_day")}),
           greatest(page.last_given, {midnight("page.last_day")}), page.lifetime_total,
           page.pieces, page.costed, page.profit, page.name
      FROM counted LEFT JOIN page ON true
      LEFT JOIN orders ON orders.seller_id = :seller AND orders.id = page.newest
     ORDER BY page.lifetime_total DESC, page.order_count DESC, page.newest DESC
"""
_MANY: Final = 1_000
_RANKED: Final = "ORDER BY lifetime_total DESC, order_count DESC, newest DESC"
_OUT_OF_DATE: Final = f"SELECT {STALE}"
# An index of `customer_sum` has this order, so that a deep page reads only a part of the index.
_KEPT: Final = queries_of(__package__)["kept"].format(ranked=_RANKED, shown=_SHOWN)
# The statement groups by a 64-bit hash of the name, which sorts three times as fast as the name.
# Two names with the same hash occur in one of forty million shops with a million customers. The
# statement needs only columns of ix_orders_date, so an index-only scan is possible.
_CUSTOMERS: Final = queries_of(__package__)["customers"].format(
    buyer_hash=BUYER_HASH, sums=SUMS, nameless=NAMELESS, ranked=_RANKED, shown=_SHOWN
)


async def customers(reading: Reading, caller: Caller, paging: Paging) -> Customers:
    values = {"seller": caller.seller_id, **paging.values}
    # While PostgreSQL has no statistics of a shop's rows, it would choose a nested loop, which
    # reads all rows of one table for each row of the other.
    first = [joined_by_hash()] if paging.per_page >= _MANY else []
    *_, [[stale]], rows = await reading.together([*first, _OUT_OF_DATE, _KEPT], values)
    if stale:
        _, rows = await reading.together([grouped_by_sorting(), _CUSTOMERS], values, last=True)
    total, returning = rows[0][:2]
    # A page after the last page has one row without a customer.
    found = [row for row in rows if row[2] is not None]
    page_of = [
        CustomerBody(
            key=key_of(row[-1]),
            buyer_name=caller.buyer(row[2]) or "",
            order_count=row[3],
            first_order_at=row[4],
            last_order_at=row[5],
            lifetime_total=money(caller.revenue(row[6])) or UNSET,
            **earned_fields(caller.revenue(row[7:10])),
        )
        for row in found
    ]
    return Customers(page_of, int(total), int(returning))
