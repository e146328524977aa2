"""Reads a seller's lists with their counts, and makes, renames and deletes them.

Only one transaction at a time makes or renames a seller's lists, so that names and slugs stay
unique and the number of lists stays within its limit. Every change of a list locks its row.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime

from msgspec import UNSET
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import activity
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.struct_rows import struct_of_values
from cardsync.platform.value_types import Json, Row
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.limits import LISTS_PER_SELLER
from cardsync.stock.lists.schemas import CardListBody
from cardsync.stock.search.folding import folded, words
from cardsync.stock.search.known_names import given_name, name_key

_LISTS = queries_of(__package__)["lists"].format(visible=VISIBLE)


async def all_lists(reading: Reading, caller: Caller, asked: dict[str, int]) -> list[CardListBody]:
    """Return all lists. If `asked` has the `card_id` or `marketplace_id` of a card, `member` is
    whether the list contains that card.
    """
    named = {"card_id": "c.id = :card_id", "marketplace_id": "c.marketplace_id = :marketplace_id"}
    member = " OR ".join(named[name] for name in asked) or "false"
    found = await reading.rows(
        _LISTS.format(member=member, which="true"),
        {"seller": caller.seller_id, "member": caller.member_id, **asked},
    )
    return [_body(caller, row, asked=bool(asked)) for row in found]


def _body(caller: Caller, row: Sequence[object], *, asked: bool = False) -> CardListBody:
    """Convert a row of `_LISTS` to the list's struct."""
    return struct_of_values(
        CardListBody,
        row[:-1],
        query=f"list:{row[2]}",
        member=row[-1] if asked else UNSET,
        add_cards_url=UNSET if caller.member_id is None else f"/api/lists/{row[0]}/cards",
    )


async def read_list(reading: Reading, caller: Caller, list_id: int) -> CardListBody:
    """Return one list. Raises NotFound."""
    found = await reading.rows(
        _LISTS.format(member="false", which="l.id = :id"),
        {"seller": caller.seller_id, "member": caller.member_id, "id": list_id},
    )
    if not found:
        raise no_list(list_id)
    return _body(caller, found[0])


async def names_of_lists(source: Source, caller: Caller) -> list[tuple[int, str]]:
    """Return the id and the name of each list, without counting its cards."""
    found = await rows_of(source)(
        "SELECT id, name FROM card_list WHERE seller_id = :seller AND deleted_at IS NULL"
        " ORDER BY position, id",
        {"seller": caller.seller_id},
    )
    return [(id, name) for id, name in found]


def no_list(list_id: int) -> errors.NotFound:
    return errors.NotFound(f"there is no list {list_id}")


async def one_list(session: AsyncSession, caller: Caller, list_id: int) -> CardListBody:
    statement = text(_LISTS.format(member="false", which="l.id = :id"))
    named = {"seller": caller.seller_id, "member": caller.member_id, "id": list_id}
    return _body(caller, (await session.execute(statement, named)).one())


async def locked_list(session: AsyncSession, seller_id: int, list_id: int) -> None:
    """Lock the list, so that no other transaction adds cards to it, renames it or deletes it until
    this transaction ends. Raises NotFound.
    """
    found = await session.scalar(
        text(
            "SELECT id FROM card_list"
            " WHERE seller_id = :seller AND id = :id AND deleted_at IS NULL FOR UPDATE"
        ),
        {"seller": seller_id, "id": list_id},
    )
    if found is None:
        raise no_list(list_id)


_NAMES = """
    SELECT id, name, slug, name_key, position, deleted_at IS NULL AS live
      FROM card_list WHERE seller_id = :seller
"""
_MAKE = """
    INSERT INTO card_list (seller_id, name, name_key, slug, position, created_at)
    VALUES (:seller, :name, :key, :slug, :position, :now) RETURNING id
"""


async def create_list(
    session: AsyncSession, caller: Caller, name: Json, now: datetime
) -> CardListBody:
    """Make a list. Raises InvalidName, NameTaken or ListLimitReached."""
    name = given_name(name, "a list")
    known = await _alone_with_names(session, caller.seller_id)
    live = [row for row in known if row.live]
    _refuse_taken(name, [row.name_key for row in live])
    if len(live) >= LISTS_PER_SELLER:
        raise errors.ListLimitReached(
            f"there are already {LISTS_PER_SELLER} lists: delete one first"
        )
    values = {
        "seller": caller.seller_id,
        "name": name,
        "key": name_key(name),
        "slug": free_slug(name, {row.slug for row in known}),
        "position": max((row.position for row in known), default=0) + 1,
        "now": now,
    }
    list_id = (await session.execute(text(_MAKE), values)).scalar_one()
    activity.note(
        session,
        caller,
        "list.created",
        f"list {name!r}",
        now,
        after={"id": list_id, "name": name},
        undo={"kind": "list.made", "list": list_id, "name": name},
    )
    return await one_list(session, caller, list_id)


async def rename_list(
    session: AsyncSession,
    caller: Caller,
    list_id: int,
    name: Json,
    now: datetime,
) -> CardListBody:
    """Rename a list; its slug stays. Raises NotFound, InvalidName or NameTaken."""
    caller.must_be_owner()
    known = await _alone_with_names(session, caller.seller_id)
    await locked_list(session, caller.seller_id, list_id)
    name = given_name(name, "a list")
    _refuse_taken(name, [row.name_key for row in known if row.live and row.id != list_id])
    former = next(row.name for row in known if row.id == list_id)
    values = {"seller": caller.seller_id, "id": list_id, "name": name, "key": name_key(name)}
    await run(
        session,
        "UPDATE card_list SET name = :name, name_key = :key WHERE seller_id = :seller AND id = :id",
        values,
    )
    activity.note(
        session,
        caller,
        "list.renamed",
        f"list {list_id} is {name!r}",
        now,
        before={"name": former},
        after={"name": name},
        undo={"kind": "list.renamed", "list": list_id, "was": former, "became": name},
    )
    return await one_list(session, caller, list_id)


_EMPTY = """
    DELETE FROM card_list_entry WHERE seller_id = :seller AND list_id = :id RETURNING card_id
"""
_DELETE = """
    UPDATE card_list SET deleted_at = :now WHERE seller_id = :seller AND id = :id RETURNING name
"""


async def delete_list(session: AsyncSession, caller: Caller, list_id: int, now: datetime) -> None:
    """Delete a list. Its cards do not change; its slug is never used again. Raises NotFound."""
    caller.must_be_owner()
    await locked_list(session, caller.seller_id, list_id)
    values = {"seller": caller.seller_id, "id": list_id, "now": now}
    cards = list(await session.scalars(text(_EMPTY), {"seller": caller.seller_id, "id": list_id}))
    name = await session.scalar(text(_DELETE), values)
    activity.note(
        session,
        caller,
        "list.deleted",
        f"list {list_id}",
        now,
        before={"id": list_id, "name": name, "cards": len(cards)},
        undo={"kind": "list.deleted", "list": list_id, "name": name, "cards": cards},
    )


def _refuse_taken(name: str, keys: list[str]) -> None:
    if name_key(name) in keys:
        raise errors.NameTaken(f"name: there is already a list {name!r}")


async def alone_with_lists(session: AsyncSession, seller_id: int) -> None:
    """Take the lock of the seller's lists, so that no other transaction makes or renames lists."""
    await locked(session, Lock.LISTS, seller_id)


async def _alone_with_names(session: AsyncSession, seller_id: int) -> list[Row]:
    """Take the lock of `alone_with_lists`, and return all lists, also deleted lists."""
    await alone_with_lists(session, seller_id)
    return list((await session.execute(text(_NAMES), {"seller": seller_id})).all())


FALLBACK = "list"


def slug_of(name: str) -> str:
    """Return the name's ASCII words in lower case, joined by `-`."""
    return "-".join(word for word in words(folded(name)) if word.isascii()) or FALLBACK


def free_slug(name: str, used: Container[str]) -> str:
    """Return the name's slug. If a list has or had that slug, the slug ends with the first free
    number from 2 on.
    """
    slug = slug_of(name)
    number = 2
    while (found := slug if number == 2 else f"{slug}-{number - 1}") in used:
        number += 1
    return found
