"""Saves, changes and deletes a shop's saved searches.

A lock lets only one transaction at a time write a seller's saved searches. So names stay unique,
their number stays within the limit, and their positions have no gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.stock.cards.models import SavedSearch
from cardsync.stock.cards.names_in_search import known_names, with_names
from cardsync.stock.errors import SavedSearchLimitReached
from cardsync.stock.limits import SAVED_SEARCHES
from cardsync.stock.search.compile import compile_query
from cardsync.stock.search.fields import QueryError
from cardsync.stock.search.known_names import given_name, name_key
from cardsync.stock.search.parser import parse

MADE: Final = "search.saved"
CHANGED: Final = "search.changed"
DELETED: Final = "search.deleted"


class NamedSearch(NamedTuple):
    id: int
    name: str
    query: str


async def names_of_searches(reading: Reading, caller: Caller) -> list[NamedSearch]:
    """Return the shop's saved searches, by position, for pages."""
    rows = await reading.rows(
        "SELECT id, name, query FROM saved_search WHERE seller_id = :seller ORDER BY position, id",
        {"seller": caller.seller_id},
    )
    return list(map(NamedSearch._make, rows))


async def saved_searches(session: AsyncSession, caller: Caller) -> list[SavedSearch]:
    """Return the shop's saved searches, by position."""
    mine = select(SavedSearch).where(SavedSearch.seller_id == caller.seller_id)
    return list(await session.scalars(mine.order_by(SavedSearch.position, SavedSearch.id)))


async def save_search(
    session: AsyncSession,
    caller: Caller,
    name: object,
    query: object,
    now: datetime,
) -> SavedSearch:
    """Save a search at the last position. Raises InvalidName, InvalidQuery, NameTaken,
    SavedSearchLimitReached.
    """
    kept, asked = given_name(name, "a saved search"), await _readable_query(session, caller, query)
    await locked(session, Lock.SHOP, caller.seller_id)
    known = await saved_searches(session, caller)
    _need_free(kept, known)
    _need_room(known)
    row = SavedSearch(
        seller_id=caller.seller_id,
        name=kept,
        name_key=name_key(kept),
        query=asked,
        position=max((one.position for one in known), default=0) + 1,
        created_at=now,
    )
    session.add(row)
    await session.flush()
    search_fields = {"name": kept, "query": asked}
    undo = {"kind": MADE, "id": row.id, "became": search_fields}
    note(session, caller, MADE, f"search {kept!r} saved", now, after=search_fields, undo=undo)
    return row


async def change_search(
    session: AsyncSession,
    caller: Caller,
    search_id: int,
    given: Mapping[str, object],
    now: datetime,
) -> SavedSearch:
    """Change a saved search's name, query or position, which counts from 1. Raises NotFound,
    InvalidName, InvalidQuery, InvalidPayload, NameTaken.
    """
    place = _place(given["position"]) if "position" in given else None
    kept = given_name(given["name"], "a saved search") if "name" in given else None
    asked = await _readable_query(session, caller, given["query"]) if "query" in given else None
    await locked(session, Lock.SHOP, caller.seller_id)
    known = await saved_searches(session, caller)
    row = _one_of(known, search_id)
    if kept is not None:
        _need_free(kept, [one for one in known if one is not row])
    was = _search_json(row, known)
    row.name = row.name if kept is None else kept
    row.name_key = name_key(row.name)
    row.query = row.query if asked is None else asked
    if place is not None:
        known = _moved(known, row, place)
    await session.flush()
    became = _search_json(row, known)
    if became != was:
        summary = f"search {row.name!r} changed"
        undo = {"kind": CHANGED, "id": row.id, "was": was, "became": became}
        note(session, caller, CHANGED, summary, now, before=was, after=became, undo=undo)
    return row


async def delete_search(
    session: AsyncSession,
    caller: Caller,
    search_id: int,
    now: datetime,
) -> None:
    """Delete a saved search. Raises NotFound."""
    await locked(session, Lock.SHOP, caller.seller_id)
    known = await saved_searches(session, caller)
    row = _one_of(known, search_id)
    was = _search_json(row, known)
    undo = {"kind": DELETED, "id": row.id, "was": was}
    await session.delete(row)
    await session.flush()
    note(session, caller, DELETED, f"search {row.name!r} deleted", now, before=was, undo=undo)


def _search_json(row: SavedSearch, known: Sequence[SavedSearch]) -> dict[str, object]:
    return {"name": row.name, "query": row.query, "position": 1 + known.index(row)}


def _moved(known: list[SavedSearch], row: SavedSearch, place: int) -> list[SavedSearch]:
    """Move one search to the position `place`, and renumber all searches."""
    others = [one for one in known if one is not row]
    moved = [*others[: place - 1], row, *others[place - 1 :]]
    for position, one in enumerate(moved, 1):
        one.position = position
    return moved


def _one_of(known: Sequence[SavedSearch], search_id: int) -> SavedSearch:
    found = next((one for one in known if one.id == search_id), None)
    if found is None:
        raise errors.NotFound(f"there is no saved search {search_id}")
    return found


def _need_free(name: str, known: Sequence[SavedSearch]) -> None:
    if name_key(name) in {one.name_key for one in known}:
        raise errors.NameTaken(f"name: there is already a saved search {name!r}")


def _need_room(known: Sequence[SavedSearch]) -> None:
    if len(known) >= SAVED_SEARCHES:
        raise SavedSearchLimitReached(
            f"there are already {SAVED_SEARCHES} saved searches: delete one first"
        )


async def _readable_query(session: AsyncSession, caller: Caller, query: object) -> str:
    if not isinstance(query, str) or not query.strip():
        raise errors.InvalidQuery("query: a saved search needs something to search for")

    async def rows(statement: str, values: Mapping[str, object]) -> Sequence[Sequence[object]]:
        return (await session.execute(text(statement), dict(values))).all()

    try:
        asked = await with_names(rows, caller.seller_id, query.strip())
        tree = parse(asked, canonical=True)
        compile_query(tree, await known_names(rows, caller.seller_id, tree))
    except QueryError as e:
        raise errors.InvalidQuery(f"query: {e} (at offset {e.offset})") from e
    return asked


def _place(given: object) -> int:
    if type(given) is not int or not 1 <= given <= SAVED_SEARCHES:
        raise errors.InvalidPayload(f"position: a number from 1 to {SAVED_SEARCHES}")
    return given


async def _named(undoing: Undoing) -> Swap:
    became, was, _ = UNDO.stored(undoing.entry)
    named = {id: row and {**row, "name_key": name_key(row["name"])} for id, row in was.items()}
    return Swap(became, named)


async def _placed(undoing: Undoing) -> None:
    if was := undoing.entry.get("was"):
        known = await saved_searches(undoing.session, undoing.caller)
        _moved(known, _one_of(known, undoing["id"]), was["position"])
        await undoing.session.flush()


UNDO: Final = UndoRows(
    RowImages(SavedSearch, "name", "query", unseen=("name_key", "position")),
    "search {standing[name]!r} was changed in the meantime",
    key="id",
    gone="search {became[name]!r} was deleted in the meantime",
    room=(SAVED_SEARCHES, "saved searches"),
    free=("name_key", "there is now another search {name!r}"),
    read=_named,
    then=_placed,
)
