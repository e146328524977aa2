"""Undoes changes of lists that are entries of the activity feed. Each function raises ChangedSince
if the list has changed since the entry.

As in the changes themselves, the lock of all lists is taken first and the lock of the list's row
second, so that two transactions do not deadlock.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.session import run
from cardsync.platform.value_types import JsonMapping
from cardsync.stock.limits import LISTS_PER_SELLER
from cardsync.stock.lists.seller_lists import alone_with_lists, locked_list
from cardsync.stock.search.known_names import name_key

MADE: Final = "list.made"
RENAMED: Final = "list.renamed"
DELETED: Final = "list.deleted"
ADDED: Final = "list.cards_added"
REMOVED: Final = "list.cards_removed"
Undo = JsonMapping


async def unmake(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Undo making a list: delete it if it still has its name and no cards."""
    named = await _held(session, caller, undo)
    await _need_name(session, named, undo["name"])
    on_it = await session.scalar(text(_COUNT), named)
    if on_it:
        raise errors.ChangedSince(
            f"list {undo['list']} now has {on_it} card{'' if on_it == 1 else 's'}"
        )
    await run(session, _DELETE, named | {"now": now})


async def unrename(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Undo a rename: restore the former name if the list still has the new one."""
    named = await _held(session, caller, undo)
    await _need_name(session, named, undo["became"])
    await _need_free(session, named, undo["was"])
    values = named | {"name": undo["was"], "key": name_key(undo["was"])}
    await run(session, _RENAME, values)


async def undelete(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Restore a deleted list with its cards, slug and name."""
    await alone_with_lists(session, caller.seller_id)
    named = {"seller": caller.seller_id, "list": undo["list"]}
    await _need_free(session, named, undo["name"])
    if (await session.scalar(text(_LISTS), named) or 0) >= LISTS_PER_SELLER:
        raise errors.ChangedSince(f"there are now {LISTS_PER_SELLER} lists")
    if not await run(session, _REVIVE, named):
        raise errors.ChangedSince(f"list {undo['list']} exists again")
    await run(session, _PUT, named | {"cards": undo["cards"], "now": now})


async def take_off(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Undo adding cards: remove them if all of them are still on the list."""
    named = await _held(session, caller, undo) | {"cards": undo["cards"]}
    missing = len(undo["cards"]) - await run(session, _TAKE, named)
    if missing:
        raise errors.ChangedSince(
            f"{missing} of the {len(undo['cards'])} cards are no longer on list {undo['list']}"
        )


async def put_on(session: AsyncSession, caller: Caller, undo: Undo, now: datetime) -> None:
    """Undo removing cards: add them again if none of them is on the list."""
    named = await _held(session, caller, undo) | {"cards": undo["cards"]}
    again = await session.scalar(text(_ON_IT), named)
    if again:
        raise errors.ChangedSince(f"{again} of the cards are on list {undo['list']} again")
    if (await session.scalar(text(_COUNT), named) or 0) + len(undo["cards"]) > (
        limits.CARDS_PER_LIST
    ):
        raise errors.ChangedSince(f"list {undo['list']} no longer has room for the cards")
    await run(session, _PUT, named | {"now": now})


async def _held(session: AsyncSession, caller: Caller, undo: Undo) -> dict[str, object]:
    await alone_with_lists(session, caller.seller_id)
    try:
        await locked_list(session, caller.seller_id, undo["list"])
    except errors.NotFound as e:
        raise errors.ChangedSince(f"list {undo['list']} was deleted in the meantime") from e
    return {"seller": caller.seller_id, "list": undo["list"]}


async def _need_name(session: AsyncSession, named: Undo, name: str) -> None:
    present = await session.scalar(text(_NAME), named)
    if present != name:
        raise errors.ChangedSince(f"list {named['list']} is now named {present!r}")


async def _need_free(session: AsyncSession, named: Undo, name: str) -> None:
    if await session.scalar(text(_TAKEN), {**named, "key": name_key(name)}):
        raise errors.ChangedSince(f"there is now another list {name!r}")


_NAME = "SELECT name FROM card_list WHERE seller_id = :seller AND id = :list"
_TAKEN = """
    SELECT count(*) FROM card_list
     WHERE seller_id = :seller AND name_key = :key AND id <> :list AND deleted_at IS NULL
"""
_LISTS = "SELECT count(*) FROM card_list WHERE seller_id = :seller AND deleted_at IS NULL"
_COUNT = "SELECT count(*) FROM card_list_entry WHERE seller_id = :seller AND list_id = :list"
_ON_IT = f"{_COUNT} AND card_id = ANY (CAST(:cards AS bigint[]))"
_RENAME = """
    UPDATE card_list SET name = :name, name_key = :key WHERE seller_id = :seller AND id = :list
"""
_DELETE = "UPDATE card_list SET deleted_at = :now WHERE seller_id = :seller AND id = :list"
_REVIVE = """
    UPDATE card_list SET deleted_at = NULL
     WHERE seller_id = :seller AND id = :list AND deleted_at IS NOT NULL
"""
# A contribution that was retired since the change does not get back on the list.
_PUT = """
    INSERT INTO card_list_entry (seller_id, list_id, card_id, added_at)
    SELECT c.seller_id, :list, c.id, :now FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:cards AS bigint[]))
       AND c.contribution IS DISTINCT FROM 'retired'
    ON CONFLICT DO NOTHING
"""
_TAKE = """
    DELETE FROM card_list_entry
     WHERE seller_id = :seller AND list_id = :list AND card_id = ANY (CAST(:cards AS bigint[]))
"""
