"""Stores which orders of a shop contain each gram of a search text (`search_grams.py`), and finds
the orders that may contain a searched text.

A part lists up to `PART` orders with adjacent ids. Orders after the last part are few, and a search
reads all of them, so an upload that adds orders writes nothing here. An upload that changes a
buyer's name removes the part of the order; until a refresh stores it again, a search reads all
orders after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.kept_figures import Figure, KeptFigure, Refresh
from cardsync.sales.orders.search_grams import (
    PART,
    Places,
    ids_at,
    orders_by_gram,
    packed_ids,
    places_of_all,
    searched_grams,
)

# Each search reads up to this many newer orders, before a refresh adds them to the parts.
UNLISTED: Final = 10_000
# If more orders may contain the text, all orders are read as fast.
FOUND: Final = 5_000
LISTS_READ: Final = 4

MAY_CONTAIN: Final = "(orders.id = ANY (CAST(:found AS bigint[])) OR orders.id > :listed)"

_FOLDED: Final = "SELECT public.folded(:search)"
_PARTS: Final = """
    SELECT after_id, last_id, orders, ids FROM order_search_part
     WHERE seller_id = :seller ORDER BY after_id
"""
# The shortest lists of each part that has all grams: longer lists exclude hardly any further order.
_PLACES: Final = """
    SELECT after_id, places FROM (
        SELECT after_id, places, count(*) OVER (PARTITION BY after_id) AS grams,
               row_number() OVER (PARTITION BY after_id ORDER BY octet_length(places)) AS rank
          FROM order_search_gram
         WHERE seller_id = :seller AND gram = ANY (CAST(:grams AS integer[]))
    ) AS listed WHERE grams = cardinality(CAST(:grams AS integer[])) AND rank <= :most
"""
_BOUNDS: Final = """
    SELECT after_id, last_id, orders FROM order_search_part
     WHERE seller_id = :seller ORDER BY after_id
"""
_WAITING: Final = """
    SELECT count(*) FROM (SELECT FROM orders WHERE seller_id = :seller AND id > :after
                           LIMIT :most) AS waiting
"""
_TEXTS: Final = """
    SELECT id, search_text FROM orders
     WHERE seller_id = :seller AND id > :after AND id <= :upto ORDER BY id LIMIT :most
"""
_REMOVE: Final = tuple(
    f"DELETE FROM {table} WHERE seller_id = :seller AND after_id = ANY (CAST(:parts AS bigint[]))"
    for table in ("order_search_gram", "order_search_part")
)
_STORE_PART: Final = """
    INSERT INTO order_search_part (seller_id, after_id, last_id, orders, ids)
    VALUES (:seller, :after, :last, :orders, :ids)
"""
_STORE_GRAMS: Final = """
    INSERT INTO order_search_gram (seller_id, gram, after_id, places)
    SELECT CAST(:seller AS bigint), given.gram, CAST(:after AS bigint), given.places
      FROM unnest(CAST(:grams AS integer[]), CAST(:places AS bytea[])) AS given (gram, places)
    ON CONFLICT DO NOTHING
"""
_LAST_ID: Final = 2**63 - 1


async def may_contain(reading: Reading, seller_id: int, search: str) -> dict[str, Any] | None:
    """Return the values of `MAY_CONTAIN`; None if reading all orders is as fast."""
    values: dict[str, Any] = {"seller": seller_id, "search": search}
    folded = search.lower()
    if not search.isascii():
        [(folded,)] = await reading.rows(_FOLDED, values)
    if not (grams := searched_grams(folded)):
        return None
    values |= {"grams": grams, "most": LISTS_READ}
    parts, places = await reading.together([_PARTS, _PLACES], values)
    if not parts:
        return None
    return await asyncio.to_thread(_found, parts, places)


def _found(parts: Sequence[Sequence[Any]], rows: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    lists: dict[int, list[bytes]] = {}
    for after, places in rows:
        lists.setdefault(after, []).append(places)
    found: list[tuple[bytes, Places]] = []
    listed = number = 0
    for after, last, _, ids in parts:
        if after != listed:
            break
        listed = last
        if after in lists and len(at := places_of_all(lists[after])):
            found.append((ids, at))
            number += len(at)
        if number > FOUND:
            return None
    if not listed:
        return None
    return {"found": [order for ids, at in found for order in ids_at(ids, at)], "listed": listed}


async def forget_parts(session: AsyncSession, seller_id: int, changed: Sequence[int]) -> None:
    """Remove the parts of orders whose search text this transaction changes. The caller changes it
    afterwards, because a refresh that runs meanwhile reads the former text.
    """
    if not changed:
        return
    await locked(session, Lock.ORDER_SEARCH, seller_id)
    bounds = (await session.execute(text(_BOUNDS), {"seller": seller_id})).all()
    parts = [after for after, last, _ in bounds if any(after < order <= last for order in changed)]
    if parts:
        await _remove(session, seller_id, parts)


async def _remove(session: AsyncSession, seller_id: int, parts: Sequence[int]) -> None:
    for statement in _REMOVE:
        await run(session, statement, {"seller": seller_id, "parts": list(parts)})


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    """Store one part: the first part that was removed, or else the last part, with the orders after
    it. Return whether all parts are stored.
    """
    seller = {"seller": asked.seller_id}
    bounds = (await session.execute(text(_BOUNDS), seller)).all()
    after, upto = 0, _LAST_ID
    for part in bounds:
        if part.after_id != after:
            upto = part.after_id
            break
        after = part.last_id
    if upto == _LAST_ID:
        waiting = seller | {"after": after, "most": UNLISTED}
        if (await session.scalar(text(_WAITING), waiting) or 0) < UNLISTED:
            return True
        if bounds and bounds[-1].orders < PART:
            after = bounds[-1].after_id
            await _remove(session, asked.seller_id, [after])
    values = seller | {"after": after, "upto": upto, "most": PART}
    rows = (await session.execute(text(_TEXTS), values)).all()
    last = rows[-1].id if upto == _LAST_ID else upto
    await _store(session, seller | {"after": after, "last": last}, rows)
    return False


async def _store(
    session: AsyncSession, part: Mapping[str, int], rows: Sequence[Row[int, str]]
) -> None:
    ids, texts = [row[0] for row in rows], [row[1] for row in rows]
    grams, places = await asyncio.to_thread(orders_by_gram, texts)
    packed = {"orders": len(ids), "ids": packed_ids(ids)}
    await run(session, _STORE_PART, {**part, **packed})
    of_part = {"seller": part["seller"], "after": part["after"]}
    await run(session, _STORE_GRAMS, {**of_part, "grams": grams, "places": places})


ORDER_SEARCH = KeptFigure[None](
    Figure.ORDER_SEARCH,
    tables=("order_search_part", "order_search_gram"),
    source="the numbers and the buyers' names of orders",
    marked_by="an upload that changes orders; if it changes a buyer's name, it removes the part of"
    " the order",
    meanwhile="a search reads all orders after the last part before a missing one",
    refresh=_refresh,
)
