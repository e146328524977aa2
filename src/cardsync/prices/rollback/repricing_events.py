"""Records an agent's report of an imported or failed price file, and starts the work that follows.
A repeated report is recorded as the same event.

The SHA-256 of the file identifies a rollback's file: a failure ends the rollback immediately, and
an import ends it as soon as the prices are moved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.agentwork.price_tasks import end_pushes
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.sync.price_events import note_price_events
from cardsync.platform import clock, errors
from cardsync.platform.money import UNITS_PER_CENT, read_amount, to_units, usd
from cardsync.platform.value_types import JsonObject
from cardsync.platform.work.jobs import Work
from cardsync.prices.limits import CLOCK_SECONDS
from cardsync.prices.models import PriceRollback, RepricingEvent
from cardsync.prices.rollback import apply_imported_prices
from cardsync.prices.rollback.packed_rows import pack
from cardsync.prices.rollback.rollbacks import OPEN, end
from cardsync.stock.quick_add.settle import FileReport, settle_file


@dataclass(frozen=True)
class Report:
    """A report of a price file. `rows` are {id, old, price}, with each card once and prices as
    text.
    """

    outcome: Literal["imported", "failed"]
    imported_at: datetime
    row_count: int
    sync_cycle_id: str | None = None
    file_sha256: str | None = None
    rows: list[JsonObject] = field(default_factory=list)
    step: str | None = None
    error: dict[str, str] | None = None
    # `rejected` has the reason for each card that the marketplace refused. `paused` has the cards
    # that the agent leaves out of later files.
    rejected: dict[int, str] = field(default_factory=dict)
    paused: list[int] = field(default_factory=list)
    # The reasons for new listings, which have no marketplace id, by their quick-add entries.
    refused_entries: dict[int, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the key that identifies repeated reports: the outcome, the step and the file, with
        its cycle or, without a cycle, the time of the import.
        """
        reported_by = self.sync_cycle_id or self.imported_at.isoformat()
        return msgspec.json.encode(
            [self.outcome, reported_by, self.file_sha256, self.step]
        ).decode()


# The form in which an agent writes prices, up to fifty thousand of them. Other forms are parsed as
# decimals.
_PLAIN = re.compile(r"[1-9][0-9]{0,7}(?:\.[0-9]{1,4})?")
_ALL_PLAIN = re.compile(rf"(?:{_PLAIN.pattern}\n)*{_PLAIN.pattern}")


def read_price(value: object, place: int, field: str) -> str | None:
    """Return a price as text, from a number or a plain decimal string. Raises InvalidPayload."""
    if value is None or (type(value) is str and _PLAIN.fullmatch(value)):
        return value
    return _read_decimal(value, f"rows[{place}].{field}")


def _read_decimal(value: object, field: str) -> str:
    try:
        amount = read_amount(value)
    except ValueError as e:
        raise errors.InvalidPayload(f"{field}: must be a price") from e
    if amount < 0:
        raise errors.InvalidPayload(f"{field}: must be a price")
    return usd(amount)


def moved_rows(rows: list[tuple[int, object, object]]) -> list[dict[str, object]]:
    """Convert rows of (marketplace_id, old_price, new_price) to the stored form. The last row of a
    card counts.

    Raises InvalidPayload.
    """
    if _is_plain(rows):
        # The dictionary keeps the last row of each card.
        return list({id: {"id": id, "old": old, "price": new} for id, old, new in rows}.values())
    kept: dict[int, dict[str, object]] = {}
    for place, (id, old, new) in enumerate(rows):
        if abs(id) >= 2**63:
            raise errors.InvalidPayload(f"rows[{place}].marketplace_id: must be an id")
        was = read_price(old, place, "old_price")
        price = read_price(new, place, "new_price")
        if price is not None and (
            _PLAIN.fullmatch(price) or to_units(Decimal(price)) >= UNITS_PER_CENT
        ):
            kept[id] = {"id": id, "old": was, "price": price}
    return list(kept.values())


def _is_plain(rows: list[tuple[int, Any, Any]]) -> bool:
    """Return whether every row has an id and two plain prices, as agents write them. All prices are
    matched in one pass.
    """
    prices = [price for _, old, new in rows for price in (old, new)]
    if not prices or not all(type(price) is str for price in prices):
        return False
    whole = "\n".join(prices)
    ids = [id for id, _, _ in rows]
    return (
        whole.count("\n") == len(prices) - 1
        and min(ids) > -(2**63)
        and max(ids) < 2**63
        and _ALL_PLAIN.fullmatch(whole) is not None
    )


def report_of_import(
    imported_at: str,
    row_count: int,
    sync_cycle_id: str | None,
    file_sha256: str | None,
    rows: list[tuple[int, object, object]],
    refused: list[tuple[int | None, int | None, str]],
    paused: list[int],
    now: datetime,
) -> Report:
    """Return the report of a file that was imported. Raises InvalidPayload."""
    moment = _moment(imported_at, now)
    sha256 = file_sha256 and file_sha256.lower()
    for place, (card, entry, _) in enumerate(refused):
        if (card is None) == (entry is None):
            raise errors.InvalidPayload(f"rejected[{place}]: give marketplace_id or entry_id")
    return Report(
        "imported",
        moment,
        row_count,
        sync_cycle_id,
        sha256,
        moved_rows(rows),
        rejected={card: why for card, _, why in refused if card is not None},
        paused=paused,
        refused_entries={entry: why for _, entry, why in refused if entry is not None},
    )


def report_of_failure(
    imported_at: str | None,
    row_count: int,
    sync_cycle_id: str | None,
    file_sha256: str | None,
    step: str,
    error: dict[str, str],
    now: datetime,
) -> Report:
    """Return the report of a file that was not imported. Without `imported_at`, the failure's time
    is now.

    Raises InvalidPayload.
    """
    moment = _moment(imported_at, now) if imported_at else now
    sha256 = file_sha256 and file_sha256.lower()
    return Report("failed", moment, row_count, sync_cycle_id, sha256, step=step, error=error)


def _moment(value: str, now: datetime) -> datetime:
    moment = clock.read_moment(value)
    if moment is None:
        raise errors.InvalidPayload("imported_at: must be a time, as 2026-11-21T08:00:00Z")
    if moment - now > timedelta(seconds=CLOCK_SECONDS):
        raise errors.InvalidPayload(
            f"imported_at: is in the future; the time of the server is {clock.rfc3339(now)}"
        )
    return moment


async def record_import(work: Work, caller: Caller, report: Report, now: datetime) -> int:
    """Record an import, and return the event's id. If the import has few cards and no other work
    writes prices, the cards are moved immediately, and the job has nothing left to do.
    """
    async with work.database.tenant(caller.seller_id) as session:
        event_id, moving = await record(session, caller, report, now)
    if 0 < moving <= work.settings.slab_rows:
        await apply_imported_prices.work_off_one(work, caller.seller_id, counted=False)
    return event_id


async def record(
    session: AsyncSession,
    caller: Caller,
    report: Report,
    now: datetime,
) -> tuple[int, int]:
    """Record a report. Return the event's id and the number of cards to move. A repeated report
    returns the same event.
    """
    state = await sync_state.locked(session, caller.seller_id)
    known = await session.scalar(
        select(RepricingEvent).where(
            RepricingEvent.seller_id == caller.seller_id, RepricingEvent.key == report.key
        )
    )
    if known is not None:
        return known.id, 0
    rollback = await _served_as(session, caller.seller_id, report.file_sha256)
    event = _event_of(report, caller.seller_id, rollback, now)
    session.add(event)
    await session.flush()
    await note_price_events(session, caller.seller_id, report.sync_cycle_id)
    was = await _end_its_work(session, state, report, rollback, event, now)
    moving = _to_move(report, rollback)
    if moving:
        await apply_imported_prices.begin(session, caller.seller_id)
    else:
        event.settled_at = now
    note(session, caller, f"pricing.{report.outcome}", f"{was}: {_summary(report)}", now)
    return event.id, moving


def _event_of(
    report: Report,
    seller_id: int,
    rollback: PriceRollback | None,
    now: datetime,
) -> RepricingEvent:
    return RepricingEvent(
        seller_id=seller_id,
        key=report.key,
        outcome=report.outcome,
        sync_cycle_id=report.sync_cycle_id,
        file_sha256=report.file_sha256,
        rollback_id=rollback and rollback.id,
        row_count=report.row_count,
        rows=pack(report.rows),
        step=report.step,
        error=report.error,
        rejected=[
            *({"id": id, "message": why} for id, why in report.rejected.items()),
            *({"entry_id": id, "message": why} for id, why in report.refused_entries.items()),
        ]
        or None,
        paused=report.paused or None,
        imported_at=min(report.imported_at, now),
        recorded_at=now,
    )


def _to_move(report: Report, rollback: PriceRollback | None) -> int:
    """Return the number of cards whose prices the report changes."""
    if report.outcome == "failed":
        return 0
    open_cards = rollback.cards if rollback and rollback.state != "applied" else 0
    return len(report.rows) + open_cards


def _summary(report: Report) -> str:
    count = len(report.rejected) + len(report.refused_entries)
    refused = f", {count} refused" if count else ""
    paused = f", {len(report.paused)} paused" if report.paused else ""
    return f"{report.outcome}, {report.row_count} rows{refused}{paused}"


async def _end_its_work(
    session: AsyncSession,
    state: SyncState,
    report: Report,
    rollback: PriceRollback | None,
    event: RepricingEvent,
    now: datetime,
) -> str:
    """End the work that waited for the file, and return the kind of file."""
    seller_id, error = event.seller_id, report.error or {}
    if rollback is not None:
        if report.outcome == "failed" and rollback.state in OPEN:
            await end(session, state, rollback, "failed", now, {"step": report.step, **error})
        return f"rollback {rollback.id}"
    failure = error.get("message") if report.outcome == "failed" else None
    file_report = FileReport(report.rejected, failure, report.refused_entries)
    if await settle_file(session, seller_id, report.file_sha256, file_report, now):
        return "listings"
    if report.outcome == "imported":
        cycle, sha256 = report.sync_cycle_id, report.file_sha256
        queued_at = await end_pushes(session, seller_id, cycle, sha256, event.imported_at, now)
        # No file is imported before its prices exist, even if the agent's clock is wrong.
        event.imported_at = max(event.imported_at, queued_at or event.imported_at)
    return "price updates"


async def _served_as(
    session: AsyncSession,
    seller_id: int,
    sha256: str | None,
) -> PriceRollback | None:
    """Return the rollback to which the file belongs. This includes a rollback that has failed or
    expired, because its file was imported anyway. In another cycle an agent may report an applied
    rollback again; such a report is not about price updates.
    """
    if sha256 is None:
        return None
    statement = select(PriceRollback).where(
        PriceRollback.seller_id == seller_id,
        PriceRollback.files.any_() == sha256,
        PriceRollback.state.in_(("served", "failed", "expired", "applied")),
    )
    return await session.scalar(statement.order_by(PriceRollback.id.desc()).limit(1))
