"""Saves, changes and deletes the searches that a shop keeps.

Writes of a seller go one at a time, so that names, number and order hold.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors, limits
from cardsync.access.account_lock import one_at_a_time
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.cards.models import SavedSearch
from cardsync.cards.names_in_search import known_names
from cardsync.database.session import run
from cardsync.search.compile import compile_query
from cardsync.search.fields import QueryError
from cardsync.search.list_names import name_key, seen_name
from cardsync.search.parser import parse

MADE: Final = "search.saved"
CHANGED: Final = "search.changed"
DELETED: Final = "search.deleted"
Undo = Mapping[str, Any]


async def saved_searches(session: AsyncSession, caller: Caller) -> list[SavedSearch]:
    """Return the shop's saved searches in their order."""
    mine = select(SavedSearch).where(SavedSearch.seller_id == caller.seller_id)
    return list(await session.scalars(mine.order_by(SavedSearch.position, SavedSearch.id)))


async def save_search(
    session: AsyncSession,
    caller: Caller,
    name: Any,
    query: Any,
    now: datetime,
) -> SavedSearch:
    """Save a search at the end. Raises InvalidName, InvalidQuery, NameTaken,
    SavedSearchLimitReached.
    """
    kept, asked = _readable_name(name), await _readable_query(session, caller, query)
    await one_at_a_time(session, caller.seller_id)
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
    told = {"name": kept, "query": asked}
    undo = {"kind": MADE, "id": row.id, "became": told}
    note(session, caller, MADE, f"search {kept!r} saved", now, after=told, undo=undo)
    return row


async def change_search(
    session: AsyncSession,
    caller: Caller,
    search_id: int,
    given: Mapping[str, Any],
    now: datetime,
) -> SavedSearch:
    """Change name, query or place; `position` counts from 1. Raises NotFound, InvalidName,
    InvalidQuery, InvalidPayload, NameTaken.
    """
    place = _place(given["position"]) if "position" in given else None
    kept = _readable_name(given["name"]) if "name" in given else None
    asked = await _readable_query(session, caller, given["query"]) if "query" in given else None
    await one_at_a_time(session, caller.seller_id)
    known = await saved_searches(session, caller)
    row = _one_of(known, search_id)
    if kept is not None:
        _need_free(kept, [one for one in known if one is not row])
    was = _told(row, known)
    row.name = row.name if kept is None else kept
    row.name_key = name_key(row.name)
    row.query = row.query if asked is None else asked
    if place is not None:
        known = _moved(known, row, place)
    await session.flush()
    became = _told(row, known)
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
    await one_at_a_time(session, caller.seller_id)
    known = await saved_searches(session, caller)
    row = _one_of(known, search_id)
    was = _told(row, known)
    undo = {"kind": DELETED, "id": row.id, "was": was}
    await session.delete(row)
    await session.flush()
    note(session, caller, DELETED, f"search {row.name!r} deleted", now, before=was, undo=undo)


def _told(row: SavedSearch, known: Sequence[SavedSearch]) -> dict[str, Any]:
    return {"name": row.name, "query": row.query, "position": 1 + known.index(row)}


def _moved(known: list[SavedSearch], row: SavedSearch, place: int) -> list[SavedSearch]:
    """Put one search at a place, and renumber all of them."""
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
        raise errors.NameTaken(f"name: there is a saved search {name!r} already")


def _need_room(known: Sequence[SavedSearch]) -> None:
    if len(known) >= limits.SAVED_SEARCHES:
        raise errors.SavedSearchLimitReached(
            f"there are {limits.SAVED_SEARCHES} saved searches already: delete one first"
        )


def _readable_name(name: Any) -> str:
    kept = seen_name(name) if isinstance(name, str) else ""
    if not kept or len(kept) > limits.LIST_NAME_CHARACTERS:
        raise errors.InvalidName(
            f"name: a saved search's name has 1 to {limits.LIST_NAME_CHARACTERS} characters"
        )
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in kept):
        raise errors.InvalidName("name: a saved search's name is one line")
    return kept


async def _readable_query(session: AsyncSession, caller: Caller, query: Any) -> str:
    if not isinstance(query, str) or not query.strip():
        raise errors.InvalidQuery("query: a saved search looks for something")

    async def rows(statement: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        return (await session.execute(text(statement), dict(values))).all()

    try:
        tree = parse(query.strip())
        compile_query(tree, await known_names(rows, caller.seller_id, tree))
    except QueryError as e:
        raise errors.InvalidQuery(f"query: {e} (at offset {e.offset})") from e
    return query.strip()


def _place(given: Any) -> int:
    if type(given) is not int or not 1 <= given <= limits.SAVED_SEARCHES:
        raise errors.InvalidPayload(f"position: a number from 1 to {limits.SAVED_SEARCHES}")
    return given


async def unsave(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Delete a search that was saved, while it is as it was saved."""
    known = await _held(session, caller)
    row = _standing(known, undo)
    mine = SavedSearch.seller_id == caller.seller_id
    await session.execute(delete(SavedSearch).where(mine, SavedSearch.id == row.id))


async def unchange(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Give a search its former name, query and place, while it is as the change left it."""
    known = await _held(session, caller)
    row = _standing(known, undo)
    was = undo["was"]
    if name_key(was["name"]) in {one.name_key for one in known if one is not row}:
        raise errors.ChangedSince(f"there is another search {was['name']!r} by now")
    row.name, row.name_key, row.query = was["name"], name_key(was["name"]), was["query"]
    _moved(known, row, was["position"])
    await session.flush()


_AGAIN = """
    INSERT INTO saved_search (seller_id, id, name, name_key, query, position, created_at)
    OVERRIDING SYSTEM VALUE VALUES (:seller, :id, :name, :key, :query, :position, :now)
"""


async def undelete(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Bring a deleted search back to its place."""
    known = await _held(session, caller)
    was = undo["was"]
    if name_key(was["name"]) in {one.name_key for one in known}:
        raise errors.ChangedSince(f"there is another search {was['name']!r} by now")
    if len(known) >= limits.SAVED_SEARCHES:
        raise errors.ChangedSince(f"there are {limits.SAVED_SEARCHES} saved searches by now")
    last = await session.scalar(
        select(func.max(SavedSearch.position)).where(SavedSearch.seller_id == caller.seller_id)
    )
    values = {
        "seller": caller.seller_id,
        "id": undo["id"],
        "name": was["name"],
        "key": name_key(was["name"]),
        "query": was["query"],
        "position": (last or 0) + 1,
        "now": now,
    }
    await run(session, _AGAIN, values)
    known = await saved_searches(session, caller)
    _moved(known, _one_of(known, undo["id"]), was["position"])
    await session.flush()


async def _held(session: AsyncSession, caller: Caller) -> list[SavedSearch]:
    caller.must_be_owner()
    await one_at_a_time(session, caller.seller_id)
    return await saved_searches(session, caller)


def _standing(known: Sequence[SavedSearch], undo: Undo) -> SavedSearch:
    row = next((one for one in known if one.id == undo["id"]), None)
    became = undo["became"]
    if row is None:
        raise errors.ChangedSince(f"search {became['name']!r} was deleted since")
    if (row.name, row.query) != (became["name"], became["query"]):
        raise errors.ChangedSince(f"search {row.name!r} was changed since")
    return row
