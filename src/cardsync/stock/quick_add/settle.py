"""Settles pending entries. The agent reports for each entry of a file whether the marketplace lists
it, has rejected it, or never got it. If the report is lost, the owner compares the entries with the
marketplace and settles them.

Each function is idempotent: an entry that already has the reported status does not change. An entry
is served a second time only after the agent or the owner has reported that it is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note, note_by
from cardsync.access.caller import Caller
from cardsync.agents.seller_state.state import locked
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import usd
from cardsync.stock.errors import ListingInHand, NotPending
from cardsync.stock.limits import QUICK_ADD_REASON
from cardsync.stock.quick_add.drafts import held
from cardsync.stock.quick_add.models import QuickAdd, Status
from cardsync.stock.quick_add.note_changes import IN_HAND, note_waiting
from cardsync.stock.quick_add.schemas import PendingEntry, QuickAddEntry
from cardsync.stock.quick_add.served_entries import SAME_CARD

_AGENT = "agent"
# The quantity and price of the pending entries' cards in the newest import.
_LISTED_NOW = f"""
    SELECT DISTINCT ON (q.id) q.id, CASE WHEN c.gone THEN 0 ELSE c.quantity END AS quantity,
           c.price, c.observed_at
      FROM quick_add q LEFT JOIN product p ON p.id = q.product_id JOIN card c ON {SAME_CARD}
     WHERE q.seller_id = :seller AND q.status = 'pending'
     ORDER BY q.id, c.gone, c.id
"""
_LAST_SYNC = "SELECT last_sync_at FROM sync_state WHERE seller_id = :seller"
_SPLIT = (
    "product_id",
    "listing_id",
    "product_line",
    "product_line_label",
    "set_name",
    "product_name",
    "number",
    "rarity",
    "condition",
    "condition_label",
    "printing",
    "language",
    "title",
    "photo_url",
    "price",
    "cost",
    "source",
    "box",
    "box_label",
    "slot",
)


def is_retryable(entry: QuickAdd, now: datetime) -> bool:
    """Return whether the entry's file was served at least IN_HAND ago, so that the owner may settle
    the entry as not listed. Pure.
    """
    return entry.served_at is not None and entry.served_at + IN_HAND <= now


async def acknowledge(
    session: AsyncSession,
    seller_id: int,
    ids: Sequence[int],
    now: datetime,
) -> list[int]:
    """Mark entries as listed that the agent reports as listed; return their ids. An entry that was
    settled as not listed meanwhile is marked, too, so that it is not served and listed twice.
    """
    entries = await _held_all(session, seller_id, ids)
    done = [entry for entry in entries if _was_served(entry)]
    for entry in done:
        end(entry, "listed", _AGENT, now)
    return await _note_settled(session, seller_id, done, "listed", "listed by TCGplayer", now)


async def reject(
    session: AsyncSession,
    seller_id: int,
    reasons: Mapping[int, str],
    now: datetime,
) -> list[int]:
    """Mark entries as rejected by the marketplace, each with its reason; return their ids."""
    entries = await _held_all(session, seller_id, list(reasons))
    done = [entry for entry in entries if _was_served(entry)]
    for entry in done:
        end(entry, "rejected", _AGENT, now)
        entry.reason = reasons[entry.id][:QUICK_ADD_REASON] or "no reason given"
    return await _note_settled(session, seller_id, done, "rejected", "rejected by TCGplayer", now)


async def not_sent(
    session: AsyncSession,
    seller_id: int,
    ids: Sequence[int],
    why: str,
    now: datetime,
) -> list[int]:
    """Mark pending entries as published again, because the agent certainly did not import them. The
    next file contains them. Return their ids.
    """
    entries = await _held_all(session, seller_id, ids)
    done = [entry for entry in entries if entry.status == "pending"]
    for entry in done:
        entry.status, entry.updated_at = "published", now
        entry.reason = why[:QUICK_ADD_REASON]
    return await _note_settled(
        session, seller_id, done, "returned", "not sent, and queued again", now
    )


class FileReport(NamedTuple):
    """An agent's report on a file. With `failure`, the marketplace refused the whole file for that
    reason; otherwise it refused only the cards in `rejected` and the entries in `entries`.
    """

    rejected: Mapping[int, str]
    failure: str | None = None
    entries: Mapping[int, str] = {}


async def settle_file(
    session: AsyncSession,
    seller_id: int,
    sha256: str | None,
    report: FileReport,
    now: datetime,
) -> bool:
    """Settle the entries of a file by the agent's report. Return False if no entry was in the file.

    The report names a card by the marketplace's id or, because a new listing has no such id yet, by
    its entry. Reported cards and entries that are not in this file are ignored.
    """
    if sha256 is None:
        return False
    await locked(session, seller_id)
    held_by = (QuickAdd.seller_id == seller_id, QuickAdd.file_sha256 == sha256)
    found = await session.execute(select(QuickAdd.id, QuickAdd.listing_id).where(*held_by))
    listings: dict[int, int | None] = {row[0]: row[1] for row in found}
    if report.failure is not None:
        await not_sent(session, seller_id, list(listings), report.failure, now)
        return bool(listings)
    rejected = {
        id: report.rejected[listing]
        for id, listing in listings.items()
        if listing is not None and listing in report.rejected
    } | {id: why for id, why in report.entries.items() if id in listings}
    await reject(session, seller_id, rejected, now)
    await acknowledge(session, seller_id, [id for id in listings if id not in rejected], now)
    return bool(listings)


async def settle_result(
    session: AsyncSession,
    caller: Caller,
    result: Mapping[str, object] | None,
    now: datetime,
) -> None:
    """Settle the entries that a task's result names: `listed` has ids of entries, `rejected` has
    objects {id, message}. If the agent has only stored the file, the result names no entries, and
    all stay pending.
    """
    listed, rejected = (result or {}).get("listed"), (result or {}).get("rejected")
    if isinstance(rejected, list):
        reasons = {
            row["id"]: str(row.get("message") or "")
            for row in rejected
            if isinstance(row, dict) and isinstance(row.get("id"), int)
        }
        await reject(session, caller.seller_id, reasons, now)
    if isinstance(listed, list):
        ids = [id for id in listed if isinstance(id, int) and not isinstance(id, bool)]
        await acknowledge(session, caller.seller_id, ids, now)


async def pending(source: Source, caller: Caller, now: datetime) -> list[PendingEntry]:
    """Read the pending entries, oldest first, each with its card's listing in the newest import."""
    tail = "AND status = 'pending' ORDER BY served_at, id"
    rows = await rows_as(source, QuickAdd, caller.seller_id, tail)
    if not rows:
        # Without rows, the next statement would read all of the seller's cards for nothing.
        return []
    values = {"seller": caller.seller_id}
    listed, state = await in_one_message(source, [_LISTED_NOW, _LAST_SYNC], values)
    cards, synced = {card.id: card for card in listed}, state[0][0] if state else None
    return [
        PendingEntry(
            struct_of(QuickAddEntry, entry),
            entry.quantity,
            entry.quantity_before or 0,
            card.quantity if card else None,
            usd(card.price) if card else None,
            card.observed_at if card else None,
            synced,
            is_retryable(entry, now),
        )
        for entry, card in ((row, cards.get(row.id)) for row in rows)
    ]


async def settle(
    session: AsyncSession,
    caller: Caller,
    entry_id: int,
    listed: bool,
    quantity: int | None,
    now: datetime,
) -> QuickAdd:
    """Settle an entry that the owner compared with the marketplace: `quantity` copies are listed
    (all by default), or none. If a part is listed, the rest becomes a draft again; if nothing is
    listed, the entry is served again.

    Raises OwnerRequired, NotFound, NotPending, ListingInHand, InvalidPayload.
    """
    caller.must_be_owner()
    entry = await held(session, caller.seller_id, entry_id)
    if entry.status != "pending":
        if entry.settled_by == caller.actor and (entry.status == "listed") == listed:
            return entry
        raise NotPending
    if not listed:
        if quantity is not None:
            raise errors.InvalidPayload("quantity: leave it out when none are listed")
        if not is_retryable(entry, now):
            raise ListingInHand
        entry.status, entry.updated_at, entry.settled_by = "published", now, caller.actor
        entry.reason = "a member found it not listed"
    else:
        _split(session, caller, entry, quantity, now)
        end(entry, "listed", caller.actor, now)
    what = f"{entry.quantity} listed" if listed else "not listed, queued again"
    note(session, caller, "quick_add.settled", f"listing {entry.id}: {what}", now)
    await note_waiting(session, caller.seller_id, now, at_once=True)
    return entry


def end(entry: QuickAdd, status: Status, by: str, now: datetime) -> None:
    entry.status, entry.settled_by = status, by
    entry.settled_at = entry.updated_at = now
    entry.reason = None


def _split(
    session: AsyncSession,
    caller: Caller,
    entry: QuickAdd,
    quantity: int | None,
    now: datetime,
) -> None:
    """Reduce the entry to `quantity` copies, and make a draft of the other copies."""
    if quantity is None or quantity == entry.quantity:
        return
    if not 1 <= quantity < entry.quantity:
        raise errors.InvalidPayload(
            f"quantity: {entry.quantity} were sent, so 1 to {entry.quantity} of them can be listed"
        )
    rest = QuickAdd(
        seller_id=caller.seller_id,
        created_by=caller.actor,
        status="draft",
        served=0,
        quantity=entry.quantity - quantity,
        reason=f"split off from entry {entry.id}",
        created_at=now,
        updated_at=now,
        **{name: getattr(entry, name) for name in _SPLIT},
    )
    session.add(rest)
    entry.quantity = quantity


def _was_served(entry: QuickAdd) -> bool:
    return entry.status == "pending" or (entry.status == "published" and entry.served > 0)


async def _held_all(session: AsyncSession, seller_id: int, ids: Sequence[int]) -> list[QuickAdd]:
    """Lock the seller's state row, and return the seller's entries with these ids."""
    await locked(session, seller_id)
    rows = await session.scalars(
        select(QuickAdd)
        .where(QuickAdd.seller_id == seller_id, QuickAdd.id.in_(ids))
        .order_by(QuickAdd.id)
        .execution_options(populate_existing=True)
    )
    return list(rows)


async def _note_settled(
    session: AsyncSession,
    seller_id: int,
    done: list[QuickAdd],
    action: str,
    what: str,
    now: datetime,
) -> list[int]:
    if done:
        summary = f"{len(done)} listings {what}"
        note_by(session, seller_id, _AGENT, f"quick_add.{action}", summary, now)
        await note_waiting(session, seller_id, now)
    return [entry.id for entry in done]
