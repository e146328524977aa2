"""Reads a shop's collections: the list of collections, one collection with its counts, its rows,
and its waiting rows with their candidates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.collections.collection_cells import SCHEMA
from cardsync.buying.collections.match_collection import keyed_lines
from cardsync.buying.collections.models import FINISH, Collection
from cardsync.buying.collections.schemas import (
    CandidateShown,
    CollectionDetail,
    CollectionList,
    CollectionShown,
    Counts,
    LeftOut,
    RowPage,
    RowShown,
    WaitingRow,
    WaitingRows,
    WhichRows,
    collection_detail,
)
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, found, numbered, row_as
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.value_types import Row
from cardsync.stock.quick_add.type_ahead import products_like

PER_PAGE: Final = 50
ROWS_PER_PAGE: Final = 100
# The maximum number of candidates, because the page has the keys 1 to 9 to choose one.
CANDIDATES: Final = 9
WAITING_AT_ONCE: Final = 10
_COUNTS: Final = """
    SELECT collection_id, coalesce(sum(copies) FILTER (WHERE NOT left_out), 0)::bigint AS copies,
           count(*) FILTER (WHERE product_id IS NOT NULL AND NOT left_out) AS matched,
           count(*) FILTER (WHERE product_id IS NULL AND NOT left_out) AS waiting,
           count(*) FILTER (WHERE left_out) AS left_out
      FROM collection_row
     WHERE seller_id = :seller AND collection_id = ANY (CAST(:ids AS bigint[]))
     GROUP BY collection_id
"""
_LEFT_OUT_FOR: Final = """
    SELECT reason, count(*) FROM collection_row
     WHERE seller_id = :seller AND collection_id = :collection AND left_out AND reason <> ''
       AND chosen_at IS NULL
     GROUP BY reason ORDER BY reason
"""
_COLUMNS: Final = f"""
    r.row, r.copies, r.name, r.set_name, r.set_code, r.number,
    {FINISH} AS finish, r.condition, r.language,
    r.product_id, p.product_name, p.set_name AS product_set, r.certainty, r.how, r.left_out,
    coalesce(r.line, r.row) AS line, r.reason, r.text, r.finish <> '' AS finish_said
"""
_WHERE: Final[Mapping[WhichRows, str]] = {
    "all": "true",
    "waiting": "r.product_id IS NULL AND NOT r.left_out",
    "left_out": "r.left_out",
}
_ROWS: Final = f"""
    SELECT {_COLUMNS}, r.game
      FROM collection_row r LEFT JOIN product p ON p.id = r.product_id
     WHERE r.seller_id = :seller AND r.collection_id = :collection AND {{where}}
     ORDER BY coalesce(r.line, r.row), r.row LIMIT :most OFFSET :skipped
"""
# The condition that a row `o` is similar to the row `r`: the file has the same values for both, so
# a choice for `r` settles `o`, too.
ALIKE: Final = """
    o.name = r.name AND o.set_name = r.set_name AND o.set_code = r.set_code
    AND o.number = r.number AND o.finish = r.finish AND o.language = r.language
    AND o.reason = r.reason AND (r.name <> '' OR o.text = r.text)
    AND (r.reason = '' OR o.condition = r.condition)
"""
_ALIKE_COUNT: Final = f"""
    SELECT r.row, count(*) FROM collection_row r
      JOIN collection_row o ON o.seller_id = :seller AND o.collection_id = :collection
           AND o.product_id IS NULL AND NOT o.left_out AND {ALIKE}
     WHERE r.seller_id = :seller AND r.collection_id = :collection
       AND r.row = ANY (CAST(:rows AS bigint[]))
     GROUP BY r.row
"""
# The statement that reads a row's candidates. If the row has a finish, products in other finishes
# are no candidates.
_RECENT: Final = """
    SELECT id, name
      FROM (SELECT id, name, state FROM collection WHERE seller_id = :seller
             ORDER BY id DESC LIMIT :most) newest
     WHERE state = 'done' ORDER BY id DESC
"""
_NEAR: Final = queries_of(__package__)["near"].format(candidates=CANDIDATES)


async def one_collection(
    source: Source, caller: Caller, collection_id: int, *, lock: bool = False
) -> Collection:
    """Return the row of a collection. Raises NotFound."""
    tail = "AND id = :id FOR UPDATE" if lock else "AND id = :id"
    row = await row_as(source, Collection, caller.seller_id, tail, id=collection_id)
    if row is None:
        raise errors.NotFound(f"there is no collection {collection_id}")
    return row


async def counts_of(source: Source, seller_id: int, ids: Sequence[int]) -> dict[int, Counts]:
    rows = await found(source, _COUNTS, {"seller": seller_id, "ids": list(ids)})
    return {row[0]: Counts(*row[1:]) for row in rows}


async def list_collections(source: Source, caller: Caller, page: int = 1) -> CollectionList:
    """Return the collections, newest first."""
    some = await numbered(source, Collection, caller.seller_id, Paging(page, PER_PAGE))
    counts = await counts_of(source, caller.seller_id, [row.id for row in some.rows])
    shown = [
        struct_of(
            CollectionShown, row, caller, **msgspec.structs.asdict(counts.get(row.id, Counts()))
        )
        for row in some.rows
    ]
    return CollectionList(shown, *some.numbers[:3])


async def recent(source: Source, caller: Caller) -> list[tuple[int, str]]:
    """Return the ids and names of the newest collections, without those that are not read yet."""
    rows = await found(source, _RECENT, {"seller": caller.seller_id, "most": PER_PAGE})
    return [(id, caller.buyer(name) or "") for id, name in rows]


async def read_collection(source: Source, caller: Caller, collection_id: int) -> CollectionDetail:
    """Return a collection with its counts. Raises NotFound."""
    values = {"seller": caller.seller_id, "collection": collection_id}
    row, counts, left_out = await each_of(
        source,
        one_collection(source, caller, collection_id),
        counts_of(source, caller.seller_id, [collection_id]),
        found(source, _LEFT_OUT_FOR, values),
    )
    of_reasons = [LeftOut(*one) for one in left_out]
    return collection_detail(caller, row, counts.get(row.id, Counts()), of_reasons)


async def rows_of(
    session: AsyncSession,
    caller: Caller,
    collection_id: int,
    which: WhichRows,
    page: int,
) -> RowPage:
    """Return a page of a collection's rows. Raises NotFound."""
    row = await one_collection(session, caller, collection_id)
    counts = (await counts_of(session, caller.seller_id, [row.id])).get(row.id, Counts())
    everything = counts.matched + counts.waiting + counts.left_out
    total = {"all": everything, "waiting": counts.waiting, "left_out": counts.left_out}[which]
    some = await _rows(session, caller, row.id, which, ROWS_PER_PAGE, (page - 1) * ROWS_PER_PAGE)
    return RowPage([_row(caller, one) for one in some], total, page, ROWS_PER_PAGE)


def _row(caller: Caller, row: Sequence[Any]) -> RowShown:
    shown = RowShown(*row[:-1])
    shown.text = caller.buyer(shown.text)
    if shown.reason and not shown.left_out and not caller.sees_buyers:
        # A word in a row with shifted columns may be a customer's name.
        shown.reason, shown.finish, shown.condition, shown.language = "cannot be read", "", "", ""
    return shown


async def _rows(
    source: Source,
    caller: Caller,
    collection_id: int,
    which: WhichRows,
    most: int,
    skipped: int,
) -> list[Any]:
    values = {
        "seller": caller.seller_id,
        "collection": collection_id,
        "most": most,
        "skipped": skipped,
    }
    [rows] = await in_one_message(source, [_ROWS.format(where=_WHERE[which])], values)
    return rows


async def waiting_rows(source: Source, caller: Caller, collection_id: int) -> WaitingRows:
    """Return the first waiting rows, each with its candidates. Raises NotFound."""
    _, shown, counts = await each_of(
        source,
        one_collection(source, caller, collection_id),
        first_waiting(source, caller, collection_id, WAITING_AT_ONCE),
        counts_of(source, caller.seller_id, [collection_id]),
    )
    return WaitingRows(shown, counts.get(collection_id, Counts()).waiting)


async def first_waiting(
    source: Source, caller: Caller, collection_id: int, most: int
) -> list[WaitingRow]:
    """Return up to `most` waiting rows, each with its candidates."""
    rows = await _rows(source, caller, collection_id, "waiting", most, 0)
    if not rows:
        return []
    keys = await asyncio.to_thread(lambda: [_keys(row, _games(caller, row)) for row in rows])
    values = {"seller": caller.seller_id, "collection": collection_id}
    alike, near = await each_of(
        source,
        found(source, _ALIKE_COUNT, values | {"rows": [row[0] for row in rows]}),
        each_of(source, *map(partial(_candidates, source, caller), rows, keys)),
    )
    of_row: dict[int, int] = {row: count for row, count in alike}  # noqa: C416
    shown: list[WaitingRow] = []
    for one, those in zip(rows, near, strict=True):
        cells: list[Any] = [*msgspec.structs.astuple(_row(caller, one))]
        cells += [those, of_row.get(one[0], 1)]
        shown.append(WaitingRow(*cells))
    return shown


def _games(caller: Caller, row: Row) -> list[str]:
    return [row.game] if row.game else list(caller.account.product_lines)


async def _candidates(
    source: Source, caller: Caller, row: Row, keys: Mapping[str, object] | None
) -> list[CandidateShown]:
    """Return a row's candidates: products with its name or, if there are none, with similar
    names.
    """
    near = await found(source, _NEAR, keys) if keys is not None else []
    if near:
        return [CandidateShown(*one) for one in near]
    game = row.game if row.game in caller.account.product_lines else None
    words = (row.name or row.text)[:100]
    alike = await products_like(source, caller, words, game, CANDIDATES)
    return [struct_of(CandidateShown, one) for one in alike]


def _keys(row: Row, games: list[str]) -> dict[str, object] | None:
    """Return the values of the statement that reads a row's candidates, None without a name."""
    values = {name: getattr(row, name, None) for name in SCHEMA}
    values |= {"set_name": row[3], "listing_id": None, "scryfall_id": "", "sku": None}
    keyed = keyed_lines(pl.DataFrame([values], schema=SCHEMA), games)
    if keyed.is_empty():
        return None
    # The last line has the shortest form of the row's name.
    last = keyed.row(-1, named=True)
    return {
        "games": games,
        "name": last["name_key"],
        "set": last["set_key"],
        "code": last["code"],
        "number": last["number_key"],
        "finish": last["finish_key"],
        "finish_said": row.finish_said,
        "language": last["language_key"],
    }
