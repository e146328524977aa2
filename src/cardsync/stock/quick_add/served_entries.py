"""Serves published entries as the marketplace's pricing CSV with a positive `Add to Quantity`. An
entry that is in a file is pending, and no further file contains it.

The file is committed before it is sent. If it is lost on the way, the same agent, and no other
agent, gets the same bytes again under the same number. An agent that reports a name gets the file
until it reports that it has received the file, or until an entry of the file is settled. An agent
without a name can't report that, so it gets the file for 30 minutes. Afterwards the owner may
compare the entries with the marketplace and settle them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.state import locked
from cardsync.catalog.marketplace_columns import COLUMNS, HEADER_ONLY
from cardsync.platform import limits
from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.session import Database
from cardsync.platform.kit.csv_table import quoted
from cardsync.stock.quick_add.models import QuickAdd, QuickAddFile
from cardsync.stock.quick_add.note_changes import IN_HAND, note_waiting

# The condition that the card `c` is the seller's listing of the card of the entry `q`. That listing
# has the marketplace's id and the listed quantity.
SAME_CARD = """
    c.seller_id = :seller AND c.contribution IS NULL
    AND ((q.title = '' AND NOT c.custom AND q.listing_id IS NOT NULL
          AND c.marketplace_id = q.listing_id)
      OR (c.condition = q.condition AND c.printing = q.printing AND c.language = q.language
          AND c.product_id = coalesce(p.adopted_by, q.product_id)
          AND ((q.title = '' AND NOT c.custom AND q.listing_id IS NULL)
               OR (q.title <> '' AND c.custom AND c.title = q.title))))
"""
_CARDS = f"""
    SELECT DISTINCT ON (q.id) q.id, c.listing_id,
           CASE WHEN c.gone THEN 0 ELSE c.quantity END AS quantity, c.market, c.direct_low,
           c.low_with_shipping, c.low, c.observed_at
      FROM quick_add q LEFT JOIN product p ON p.id = q.product_id JOIN card c ON {SAME_CARD}
     WHERE q.seller_id = :seller AND q.status = 'published'
     ORDER BY q.id, c.gone, c.id
"""
_MOVES = f"""
    SELECT DISTINCT ON (c.id) c.id, c.marketplace_id, CASE WHEN c.gone THEN 0 ELSE c.quantity END,
           (c.market * 10000)::bigint, (coalesce(c.target_price, c.price) * 10000)::bigint,
           (q.price * 10000)::bigint, q.id
      FROM quick_add q LEFT JOIN product p ON p.id = q.product_id JOIN card c ON {SAME_CARD}
     WHERE q.seller_id = :seller AND q.id = ANY (CAST(:ids AS bigint[])) AND q.status = 'draft'
       AND q.price IS NOT NULL AND NOT c.gone
     ORDER BY c.id, q.price
"""

# The listed entries `l` of the card of each entry `q`. Copies that were listed after the last
# import are not in its quantity yet, but will be in the quantity of the next import.
_ADDED_SINCE = """
    SELECT q.id, l.quantity, l.settled_at
      FROM quick_add q JOIN quick_add l
        ON l.product_id = q.product_id AND l.condition = q.condition AND l.printing = q.printing
       AND l.language = q.language AND l.title = q.title
     WHERE q.seller_id = :seller AND q.status = 'published'
       AND l.seller_id = :seller AND l.status = 'listed' AND l.settled_by <> 'import'
"""


class Row(NamedTuple):
    entry: QuickAdd
    card: Any | None


class Asker(NamedTuple):
    """An agent that requests a file: the name of its installation, and the number of the last file
    that it received.
    """

    name: str | None = None
    has: int | None = None


class Served(NamedTuple):
    """A file to serve. Two files have different numbers even if their bytes are the same."""

    body: bytes
    ids: list[int]
    number: int


def serves(caller: Caller, now: datetime) -> bool:
    """Return whether the account has entries to serve and a paid plan, which includes quick-add.
    Pure.
    """
    return caller.state.quick_add_waits and caller.entitlements(now).paid


async def serve(
    database: Database,
    caller: Caller,
    asker: Asker,
    now: datetime,
) -> Served | None:
    """Return the agent's file, with the ids of its entries in the order of its rows; None if no
    published entry may be served now.
    """
    async with database.tenant(caller.seller_id) as session:
        await locked(session, caller.seller_id)
        served_to = f"{caller.actor} {asker.name or ''}"
        file = await _unanswered(session, caller.seller_id, served_to, asker, now)
        if file is None:
            file = await _next_file(session, caller.seller_id, served_to, now)
        return Served(file.body, file.entry_ids, file.id) if file else None


async def _unanswered(
    session: AsyncSession,
    seller_id: int,
    served_to: str,
    asker: Asker,
    now: datetime,
) -> QuickAddFile | None:
    """Return the oldest file that was served to this agent and that the agent may not have
    received. Restart the 30 minutes of its entries.
    """
    query = (
        select(QuickAddFile)
        .where(
            QuickAddFile.seller_id == seller_id,
            QuickAddFile.served_to == served_to,
            QuickAddFile.received_at.is_(None),
        )
        .order_by(QuickAddFile.id)
    )
    for file in await session.scalars(query):
        if file.id == asker.has:
            file.received_at = now
        elif asker.name or file.made_at + IN_HAND > now:
            await session.execute(
                update(QuickAdd)
                .where(QuickAdd.seller_id == seller_id, QuickAdd.id.in_(file.entry_ids))
                .values(served_at=now)
            )
            return file
    return None


async def _next_file(
    session: AsyncSession,
    seller_id: int,
    served_to: str,
    now: datetime,
) -> QuickAddFile | None:
    rows = await _next_rows(session, seller_id)
    if not rows:
        return None
    added = await _added_since(session, seller_id, rows)
    for entry, card in rows:
        entry.status, entry.served, entry.served_at = "pending", entry.served + 1, now
        entry.listing_id = entry.listing_id or (card.listing_id if card else None)
        entry.quantity_before = (card.quantity if card else 0) + added[entry.id]
        entry.reason, entry.updated_at = None, now
    body = file_of(rows)
    sha256 = hashlib.sha256(body).hexdigest()
    for entry, _ in rows:
        entry.file_sha256 = sha256
    file = QuickAddFile(
        seller_id=seller_id,
        body=body,
        entry_ids=[row.entry.id for row in rows],
        served_to=served_to,
        made_at=now,
    )
    session.add(file)
    await note_waiting(session, seller_id, now)
    return file


async def _next_rows(session: AsyncSession, seller_id: int) -> list[Row]:
    query = (
        select(QuickAdd)
        .where(QuickAdd.seller_id == seller_id, QuickAdd.status.in_(("published", "pending")))
        .order_by(QuickAdd.id)
        .execution_options(populate_existing=True)
    )
    entries = list(await session.scalars(query))
    if not any(entry.status == "published" for entry in entries):
        return []
    found = await session.execute(text(_CARDS), {"seller": seller_id})
    cards = {card.id: card for card in found}
    return chosen(entries, cards)


async def _added_since(
    session: AsyncSession,
    seller_id: int,
    rows: Iterable[Row],
) -> dict[int, int]:
    """Return how many copies of each entry's card quick-add has listed since the newest import with
    the card.
    """
    seen = {row.entry.id: row.card.observed_at if row.card else None for row in rows}
    added = dict.fromkeys(seen, 0)
    for entry_id, quantity, at in await session.execute(text(_ADDED_SINCE), {"seller": seller_id}):
        if entry_id in seen and (seen[entry_id] is None or at > seen[entry_id]):
            added[entry_id] += quantity
    return added


def chosen(entries: Iterable[QuickAdd], cards: dict[int, Any]) -> list[Row]:
    """Return the published entries for one file: one entry per card, and no entry of a card that
    has a pending entry. With several entries of a card, the inventory would not show which of them
    is listed.
    """
    ordered = sorted(entries, key=lambda entry: (entry.status != "pending", entry.id))
    busy: set[tuple[Any, ...]] = set()
    rows: list[Row] = []
    for entry in ordered:
        card = cards.get(entry.id)
        listing = entry.listing_id or (card.listing_id if card else None)
        names: set[tuple[Any, ...]] = {
            (entry.product_id, entry.condition, entry.printing, entry.language, entry.title)
        }
        if listing is not None:
            names.add((listing,))
        free = not (names & busy)
        busy |= names
        if entry.status == "published" and free and len(rows) < limits.QUICK_ADD_ROWS:
            rows.append(Row(entry, card))
    return rows


def file_of(rows: Iterable[Row]) -> bytes:
    """Return the CSV of the rows, every value quoted. Pure."""
    lines = []
    for entry, card in rows:
        cells: dict[str, Any] = {
            name: getattr(entry, name, None)
            for name in (
                "listing_id", "product_line_label", "set_name", "title", "number", "rarity",
                "condition_label", "price", "photo_url",
            )
        }  # fmt: skip
        cells |= {name: getattr(card, name, None) for name in _OBSERVED}
        cells["product_name"] = (
            f"{entry.product_name}: {entry.title}" if entry.title else entry.product_name
        )
        cells["quantity"] = card.quantity if card else 0
        cells["add_to_quantity"] = entry.quantity
        lines.append([cells[name] for name in COLUMNS])
    return HEADER_ONLY + quoted(lines)


_OBSERVED = ("market", "direct_low", "low_with_shipping", "low")


async def moves_of(session: AsyncSession, seller_id: int, ids: Sequence[int]) -> pl.DataFrame:
    """Return the price changes that publishing the drafts causes: the agent's file sets a draft's
    price also on copies that are already listed. The columns are `id`, `marketplace_id`,
    `quantity`, `market`, the targets before (`today`) and after (`today_after`), in
    ten-thousandths, and the draft's id (`entry`).
    """
    names = ("id", "marketplace_id", "quantity", "market", "today", "today_after", "entry")
    values = {"seller": seller_id, "ids": list(ids)}
    return await read_rows(session, _MOVES, dict.fromkeys(names, pl.Int64), values)
