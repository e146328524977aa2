"""Undoes changes of lists that are entries of the activity feed. Each function raises ChangedSince
if the list has changed since the entry.

As in the changes themselves, the lock of all lists is taken first and the lock of the list's row
second, so that two transactions do not deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, UndoRows
from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import run
from cardsync.platform.value_types import JsonMapping
from cardsync.stock.limits import LISTS_PER_SELLER
from cardsync.stock.lists.models import CardList, CardListEntry
from cardsync.stock.lists.seller_lists import locked_list
from cardsync.stock.search.known_names import name_key

MADE: Final = "list.made"
RENAMED: Final = "list.renamed"
DELETED: Final = "list.deleted"
ADDED: Final = "list.cards_added"
REMOVED: Final = "list.cards_removed"
_NAMES: Final = RowImages(CardList, "name", unseen=("name_key", "deleted_at"))
_CARDS: Final = RowImages(CardListEntry, keys=("list_id", "card_id"), unseen=("added_at",))


async def _on_list(session: AsyncSession, caller: Caller, entry: JsonMapping) -> int:
    """Lock the entry's list, and return how many cards are on it. Raises ChangedSince."""
    try:
        await locked_list(session, caller.seller_id, entry["list"])
    except errors.NotFound as e:
        raise errors.ChangedSince(f"list {entry['list']} was deleted in the meantime") from e
    named = {"seller": caller.seller_id, "list": entry["list"]}
    return int(await session.scalar(text(_COUNT), named) or 0)


def _named(entry: JsonMapping, became: str, was: str, deleted_at: datetime | None = None) -> Swap:
    former = {"name": was, "name_key": name_key(was)}
    deleted = {"deleted_at": deleted_at and deleted_at.isoformat()}
    return Swap({entry["list"]: {"name": became}}, {entry["list"]: former | deleted})


async def _made(session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime) -> Swap:
    on_it = await _on_list(session, caller, entry)
    if on_it:
        raise errors.ChangedSince(
            f"list {entry['list']} now has {on_it} card{'' if on_it == 1 else 's'}"
        )
    return _named(entry, entry["name"], entry["name"], now)


async def _renamed(
    session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime
) -> Swap:
    await _on_list(session, caller, entry)
    return _named(entry, entry["became"], entry["was"])


async def _deleted(
    session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime
) -> Swap:
    try:
        await locked_list(session, caller.seller_id, entry["list"])
    except errors.NotFound:
        return _named(entry, entry["name"], entry["name"])
    raise errors.ChangedSince(f"list {entry['list']} exists again")


async def _put(session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime) -> None:
    named = {"seller": caller.seller_id, "list": entry["list"], "cards": entry["cards"]}
    await run(session, _PUT, named | {"now": now})


async def _added(session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime) -> Swap:
    await _on_list(session, caller, entry)
    cards = [(entry["list"], card) for card in entry["cards"]]
    return Swap({card: {} for card in cards}, dict.fromkeys(cards), {"of": len(cards)})


async def _removed(
    session: AsyncSession, caller: Caller, entry: JsonMapping, now: datetime
) -> Swap:
    on_it = await _on_list(session, caller, entry)
    if on_it + len(entry["cards"]) > limits.CARDS_PER_LIST:
        raise errors.ChangedSince(f"list {entry['list']} no longer has room for the cards")
    cards = dict.fromkeys((entry["list"], card) for card in entry["cards"])
    return Swap(cards, cards)


_IS_NAMED: Final = "list {list} is now named {standing[name]!r}"
_FREE: Final = ("name_key", "there is now another list {name!r}")
UNDO: Final[Mapping[str, UndoRows]] = {
    MADE: UndoRows(_NAMES, _IS_NAMED, Lock.LISTS, read=_made),
    RENAMED: UndoRows(_NAMES, _IS_NAMED, Lock.LISTS, free=_FREE, read=_renamed),
    DELETED: UndoRows(
        _NAMES,
        _IS_NAMED,
        Lock.LISTS,
        room=(LISTS_PER_SELLER, "lists"),
        free=_FREE,
        read=_deleted,
        then=_put,
    ),
    ADDED: UndoRows(
        _CARDS,
        "{many} of the {of} cards are no longer on list {list}",
        Lock.LISTS,
        read=_added,
    ),
    REMOVED: UndoRows(
        _CARDS,
        "{many} of the cards are on list {list} again",
        Lock.LISTS,
        read=_removed,
        then=_put,
    ),
}
_COUNT: Final = """
    SELECT count(*) FROM card_list_entry WHERE seller_id = :seller AND list_id = :list
"""
# A contribution that was retired since the change does not get back on the list.
_PUT = """
    INSERT INTO card_list_entry (seller_id, list_id, card_id, added_at)
    SELECT c.seller_id, :list, c.id, :now FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:cards AS bigint[]))
       AND c.contribution IS DISTINCT FROM 'retired'
    ON CONFLICT DO NOTHING
"""
