"""Stores the drafts of quick-add: members add entries in batches, and change and delete them until
the owner publishes them.

A rejected entry that is changed becomes a draft again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state.state import locked
from cardsync.catalog import products
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, numbered
from cardsync.platform.database.session import Database
from cardsync.platform.kit.row_pages import Numbered, Paging
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.contributions.add import publish as share
from cardsync.stock.errors import NotADraft
from cardsync.stock.quick_add.checked_entry import (
    Changes,
    Described,
    Wanted,
    changed_columns,
    checked,
    columns_of,
)
from cardsync.stock.quick_add.models import QuickAdd
from cardsync.stock.quick_add.note_changes import note_waiting
from cardsync.stock.shelving.box_numbers import columns_of_box

_EDITABLE = ("draft", "rejected")
_PRODUCTS = """
    SELECT p.id, p.game, p.product_name, p.set_name, coalesce(p.number, ''), coalesce(p.rarity, ''),
           NULL, nullif(p.finish, 'Sealed')
      FROM product p
     WHERE p.id = ANY (CAST(:ids AS bigint[])) AND (NOT p.provisional
        OR EXISTS (SELECT FROM card c WHERE c.seller_id = :seller AND c.product_id = p.id))
"""
_CONTRIBUTIONS = f"""
    SELECT c.id, c.product_id, c.product_line, c.product_name, c.set_name, c.number, c.rarity,
           c.condition, c.printing, c.language
      FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[]))
       AND c.contribution IN ('private', 'published') AND {VISIBLE}
"""


async def draft(
    database: Database,
    caller: Caller,
    wanted: Sequence[Wanted],
    now: datetime,
) -> list[QuickAdd]:
    """Store all entries, or none if one is invalid. A draft of a member's private contribution is
    visible to the whole account, because the owner publishes drafts. Raises InvalidPayload.
    """
    async with database.tenant(caller.seller_id) as session:
        known = await known_products(
            session, caller, [w.product_id for w in wanted if w.product_id]
        )
        theirs = await _contributed(session, caller, [w.contribution_id for w in wanted])
    texts = await _described(database, caller, wanted)
    rows = []
    for place, entry in enumerate(wanted):
        at = f"entries[{place}]."
        product = _product_of(entry, known, theirs, texts.get(place), at)
        if product.product_line not in caller.account.product_lines:
            raise errors.InvalidPayload(
                f"{at}game: {product.product_line[:60]!r} is not one of this account's product lines"
            )
        rows.append(columns_of(entry, product, at))
    try:
        async with database.tenant(caller.seller_id) as session:
            for contribution in theirs:
                await share(session, caller, contribution, now)
            made = await keep_drafts(session, caller, rows, now)
    except IntegrityError as e:
        raise errors.InvalidPayload(
            "contribution_id: an entry for this contribution exists already"
        ) from e
    return made


async def keep_drafts(
    session: AsyncSession, caller: Caller, rows: Sequence[Mapping[str, Any]], now: datetime
) -> list[QuickAdd]:
    """Store drafts with checked columns (`columns_of`), in the caller's transaction."""
    made = [
        QuickAdd(
            seller_id=caller.seller_id, created_by=caller.actor, status="draft", served=0,
            created_at=now, updated_at=now,
            **{**row, **await columns_of_box(session, caller.seller_id, row["box"])},
        )
        for row in rows
    ]  # fmt: skip
    session.add_all(made)
    note(session, caller, "quick_add.drafted", f"{len(made)} listings drafted", now)
    await session.flush()
    return made


async def entries(
    source: Source, caller: Caller, status: str | None, paging: Paging
) -> Numbered[QuickAdd]:
    """Return a page of entries, newest first."""
    where = "" if status is None else "AND status = :status"
    return await numbered(source, QuickAdd, caller.seller_id, paging, where, status=status)


async def some(session: AsyncSession, caller: Caller, ids: Sequence[int]) -> list[QuickAdd]:
    """Return the entries of the caller's shop with these ids, oldest first."""
    mine = select(QuickAdd).where(QuickAdd.seller_id == caller.seller_id, QuickAdd.id.in_(ids))
    return list(await session.scalars(mine.order_by(QuickAdd.id)))


async def change(
    session: AsyncSession,
    caller: Caller,
    entry_id: int,
    changes: Changes,
    now: datetime,
) -> QuickAdd:
    """Change a draft or a rejected entry. Raises NotFound, NotADraft, InvalidPayload."""
    entry = await held(session, caller.seller_id, entry_id)
    if entry.status not in _EDITABLE:
        raise NotADraft
    given = changed_columns(changes)
    stored = {column.key: getattr(entry, column.key) for column in QuickAdd.__table__.columns}
    row = checked(stored | given, own=entry.printing)
    if "box" in given:
        row |= await columns_of_box(session, caller.seller_id, given["box"])
    for name in (*given, "condition_label", "box_label"):
        setattr(entry, name, row[name])
    entry.status, entry.reason, entry.updated_at = "draft", None, now
    note(session, caller, "quick_add.changed", f"listing {entry.id} changed", now)
    return entry


async def delete(session: AsyncSession, caller: Caller, entry_id: int, now: datetime) -> None:
    """Delete a draft or a rejected entry. The owner may also delete a published entry that has not
    been in a file yet. Raises NotFound, NotADraft.
    """
    entry = await held(session, caller.seller_id, entry_id)
    taken_back = entry.status == "published" and not entry.served and caller.role == "owner"
    if entry.status not in _EDITABLE and not taken_back:
        raise NotADraft
    await session.delete(entry)
    note(session, caller, "quick_add.deleted", f"listing {entry_id} deleted", now)
    await note_waiting(session, caller.seller_id, now)


async def held(session: AsyncSession, seller_id: int, entry_id: int) -> QuickAdd:
    """Lock the seller's state row, which protects all entries, and return the entry. Raises
    NotFound.
    """
    await locked(session, seller_id)
    entry = await session.scalar(
        select(QuickAdd)
        .where(QuickAdd.seller_id == seller_id, QuickAdd.id == entry_id)
        .execution_options(populate_existing=True)
    )
    if entry is None:
        raise errors.NotFound(f"there is no quick-add entry {entry_id}")
    return entry


def _product_of(
    entry: Wanted,
    known: dict[int, Described],
    theirs: dict[int, Described],
    described: Described | None,
    at: str,
) -> Described:
    if entry.contribution_id is not None:
        if entry.contribution_id not in theirs:
            raise errors.InvalidPayload(
                f"{at}contribution_id: there is no contribution {entry.contribution_id}"
            )
        return theirs[entry.contribution_id]
    if entry.product_id is not None:
        if entry.product_id not in known:
            raise errors.InvalidPayload(f"{at}product_id: there is no product {entry.product_id}")
        return known[entry.product_id]
    if described is None:
        raise errors.InvalidPayload(f"{at}product_id: it is missing, and so are name and set")
    return described


async def known_products(
    session: AsyncSession, caller: Caller, ids: Sequence[int]
) -> dict[int, Described]:
    """Return the products with these ids that the caller may use."""
    if not ids:
        return {}
    rows = await session.execute(text(_PRODUCTS), {"ids": list(ids), "seller": caller.seller_id})
    return {row[0]: Described(*row) for row in rows}


async def _contributed(
    session: AsyncSession,
    caller: Caller,
    ids: list[int | None],
) -> dict[int, Described]:
    wanted = [id for id in ids if id is not None]
    if not wanted:
        return {}
    named = {"ids": wanted, "seller": caller.seller_id, "member": caller.member_id}
    rows = await session.execute(text(_CONTRIBUTIONS), named)
    return {row[0]: Described(*row[1:]) for row in rows}


async def _described(
    database: Database,
    caller: Caller,
    wanted: Sequence[Wanted],
) -> dict[int, Described]:
    """Return the products of the entries that have only texts, by the entry's index. The catalog
    matches them like rows of an upload.
    """
    named: dict[str, dict[str, Any]] = {}
    for place, entry in enumerate(wanted):
        if entry.product_id or entry.contribution_id or not (entry.name and entry.set_name):
            continue
        at = f"entries[{place}]."
        given = (entry.game or "", entry.name, entry.set_name, entry.number or "", "")
        columns = columns_of(entry, Described(0, *given), at)
        said = {name: columns[name] for name in products.ROW_COLUMNS}
        named[at] = said | {"row": place, "printing": entry.printing and said["printing"]}
    if not named:
        return {}
    lines = await products.lines_meant(database, caller.account.product_lines, named)
    rows = [row | {"product_line": lines[at], "title": ""} for at, row in named.items()]
    texts = {"row": pl.UInt32, "printing": pl.String}
    found = await products.resolve(database, pl.DataFrame(rows, schema_overrides=texts))
    ids = dict(found.select("row", "product_id").iter_rows())
    async with database.tenant(caller.seller_id) as session:
        known = await known_products(session, caller, list(ids.values()))
    printings = {id: product.printing for id, product in known.items()}
    return {
        row["row"]: Described(
            ids[row["row"]],
            row["product_line"],
            row["product_name"],
            row["set_name"],
            row["number"],
            "",
            printing=printings.get(ids[row["row"]]),
        )
        for row in rows
    }
