"""Reading a seller's orders: a filter in; the page's rows with their items, and how many orders there are of each status, out.

What is filtered by date, status, refund and shipping type alone is counted already (`order_tally`) and read in the order of an index;
anything else is counted by one pass over the orders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors
from cardsync.orders.filters import OrderFilter, periods
from cardsync.orders.page_order import PageOrder, page_order
from cardsync.orders.pullable import IN_OPEN_SESSION, MARKED_SHIPPED_PENDING, PULLABLE
from cardsync.orders.shown import ItemRow, OrderRow

Values = Mapping[str, Any]

# Between number and name in `search_text`: what holds it would be found across both.
SEPARATOR = "\x01"
# So many of the first orders are looked through for the page before all of them are.
PROBED = 20_000
# Several statuses are read from the index of each as far as this, then from that of all.
MERGED = 10_000


@dataclass(frozen=True)
class Found:
    """`status_counts` is what the filter would find in each status if it named none; `total` what it finds."""

    orders: list[OrderRow]
    items: Mapping[int, list[ItemRow]]
    status_counts: dict[str, int]
    total: int


async def find_orders(session: AsyncSession, seller_id: int, wanted: OrderFilter) -> Found:
    """Raises InvalidPayload for a pull session that the seller does not have."""
    await known_session(session, seller_id, wanted)
    if wanted.tallied:
        counts = await _tally(session, seller_id, wanted)
        total = _total(counts, wanted)
        ids = await _page(session, seller_id, wanted) if wanted.offset < total else []
    else:
        ids, counts = await _looked_through(session, seller_id, wanted)
        total = _total(counts, wanted)
    orders = await _orders(session, seller_id, ids)
    return Found(orders, await _items(session, seller_id, wanted, orders), dict(sorted(counts.items())), total)


def _total(counts: Mapping[str, int], wanted: OrderFilter) -> int:
    return sum(count for status, count in counts.items() if not wanted.statuses or status in wanted.statuses)


async def known_session(session: AsyncSession, seller_id: int, wanted: OrderFilter) -> None:
    if not isinstance(wanted.pull_session, int):
        return
    known = text("SELECT 1 FROM pull_session WHERE seller_id = :seller AND id = :id")
    if not await session.scalar(known, {"seller": seller_id, "id": wanted.pull_session}):
        raise errors.InvalidPayload(f"pull_session: there is no session {wanted.pull_session}")


# The filter as conditions on `orders`, but for the status.


def tallied_conditions(wanted: OrderFilter) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for name, sign in (("date_from", ">="), ("date_to", "<=")):
        if (day := getattr(wanted, name)) is not None:
            conditions.append(f"orders.order_date {sign} :{name}")
            values[name] = day
    if wanted.refunded:
        conditions.append("orders.refund_amt IS NOT NULL")
    if wanted.shipping_type:
        conditions.append("orders.shipping_type = :shipping_type")
        values["shipping_type"] = wanted.shipping_type
    return conditions, values


_IN_SESSION = """EXISTS (SELECT FROM pull_session_order p
 WHERE p.seller_id = orders.seller_id AND p.order_id = orders.id AND p.seller_id = :seller AND p.session_id = :pull_session)"""
_PULLS = {"active": IN_OPEN_SESSION, "none": PULLABLE, "dismissed": "orders.pull_dismissed_at IS NOT NULL"}


def other_conditions(wanted: OrderFilter) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if SEPARATOR in wanted.search:
        conditions.append("false")
    elif wanted.search:
        # A sub-select, so that it is folded once.
        conditions.append("strpos(orders.search_text, (SELECT public.folded(:search))) > 0")
        values["search"] = wanted.search
    if wanted.product_line:
        conditions.append(":product_line = ANY (orders.product_lines)")
        values["product_line"] = wanted.product_line
    if wanted.unfeedbacked:
        conditions.append("orders.feedback_rating IS NULL")
    if wanted.ship_pending:
        conditions.append(MARKED_SHIPPED_PENDING)
    if isinstance(wanted.pull_session, int):
        conditions.append(_IN_SESSION)
        values["pull_session"] = wanted.pull_session
    elif wanted.pull_session:
        conditions.append(_PULLS[wanted.pull_session])
    return conditions, values


def all_conditions(wanted: OrderFilter) -> tuple[list[str], dict[str, Any]]:
    """The whole filter, for those who take every order of it."""
    parts = (_of_status(wanted), tallied_conditions(wanted), other_conditions(wanted))
    return [condition for conditions, _ in parts for condition in conditions], {
        name: value for _, values in parts for name, value in values.items()
    }


def _where(*conditions: str) -> str:
    return " AND ".join(["orders.seller_id = :seller", *conditions])


def _of_status(wanted: OrderFilter) -> tuple[list[str], dict[str, Any]]:
    match wanted.statuses:
        case []:
            return [], {}
        case [status]:
            return ["orders.status_group = :status"], {"status": status}
    return ["orders.status_group = ANY (:statuses)"], {"statuses": list(wanted.statuses)}


# Counts.


async def _tally(session: AsyncSession, seller_id: int, wanted: OrderFilter) -> dict[str, int]:
    """How many orders of each status the other tallied filters leave."""
    conditions = ["seller_id = :seller"]
    values: dict[str, Any] = {"seller": seller_id}
    if wanted.date_from is None and wanted.date_to is None:
        conditions.append("period = 'ever'")
    else:
        parts = []
        for number, (period, first, last) in enumerate(periods(wanted.date_from, wanted.date_to)):
            parts.append(f"(period = '{period}' AND begins BETWEEN :first{number} AND :last{number})")
            values |= {f"first{number}": first, f"last{number}": last}
        conditions.append(f"({' OR '.join(parts) or 'false'})")
    if wanted.refunded:
        conditions.append("refunded")
    if wanted.shipping_type:
        conditions.append("shipping_type = :shipping_type")
        values["shipping_type"] = wanted.shipping_type
    query = f"""
        SELECT status_group, sum(orders)::bigint FROM order_tally WHERE {" AND ".join(conditions)}
         GROUP BY status_group HAVING sum(orders) <> 0
    """
    return dict((await session.execute(text(query), values)).all())


async def _count(session: AsyncSession, where: str, values: Values) -> dict[str, int]:
    query = f"SELECT orders.status_group, count(*) FROM orders WHERE {where} GROUP BY orders.status_group"
    return dict((await session.execute(text(query), values)).all())


# The page's ids.


async def _page(session: AsyncSession, seller_id: int, wanted: OrderFilter) -> list[int]:
    conditions, values = tallied_conditions(wanted)
    values |= {"seller": seller_id}
    order = page_order(wanted)
    reaches = wanted.offset + wanted.per_page
    if len(wanted.statuses) > 1 and wanted.sort == "date" and reaches <= MERGED:
        values["statuses"] = list(wanted.statuses)
        return await _merged(session, wanted, order, conditions, values)
    of_status, more = _of_status(wanted)
    where = _where(*conditions, *of_status)
    values |= more
    if order.nulls_apart is None:
        return await _ids(session, where, order.by, values, wanted.per_page, wanted.offset)
    # Against the direction of its index, which begins with the nulls: they come behind all others, by a statement of their own.
    some = _where(*conditions, *of_status, f"{order.nulls_apart} IS NOT NULL")
    none = _where(*conditions, *of_status, f"{order.nulls_apart} IS NULL")
    ids = await _ids(session, some, order.by, values, wanted.per_page, wanted.offset)
    if len(ids) == wanted.per_page:
        return ids
    begin = 0
    if not ids:
        begin = wanted.offset - (await session.scalar(text(f"SELECT count(*) FROM orders WHERE {some}"), values) or 0)
    return ids + await _ids(session, none, order.by, values, wanted.per_page - len(ids), begin)


async def _ids(session: AsyncSession, where: str, by: str, values: Values, limit: int, offset: int) -> list[int]:
    query = f"SELECT orders.id FROM orders WHERE {where} ORDER BY {by} LIMIT {limit} OFFSET {offset}"
    return list(await session.scalars(text(query), values))


async def _merged(
    session: AsyncSession, wanted: OrderFilter, order: PageOrder, conditions: list[str], values: Values
) -> list[int]:
    """The page of several statuses, each read as far as it may reach into the page."""
    query = f"""
        SELECT orders.id FROM unnest(CAST(:statuses AS text[])) AS wanted (status) CROSS JOIN LATERAL (
            SELECT orders.id, orders.order_date FROM orders WHERE {_where(*conditions, "orders.status_group = wanted.status")}
             ORDER BY {order.whole} LIMIT {wanted.offset + wanted.per_page}
        ) AS orders ORDER BY {order.whole} LIMIT {wanted.per_page} OFFSET {wanted.offset}
    """
    return list(await session.scalars(text(query), values))


async def _looked_through(
    session: AsyncSession, seller_id: int, wanted: OrderFilter
) -> tuple[list[int], dict[str, int]]:
    """Page and counts of a filter that nobody counts: what is frequent fills the page soon and is only counted, what is rare is
    found and counted by the same pass.
    """
    tallied, values = tallied_conditions(wanted)
    others, more = other_conditions(wanted)
    of_status, status_values = _of_status(wanted)
    everything = {"seller": seller_id, **values, **more, **status_values}
    order = page_order(wanted)
    if not _is_rare(wanted) and order.nulls_apart is None and wanted.offset + wanted.per_page <= PROBED:
        probe = f"""
            SELECT orders.id FROM (
                SELECT orders.* FROM orders WHERE {_where(*tallied, *of_status)} ORDER BY {order.by} LIMIT {PROBED}
            ) AS orders WHERE {" AND ".join(others)} ORDER BY {order.by} LIMIT {wanted.per_page} OFFSET {wanted.offset}
        """
        ids = list(await session.scalars(text(probe), everything))
        if len(ids) == wanted.per_page:
            return ids, await _count(session, _where(*tallied, *others), {**everything})
    query = f"""
        WITH orders AS MATERIALIZED (
            SELECT orders.id, orders.status_group, {order.columns} FROM orders WHERE {_where(*tallied, *others)}
        ), counts AS (SELECT status_group, count(*) AS number FROM orders GROUP BY status_group)
        SELECT ARRAY(SELECT orders.id FROM orders WHERE {" AND ".join(of_status) or "true"}
                      ORDER BY {order.whole} LIMIT {wanted.per_page} OFFSET {wanted.offset}),
               ARRAY(SELECT status_group FROM counts), ARRAY(SELECT number FROM counts)
    """
    ids, statuses, numbers = (await session.execute(text(query), everything)).one()
    return ids, dict(zip(statuses, numbers, strict=True))


def _is_rare(wanted: OrderFilter) -> bool:
    """Filters with an index of the few orders that they find."""
    return wanted.ship_pending or wanted.pull_session is not None


# What is shown of the page.

_ORDERS = text(f"""
    SELECT {", ".join(f"orders.{name}" for name in OrderRow._fields)}
      FROM unnest(CAST(:ids AS bigint[])) WITH ORDINALITY AS page (id, place)
      JOIN orders ON orders.seller_id = :seller AND orders.id = page.id ORDER BY page.place
""")
_ITEMS = f"""
    SELECT {", ".join(f"item.{name}" for name in ItemRow._fields)}, page.id
      FROM unnest(CAST(:ids AS bigint[])) AS page (id) CROSS JOIN LATERAL (
          SELECT * FROM order_item AS item WHERE item.seller_id = :seller AND item.order_id = page.id ORDER BY item.id {{limit}}
      ) AS item
"""


async def _orders(session: AsyncSession, seller_id: int, ids: list[int]) -> list[OrderRow]:
    if not ids:
        return []
    rows = await session.execute(_ORDERS, {"seller": seller_id, "ids": ids})
    return [OrderRow._make(row) for row in rows]


async def _items(
    session: AsyncSession, seller_id: int, wanted: OrderFilter, orders: list[OrderRow]
) -> Mapping[int, list[ItemRow]]:
    """The first items of each order, by id."""
    ids = [order.id for order in orders if order.items_total]
    if not ids or wanted.items_per_order == 0:
        return {}
    limit = "" if wanted.items_per_order is None else f"LIMIT {wanted.items_per_order}"
    found: dict[int, list[ItemRow]] = defaultdict(list)
    for *item, order_id in await session.execute(text(_ITEMS.format(limit=limit)), {"seller": seller_id, "ids": ids}):
        found[order_id].append(ItemRow._make(item))
    return found
