"""Undoes changes of lists that are entries of the activity feed. Each function raises ChangedSince
if the list has changed since the entry.

As in the changes themselves, the lock of all lists is taken first and the lock of the list's row
second, so that two transactions do not deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.plurals import counted
from cardsync.stock.limits import LISTS_PER_SELLER
from cardsync.stock.lists.models import CardList, CardListEntry
from cardsync.stock.search.known_names import name_key

MADE: Final = "list.made"
RENAMED: Final = "list.renamed"
DELETED: Final = "list.deleted"
ADDED: Final = "list.cards_added"
REMOVED: Final = "list.cards_removed"
_NAMES: Final = RowImages(CardList, "name", unseen=("name_key", "deleted_at"))
_CARDS: Final = RowImages(CardListEntry, keys=("list_id", "card_id"), unseen=("added_at",))


async def _on_list(undoing: Undoing) -> int:
    """Lock the entry's list, and return how many cards are on it. Raises ChangedSince."""
    if not await undoing.run(_LIVE):
        raise errors.ChangedSince(f"list {undoing['list']} was deleted in the meantime")
    [[cards]] = await undoing.run(_COUNT)
    return int(cards)


def _named(undoing: Undoing, became: str, was: str, deleted_at: str | None = None) -> Swap:
    former = {"name": was, "name_key": name_key(was), "deleted_at": deleted_at}
    return Swap({undoing["list"]: {"name": became}}, {undoing["list"]: former})


async def _made(undoing: Undoing) -> Swap:
    on_it = await _on_list(undoing)
    if on_it:
        raise errors.ChangedSince(
            f"list {undoing['list']} now has {counted(on_it, 'card', 'cards')}"
        )
    return _named(undoing, undoing["name"], undoing["name"], undoing.now.isoformat())


async def _renamed(undoing: Undoing) -> Swap:
    await _on_list(undoing)
    return _named(undoing, undoing["became"], undoing["was"])


async def _deleted(undoing: Undoing) -> Swap:
    if await undoing.run(_LIVE):
        raise errors.ChangedSince(f"list {undoing['list']} exists again")
    return _named(undoing, undoing["name"], undoing["name"])


async def _added(undoing: Undoing) -> Swap:
    await _on_list(undoing)
    cards = [(undoing["list"], card) for card in undoing["cards"]]
    return Swap({card: {} for card in cards}, dict.fromkeys(cards), {"of": len(cards)})


async def _removed(undoing: Undoing) -> Swap:
    if await _on_list(undoing) + len(undoing["cards"]) > limits.CARDS_PER_LIST:
        raise errors.ChangedSince(f"list {undoing['list']} no longer has room for the cards")
    cards = dict.fromkeys((undoing["list"], card) for card in undoing["cards"])
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
        then=lambda undoing: undoing.run(_PUT),
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
        then=lambda undoing: undoing.run(_PUT),
    ),
}
_LIVE: Final = """
    SELECT FROM card_list WHERE seller_id = :seller AND id = :list AND deleted_at IS NULL
       FOR UPDATE
"""
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
