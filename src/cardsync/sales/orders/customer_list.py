"""Lists the seller's customers, identified by their names on the orders, by their spending, with
the number of those who bought again.

They are read from the kept sums (customer_sums.py). While a day of orders is out of date, all
orders are counted instead, so the answer is exact at each moment. Profit alone is always the kept
one: it takes a look at every line that was ever sold.
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
    """Names that differ in case alone belong to one customer, whose name is that of the newest
    order.
    """

    page: list[CustomerBody]
    total: int
    returning: int


def key_of(name_hash: int) -> str:
    """Return the key of the customer whose name has this hash."""
    return f"{name_hash % 2**64:016x}"


# The earliest of a customer's moments is among those that were given or on the earliest of the
# other days.
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
# An index holds the names in this order, so a deep page reads no more than a part of it.
_KEPT: Final = queries_of(__package__)["kept"].format(ranked=_RANKED, shown=_SHOWN)
# A hash of 64 bits, which sorts three times as fast as a name, separates the names: two names with
# the same hash occur in one of forty million shops with a million customers. The statement reads
# ix_orders_date alone where that is shorter.
_CUSTOMERS: Final = queries_of(__package__)["customers"].format(
    buyer_hash=BUYER_HASH, sums=SUMS, nameless=NAMELESS, ranked=_RANKED, shown=_SHOWN
)


async def customers(reading: Reading, caller: Caller, paging: Paging) -> Customers:
    values = {"seller": caller.seller_id, **paging.values}
    # Where statistics know nothing of a shop, another join reads all of its rows for each row.
    first = [joined_by_hash()] if paging.per_page >= _MANY else []
    *_, [[stale]], rows = await reading.together([*first, _OUT_OF_DATE, _KEPT], values)
    if stale:
        _, rows = await reading.together([grouped_by_sorting(), _CUSTOMERS], values, last=True)
    total, returning = rows[0][:2]
    # A page beyond the last has one row without a customer.
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
