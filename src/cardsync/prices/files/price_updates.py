"""Answers GET /export/price-updates with the price file, or with a header-only file and the reasons
why it has no rows.

Some reasons withhold prices: `_forced` finds these reasons, with those of the caller's state row
(`forced_reasons`). The reasons `no_updates` and `drafts_only` only explain why there are no prices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.agentwork.price_tasks import note_push
from cardsync.agents.seller_state.exported import fingerprint_served
from cardsync.agents.seller_state.models import SyncState
from cardsync.catalog.marketplace_columns import HEADER_ONLY
from cardsync.platform.database.copy import read_bytes
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.database.session import Database
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.database.transaction_settings import joined_by_hash
from cardsync.prices.decisions.on_sale import ended_sales
from cardsync.prices.engine.rules import Rule
from cardsync.prices.files.content import (
    REASONS,
    csv_of,
    export_sql,
    forced_reasons,
    holds_at,
    served,
    weak_etag,
)
from cardsync.prices.inputs.cards_to_price import price_stock, read_stock
from cardsync.prices.inputs.rule_rows import live_run, rules_of
from cardsync.web.made_files import UnnamedFile, sha256_of

_APPLIED_NOW = """
    SELECT EXISTS (SELECT FROM agent_task WHERE seller_id = :seller AND kind = 'apply_price_updates'
      AND status = 'claimed'
                      AND claim_expires_at > :now)
"""
# Only the run that ended last counts, because it priced the cards again, whether it was requested
# earlier or later than other runs.
_RUN_WAITS = """
    SELECT state = 'awaiting_review' FROM price_run WHERE seller_id = :seller
      AND state IN ('completed', 'awaiting_review')
     ORDER BY finished_at DESC, id DESC LIMIT 1
"""


@dataclass(frozen=True)
class Export:
    """The price file. `body` is the CSV; `empty_reason` is the header's value if the CSV has no
    rows; only read_only accounts have an `etag`.
    """

    body: bytes
    empty_reason: str | None
    etag: str | None


async def export(session: AsyncSession, caller: Caller, now: datetime) -> Export:
    """Return the price file. `session` reads one snapshot (repeatable read), so that body and ETag
    match.
    """
    read_only = caller.entitlements(now).sync_mode == "read_only"
    forced, which = await file_of(session, caller, now)
    if forced:
        waits = await _any(session, which)
        reasons = await _why_empty(session, caller, now, forced, waits=waits)
        return Export(HEADER_ONLY, reasons, weak_etag(forced, "") if read_only else None)
    rows = await read_bytes(session, export_sql("card c", which, "c.target_price"))
    etag = None
    if read_only:
        etag = weak_etag([], await _current_fingerprint(session, caller.seller_id, which, now))
    if rows:
        return Export(csv_of(rows), None, etag)
    reasons = await _why_empty(session, caller, now, forced, waits=False)
    return Export(HEADER_ONLY, reasons, etag)


async def why_empty(session: AsyncSession, caller: Caller, now: datetime) -> str | None:
    """Return the `empty_reason` of `export` without writing the file."""
    forced, which = await file_of(session, caller, now)
    return await _why_empty(session, caller, now, forced, waits=await _any(session, which))


async def why_empty_by(
    reading: Reading, caller: Caller, forced: list[str], which: str
) -> list[str] | None:
    """Return the reasons of `why_empty` for the result of `file_of`; None if drafts must be priced
    to find the reasons.
    """
    if forced and await _any(reading, which):
        return forced
    if any(map(_is_draft, await rules_of(reading, caller.seller_id))):
        return None
    return forced or ["no_updates"]


async def file_of(source: Source, caller: Caller, now: datetime) -> tuple[list[str], str]:
    """Return the reasons that withhold the prices, and the condition that selects the file's
    cards.
    """
    # Targets of ended sales are not served, even before a run has replaced them.
    forced, ended = await each_of(
        source, _forced(source, caller, now), ended_sales(source, caller.seller_id, now)
    )
    if ended and not isinstance(source, Reading):
        await source.execute(text(joined_by_hash()))
    return forced, served(caller.seller_id, ended)


async def _any(source: Source, which: str) -> bool:
    [[found]] = await rows_of(source)(f"SELECT EXISTS (SELECT FROM card c WHERE {which})", {})
    return bool(found)


async def _why_empty(
    session: AsyncSession, caller: Caller, now: datetime, forced: list[str], *, waits: bool
) -> str | None:
    """Return the reasons why the file is empty; `waits` says whether any card has a new price."""
    if waits:
        return ",".join(forced) or None
    drafts = await would_change(session, caller.seller_id, now)
    return ",".join([*forced, *(["drafts_only"] if drafts else [])]) or "no_updates"


async def note_served(database: Database, caller: Caller, body: bytes | UnnamedFile) -> None:
    """Store the SHA-256 of the served file while a price push is open, because the agent names the
    imported file by its SHA-256.
    """
    if caller.state.price_tasks_due_at is not None:
        digest = sha256_of(body)
        async with database.tenant(caller.seller_id) as session:
            await note_push(session, caller.seller_id, "files", digest)


async def _forced(source: Source, caller: Caller, now: datetime) -> list[str]:
    """Return the reasons from the caller's state row, and those from other tables.

    A run that waits for review does not empty the file of a read_only seller, who checks the file
    anyway.
    """
    reasons = set(forced_reasons(caller, now))
    read_only = caller.entitlements(now).sync_mode == "read_only"
    if read_only and caller.state.price_tasks_due_at is not None:
        asked = {"seller": caller.seller_id, "now": now}
        [[applied]] = await rows_of(source)(_APPLIED_NOW, asked)
        reasons |= {"apply_in_progress"} if applied else set()
    if not read_only and await run_waits(source, caller.seller_id):
        reasons.add("awaiting_review")
    return [reason for reason in REASONS if reason in reasons]


async def run_waits(session: Source, seller_id: int) -> bool:
    """Return whether the run that ended last waits for the seller's decision."""
    rows = await rows_of(session)(_RUN_WAITS, {"seller": seller_id})
    return bool(rows and rows[0][0])


async def _current_fingerprint(
    session: AsyncSession,
    seller_id: int,
    which: str,
    now: datetime,
) -> str:
    """Return the stored fingerprint. While a run changes the prices, or if a sale among them has
    ended, return the fingerprint of the rows in this snapshot.
    """
    columns = select(SyncState.export_fingerprint, SyncState.export_until)
    known, until = (await session.execute(columns.where(SyncState.seller_id == seller_id))).one()
    if known is not None and holds_at(known, until, now):
        return known
    return await fingerprint_served(session, which)


async def would_change(session: AsyncSession, seller_id: int, now: datetime) -> bool:
    """Return whether some enabled draft, if it were published, would change the price of a card
    that it governs.
    """
    drafts = [rule.id for rule in await rules_of(session, seller_id) if _is_draft(rule)]
    if not drafts:
        return False
    account, live = await live_run(session, seller_id, now)
    as_published = [
        replace(rule, state="published") if _is_draft(rule) else rule for rule in live.rules
    ]
    stock = await read_stock(session, account, replace(live, rules=as_published))
    out = await price_stock(stock)
    return not out.filter(pl.col("changed") & pl.col("rule_id").is_in(drafts)).is_empty()


def _is_draft(rule: Rule) -> bool:
    return rule.state == "draft" and rule.enabled
