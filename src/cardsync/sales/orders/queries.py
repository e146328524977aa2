"""Reads a page of a seller's orders with their items, and the number of orders of each status.

The ids of the page are read first, and then its rows. For a filter by only date, status, refund and
shipping type, `order_tally` has the counts, and an index is sorted like the page. A text that few
orders contain is looked up by its grams (`search_parts.py`). For any other filter, orders are
scanned: a probe of the first orders finds a page of frequent matches, and a scan of all orders
finds and counts rare matches. The API's totals are exact; a page of the dashboard does not wait for
the count of frequent matches (`OrderFilter.counted`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple, cast

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.sales.orders.filter_sql import (
    KNOWN_SESSION,
    all_of,
    of_status,
    other_conditions,
    tallied_conditions,
    tally_conditions,
    unknown_session,
)
from cardsync.sales.orders.order_filter import OrderFilter
from cardsync.sales.orders.page_order import PageOrder, page_order
from cardsync.sales.orders.pull_reads import RECENT
from cardsync.sales.orders.pull_schemas import PullSession
from cardsync.sales.orders.pullable import (
    OF_TO_SHIP_STATUS,
    TO_SHIP_STATUSES,
    delivered,
    on_the_way,
)
from cardsync.sales.orders.schemas import ORDER_COLUMNS, ItemRow, OrderRow, order_row
from cardsync.sales.orders.search_parts import MAY_CONTAIN, may_contain

Values = dict[str, Any]
Counts = dict[str, int]

# A probe scans only the first orders for the matches of a page: at most `PROBED` orders, and for a
# page that ends at match n, at most n * `PROBED_FOR_EACH`. If the probe does not fill the page, all
# orders are scanned. A page that ends after more than PROBED / REACHED_BY matches is not probed,
# because a probe would hardly ever fill it.
PROBED_FOR_EACH = 40
PROBED = 20_000
REACHED_BY = 4
# A probe without a count finds further matches up to this number, so that the page can name it.
COUNTED = 1_000
# A page of several statuses that ends before this position merges the orders of each status from
# ix_orders_status. A later page is read from ix_orders_date.
MERGED = 10_000


@dataclass(frozen=True)
class FoundOrders:
    """A page of orders. `status_counts` counts the matches of the filter without its statuses, by
    status; `total` counts all matches of the filter. If `has_more` is true, more than `total`
    orders match, at least one of them after this page, and `status_counts` counts what
    `order_tally` can count of the filter.
    """

    orders: list[OrderRow]
    items: Mapping[int, list[ItemRow]]
    status_counts: Counts
    total: int
    has_more: bool
    sessions: list[PullSession] = field(default_factory=list)


async def _column(reading: Reading, statement: str, values: Values) -> list[Any]:
    return [value for (value,) in await reading.rows(statement, values)]


async def _to_ship_statuses(reading: Reading, caller: Caller) -> list[str]:
    statuses = await reading.once(TO_SHIP_STATUSES, {"seller": caller.seller_id})
    return [status for (status,) in statuses]


async def find_orders(reading: Reading, caller: Caller, wanted: OrderFilter) -> FoundOrders:
    """Read a page. Raises InvalidPayload for a pull session that the seller does not have."""
    wanted = wanted.asked_by(caller)
    values: Values = {"seller": caller.seller_id, **wanted.values}
    if isinstance(wanted.pull_session, int):
        values["pull_session"] = wanted.pull_session
        if not await reading.rows(KNOWN_SESSION, values):
            raise unknown_session(wanted.pull_session)
    if wanted.by_to_ship:
        values["to_ship_statuses"] = await _to_ship_statuses(reading, caller)
    order = page_order(wanted)
    if not wanted.tallied:
        return await _scanned(reading, caller, values, wanted, order)
    tallied, more = tallied_conditions(wanted)
    status, of_statuses = of_status(wanted)
    number, counted, of_tally = tally_conditions(wanted)
    values |= more | of_statuses | of_tally
    tally = _tally(wanted, number, counted)
    reach = wanted.offset + wanted.per_page
    if order.nulls_apart:
        ids = await _nulls_last(reading, values, all_of(*tallied, *status), order)
    elif len(wanted.statuses) > 1 and wanted.sort == "date" and reach <= MERGED:
        ids = await _column(reading, _merged(tallied, order), values | {"reach": reach})
    else:
        ids = await _column(reading, _page(all_of(*tallied, *status), order.by), values)
    return await _shown(reading, caller, values, wanted, ids, tally)


# One or several queries read the ids of a page.


def _page(where: str, by: str) -> str:
    return f"SELECT orders.id FROM orders WHERE {where} ORDER BY {by} LIMIT :limit OFFSET :offset"


def _merged(tallied: list[str], order: PageOrder) -> str:
    """Return the statement for a page of several statuses: from each status, the first `:reach`
    orders are read, and these are merged.
    """
    return f"""
        SELECT orders.id FROM unnest(CAST(:statuses AS text[])) AS wanted (status)
         CROSS JOIN LATERAL (
            SELECT orders.id, orders.order_date FROM orders
             WHERE {all_of(*tallied, "orders.status_group = wanted.status")}
             ORDER BY {order.whole} LIMIT :reach
        ) AS orders ORDER BY {order.whole} LIMIT :limit OFFSET :offset
    """


async def _nulls_last(reading: Reading, values: Values, where: str, order: PageOrder) -> list[int]:
    """Read a page backwards from an index. Backwards, the index has nulls first, so one query reads
    the rows without nulls, and a second query the rows with nulls, which are put last.
    """
    some, none = (
        f"{where} AND {order.nulls_apart} IS NOT NULL",
        f"{where} AND {order.nulls_apart} IS NULL",
    )
    ids = await _column(reading, _page(some, order.by), values)
    limit = values["limit"]
    offset = values["offset"]
    if len(ids) == limit:
        return ids
    begin = 0
    if not ids:
        [(before,)] = await reading.rows(f"SELECT count(*) FROM orders WHERE {some}", values)
        begin = offset - before
    rest = values | {"limit": limit - len(ids), "offset": begin}
    return ids + await _column(reading, _page(none, order.by), rest)


async def _scanned(
    reading: Reading,
    caller: Caller,
    values: Values,
    wanted: OrderFilter,
    order: PageOrder,
) -> FoundOrders:
    """Return the page and the counts of a filter that `order_tally` cannot count. If a probe fills
    the page, another statement only counts; otherwise one scan of all orders finds and counts.
    """
    tallied, of_tallied = tallied_conditions(wanted)
    others, of_others = other_conditions(wanted)
    status, of_statuses = of_status(wanted)
    values = values | of_tallied | of_others | of_statuses
    probe, more = _probe(wanted, order, [*tallied, *status], others)
    values |= more
    # The first orders are read faster than the grams.
    if probe and wanted.search and not wanted.counted:
        ids = await _column(reading, probe, values | {"probed": _probed(wanted)})
        if len(ids) > wanted.per_page:
            return await _uncounted(reading, caller, values, wanted, ids)
    listed = await may_contain(reading, caller.seller_id, wanted.search) if wanted.search else None
    if listed is not None:
        others.append(MAY_CONTAIN)
        values |= listed
    everything = all_of(*tallied, *others)
    if probe and listed is None:
        # Without a count, a successful probe saves the scan of all orders, so it may read more.
        probed = _probed(wanted) if wanted.counted else PROBED
        ids = await _column(reading, probe, values | {"probed": probed})
        if not wanted.counted and len(ids) > wanted.per_page:
            return await _uncounted(reading, caller, values, wanted, ids)
        if wanted.counted and len(ids) == wanted.per_page:
            count = (
                f"SELECT orders.status_group, count(*) FROM orders WHERE {everything}"
                " GROUP BY orders.status_group"
            )
            return await _shown(reading, caller, values, wanted, ids, count)
    pass_over_all = f"""
        WITH orders AS MATERIALIZED (
            SELECT orders.id, orders.status_group, {order.keys} FROM orders WHERE {everything}
        ), counts AS (SELECT status_group, count(*) AS number FROM orders GROUP BY status_group)
        SELECT ARRAY(SELECT orders.id FROM orders WHERE {" AND ".join(status) or "true"}
                      ORDER BY {order.named} LIMIT :limit OFFSET :offset),
               ARRAY(SELECT status_group FROM counts), ARRAY(SELECT number FROM counts)
    """
    [(ids, statuses, numbers)] = await reading.rows(pass_over_all, values)
    return await _shown(
        reading, caller, values, wanted, ids, dict(zip(statuses, numbers, strict=True))
    )


def _probe(
    wanted: OrderFilter, order: PageOrder, tallied: list[str], others: list[str]
) -> tuple[str, Values]:
    """Return the statement that searches the first `:probed` orders for the page, and its values;
    an empty statement if a probe would hardly ever fill the page. Without a count, the probe finds
    the matches of the page and at least one more. It returns nothing if `order_tally` counts at
    most `:probed` orders, because then a scan of all orders is as fast.
    """
    reach = wanted.offset + wanted.per_page
    by_index = order.indexed and order.nulls_apart is None
    if _is_rare(wanted) or not by_index or reach * REACHED_BY > PROBED:
        return "", {}
    number, counted, values = tally_conditions(wanted)
    many = (
        f"(SELECT coalesce(sum({number}), 0) FROM order_tally"
        f" WHERE seller_id = :seller AND {counted}) > :probed"
    )
    first = (
        f"SELECT orders.* FROM orders WHERE {all_of(many, *tallied)}"
        f" ORDER BY {order.by} LIMIT :probed"
    )
    probe = (
        f"SELECT orders.id FROM ({first}) AS orders WHERE {' AND '.join(others)}"
        f" ORDER BY {order.by} LIMIT :matches OFFSET :offset"
    )
    most = wanted.per_page if wanted.counted else max(reach, COUNTED) + 1 - wanted.offset
    return probe, values | {"matches": most}


def _probed(wanted: OrderFilter) -> int:
    return min(PROBED, PROBED_FOR_EACH * (wanted.offset + wanted.per_page))


async def _uncounted(
    reading: Reading, caller: Caller, values: Values, wanted: OrderFilter, ids: list[int]
) -> FoundOrders:
    """Return the page whose first ids a probe found, with at least one match after it."""
    number, counted, of_tally = tally_conditions(wanted)
    tally = _tally(wanted, number, counted)
    page = ids[: wanted.per_page]
    found = await _shown(reading, caller, values | of_tally, wanted, page, tally)
    # The number of matches is shown as the number of full pages that they certainly fill.
    pages = (wanted.offset + len(ids) - 1) // wanted.per_page
    return replace(found, total=pages * wanted.per_page, has_more=True)


def _is_rare(wanted: OrderFilter) -> bool:
    """Return whether the filter matches few orders, which an index contains."""
    return wanted.ship_pending or wanted.pull_session is not None or wanted.state == "to_ship"


# `order_tally` counts the delivered, refunded and shipped orders. Orders to ship are few, so
# `_OPEN_ORDERS` counts the orders themselves.
_TALLIED_STATES = """
    SELECT status_group, refunded, sum(orders)::bigint FROM order_tally
     WHERE seller_id = :seller AND period = 'ever'
     GROUP BY status_group, refunded HAVING sum(orders) <> 0
"""
_OPEN_ORDERS = f"""
    SELECT count(*) FILTER (WHERE orders.shipped_marked_at IS NULL),
           count(*) FILTER (WHERE orders.shipped_marked_at IS NOT NULL),
           sum(orders.total_amt) FILTER (WHERE orders.shipped_marked_at IS NULL)
      FROM orders
     WHERE orders.seller_id = :seller AND {OF_TO_SHIP_STATUS} AND orders.refund_amt IS NULL
"""


class StateCounts(NamedTuple):
    """The number of orders in each state, and the sum of the orders to ship."""

    to_ship: int
    on_the_way: int
    delivered: int
    refunded: int
    worth: Decimal


async def state_counts(reading: Reading, caller: Caller) -> StateCounts:
    values: Values = {"seller": caller.seller_id}
    values["to_ship_statuses"] = await _to_ship_statuses(reading, caller)
    tallied, [[waiting, marked, worth]] = await reading.together(
        [_TALLIED_STATES, _OPEN_ORDERS], values
    )
    counts = {"on_the_way": marked, "delivered": 0, "refunded": 0}
    for status, refunded, orders in tallied:
        refund = Decimal() if refunded else None
        if refunded:
            counts["refunded"] += orders
        elif delivered(status, refund):
            counts["delivered"] += orders
        elif on_the_way(status, refund, None):
            counts["on_the_way"] += orders
    return StateCounts(waiting, **counts, worth=worth or Decimal())


# The statements that read the rows of the page.
_ON_PAGE = "unnest(CAST(:ids AS bigint[])) WITH ORDINALITY AS page (id, place)"
_ORDERS = Planned(
    "orders_shown",
    f"""
    SELECT {ORDER_COLUMNS}
      FROM {_ON_PAGE} JOIN orders ON orders.seller_id = :seller AND orders.id = page.id
     ORDER BY page.place
    """,
    {"seller": "bigint", "ids": "bigint[]"},
)
_ITEMS = Planned(
    "items_shown",
    f"""
    SELECT {", ".join(f"item.{name}" for name in ItemRow._fields)}
      FROM {_ON_PAGE} CROSS JOIN LATERAL (
           SELECT * FROM order_item AS item
            WHERE item.seller_id = :seller AND item.order_id = page.id
            ORDER BY item.id LIMIT :items
      ) AS item
    """,
    {"seller": "bigint", "ids": "bigint[]", "items": "bigint"},
)
_SESSIONS = Planned("sessions_shown", RECENT, {"seller": "bigint"})


def _tally(wanted: OrderFilter, number: str, counted: str) -> str | Planned:
    """Return the statement that reads the counts from `order_tally`. Without dates it is one of
    four prepared statements; with dates it contains the numbers of blocks, so it is not prepared.
    """
    statement = f"""
        SELECT status_group, sum({number})::bigint FROM order_tally
         WHERE seller_id = :seller AND {counted}
         GROUP BY status_group HAVING sum({number}) <> 0
    """
    if wanted.date_from is not None or wanted.date_to is not None:
        return statement
    name = "tally" + "_refunded" * wanted.refunded + "_shipped" * (wanted.shipping_type is not None)
    return Planned(
        name,
        statement,
        {"seller": "bigint"} | ({"shipping_type": "text"} if wanted.shipping_type else {}),
    )


async def _shown(
    reading: Reading,
    caller: Caller,
    values: Values,
    wanted: OrderFilter,
    ids: list[int],
    counted: str | Planned | Counts,
) -> FoundOrders:
    """Read the rows of the page, and the counts by status if `counted` is a statement."""
    statements: list[str | Planned] = [_ORDERS, _ITEMS, _SESSIONS]
    if not isinstance(counted, dict):
        statements.insert(0, counted)
    values = values | {"ids": ids, "items": wanted.items_per_order}
    *tally, orders, items, sessions = await reading.together(statements, values, last=True)
    counts: Counts = counted if isinstance(counted, dict) else dict(tally[0])
    found: dict[int, list[ItemRow]] = defaultdict(list)
    for row in items:
        found[row[0]].append(cast(ItemRow, row))
    return FoundOrders(
        orders=[order_row(row, caller) for row in orders],
        items=found,
        status_counts=dict(sorted(counts.items())),
        total=sum(
            n for status, n in counts.items() if not wanted.statuses or status in wanted.statuses
        ),
        has_more=False,
        sessions=[PullSession(*row) for row in sessions],
    )
