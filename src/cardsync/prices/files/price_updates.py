"""Answers GET /export/price-updates with the price file, or with a header-only one and the reasons
for it.

Some reasons hold prices back: `forced_reasons` are those that the caller's row shows. `no_updates`
and `drafts_only` only explain.
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
from cardsync.platform.database.session import Database
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
# A run that has ended since has priced the cards again, also the run of an import that was
# requested earlier or later.
_RUN_WAITS = """
    SELECT state = 'awaiting_review' FROM price_run WHERE seller_id = :seller
      AND state IN ('completed', 'awaiting_review')
     ORDER BY finished_at DESC, id DESC LIMIT 1
"""


@dataclass(frozen=True)
class Export:
    """`body` is the CSV, `empty_reason` the header's value when it holds no rows, `etag` only in
    read_only.
    """

    body: bytes
    empty_reason: str | None
    etag: str | None


async def export(session: AsyncSession, caller: Caller, now: datetime) -> Export:
    """`session` reads in one snapshot (repeatable read), so that body and ETag are of one set."""
    read_only = caller.entitlements(now).sync_mode == "read_only"
    forced = await _forced(session, caller, now, read_only=read_only)
    # Targets of sales that are over are not served, even before a run has computed them again.
    ended = await ended_sales(session, caller.seller_id, now)
    if ended:
        await session.execute(text(joined_by_hash()))
    which = served(caller.seller_id, ended)
    if forced:
        waits = await session.scalar(text(f"SELECT EXISTS (SELECT FROM card c WHERE {which})"))
        drafts = not waits and await would_change(session, caller.seller_id, now)
        reasons = ",".join([*forced, *(["drafts_only"] if drafts else [])])
        return Export(HEADER_ONLY, reasons, weak_etag(forced, "") if read_only else None)
    rows = await read_bytes(session, export_sql("card c", which, "c.target_price"))
    etag = None
    if read_only:
        etag = weak_etag([], await _current_fingerprint(session, caller.seller_id, which, now))
    if rows:
        return Export(csv_of(rows), None, etag)
    drafts = await would_change(session, caller.seller_id, now)
    return Export(HEADER_ONLY, "drafts_only" if drafts else "no_updates", etag)


async def note_served(database: Database, caller: Caller, body: bytes | UnnamedFile) -> None:
    """While a price push is open: the agent names by its SHA-256 the file that it imported."""
    if caller.state.price_tasks_due_at is not None:
        digest = sha256_of(body)
        async with database.tenant(caller.seller_id) as session:
            await note_push(session, caller.seller_id, "files", digest)


async def _forced(
    session: AsyncSession,
    caller: Caller,
    now: datetime,
    *,
    read_only: bool,
) -> list[str]:
    """The caller's own reasons, and those of other tables.

    A read_only seller looks at a run's file anyway.
    """
    reasons = set(forced_reasons(caller, now))
    if read_only and caller.state.price_tasks_due_at is not None:
        applied = await session.scalar(text(_APPLIED_NOW), {"seller": caller.seller_id, "now": now})
        reasons |= {"apply_in_progress"} if applied else set()
    if not read_only and await run_waits(session, caller.seller_id):
        reasons.add("awaiting_review")
    return [reason for reason in REASONS if reason in reasons]


async def run_waits(session: AsyncSession, seller_id: int) -> bool:
    """Return whether the last run that ended waits for the seller's decision."""
    return bool(await session.scalar(text(_RUN_WAITS), {"seller": seller_id}))


async def _current_fingerprint(
    session: AsyncSession,
    seller_id: int,
    which: str,
    now: datetime,
) -> str:
    """The stored one; while a run changes the set, or a sale in it is over, that of the rows
    seen.
    """
    columns = select(SyncState.export_fingerprint, SyncState.export_until)
    known, until = (await session.execute(columns.where(SyncState.seller_id == seller_id))).one()
    if known is not None and holds_at(known, until, now):
        return known
    return await fingerprint_served(session, which)


async def would_change(session: AsyncSession, seller_id: int, now: datetime) -> bool:
    """Return whether some draft would govern a card and give it another price than it has."""
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
