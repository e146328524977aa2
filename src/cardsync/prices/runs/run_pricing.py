"""Prices the stored cards for one run, and ends the run in a last transaction, which stores its
findings, applies the consequences of its prices and releases the lease.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial

import polars as pl
from sqlalchemy import Update, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.access.models import Account
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.exported import (
    NOTHING,
    asks,
    fingerprint_of,
    importable,
)
from cardsync.agents.seller_state.lease import boundary
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import Lease, own_state
from cardsync.platform import clock
from cardsync.platform.work.jobs import SALES, Work, mark_due_by
from cardsync.platform.work.models import Upload
from cardsync.platform.work.piece import CancelRequested
from cardsync.platform.work.setbacks import pause
from cardsync.prices.decisions import on_sale
from cardsync.prices.decisions.confirmed import must_stop
from cardsync.prices.decisions.ended import Applied, ended
from cardsync.prices.decisions.found_in_run import found_in
from cardsync.prices.engine import breaker, engine
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import Stock, price_stock, read_stock, with_losing
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.inputs.rules_before_keys import (
    DAY,
    LONG,
    before_keys,
    last_asked,
    leaps,
    moved_by_keys,
)
from cardsync.prices.loss.decide import stops
from cardsync.prices.models import PriceRun
from cardsync.prices.receipts.archive import keep
from cardsync.prices.runs.run_reads import count_changes, kept_of
from cardsync.stock.cards import write

_COUNTED = (
    "cards", "priced", "held", "reviewed", "blocked", "up", "down", "up_value", "down_value",
)  # fmt: skip


async def fail_run(
    work: Work,
    lease: Lease,
    run: PriceRun,
    code: str | None,
    why: str,
) -> None:
    await _end(work, lease, run, "failed", {})


async def _cycle_of(session: AsyncSession, run: PriceRun) -> str | None:
    """Return the agent's sync cycle whose upload the run follows."""
    followed = (Upload.seller_id == run.seller_id) & (Upload.id == run.summary.get("follows"))
    return await session.scalar(select(Upload.sync_cycle_id).where(followed))


def _of(lease: Lease, run: PriceRun) -> Update:
    return update(PriceRun).where(PriceRun.seller_id == lease.seller_id, PriceRun.id == run.id)


async def price_run(work: Work, lease: Lease, run: PriceRun) -> None:
    account, stock = await _read(work, lease, run)
    await boundary(work.database, lease)
    priced = await price_stock(stock)
    summary = asdict(engine.summary(priced))
    counts: dict[str, object] = {name: summary[name] for name in _COUNTED}
    # The rules that govern some card, so that Today can name the rules that govern no card.
    counts["rules"] = priced["rule_id"].drop_nulls().unique().sort().to_list()
    full = account.entitlements(run.started_at).sync_mode == "full"
    confirmed = breaker.leaps(priced) if run.summary.get("confirmed") else None
    of_run = partial(stops, review_mode=not full, confirmed=confirmed is not None)
    if (of_run("large_moves") and await _must_stop(work, lease, run, priced)) or (
        of_run("moved_by_keys") and await _moved_by_keys(work, account, stock, priced)
    ):
        await _end(work, lease, run, "awaiting_review", counts)
        return
    await boundary(work.database, lease)
    if _keeps(run, account):
        counts["receipts"] = await keep(
            work.store,
            lease.seller_id,
            run.id,
            [priced],
            stock.run,
        )
    sold = on_sale.on_sale(priced)
    found = partial(
        Applied,
        limited=engine.limited(priced),
        gated=engine.gated(priced),
        sold=sold,
        reviews=found_in(priced, stock.run),
        confirmed=confirmed,
    )
    await on_sale.note(work.database, lease, sold, work.settings.slab_rows)
    rows = await asyncio.to_thread(_retargeted, priced, stock.cards)
    # The fingerprint is computed while PostgreSQL writes the targets.
    exporting = asyncio.create_task(asyncio.to_thread(_exported, priced, stock.cards))
    del priced, stock
    writer = write.Writer(
        work.database,
        lease,
        run.id,
        run.started_at,
        run.started_at,
        rows.height,
    )
    try:
        await write.write(writer, deque(write.retargets(rows, work.settings.slab_rows)))
    finally:
        exported = await exporting
    await _end(work, lease, run, "completed", counts, found(exported, completed=True))


async def _must_stop(work: Work, lease: Lease, run: PriceRun, priced: pl.DataFrame) -> bool:
    async with work.database.tenant(lease.seller_id) as session:
        return await must_stop(session, lease.seller_id, priced, run.started_at)


async def _moved_by_keys(work: Work, account: Account, stock: Stock, priced: pl.DataFrame) -> bool:
    """Return whether the run waits for a review, because of changes by keys and tokens."""
    if not work.settings.price_write_limits:
        return False
    before = await _before_keys(work, account, stock.run, DAY)
    if before is not None and moved_by_keys(priced, before):
        return True
    last = last_asked(stock.cards)
    if not leaps(priced, last):
        return False
    before = await _before_keys(work, account, stock.run, LONG)
    return before is not None and moved_by_keys(priced, before, last)


async def _before_keys(
    work: Work, account: Account, run: Run, span: timedelta
) -> pl.DataFrame | None:
    async with work.database.tenant(account.seller_id, snapshot=True) as session:
        before = await before_keys(session, account.seller_id, run, span)
        if before is None:
            return None
        stock = await read_stock(session, account, before)
    return await price_stock(stock)


async def _read(work: Work, lease: Lease, run: PriceRun) -> tuple[Account, Stock]:
    async with work.database.tenant(lease.seller_id, snapshot=True) as session:
        account, asked = await live_run(session, lease.seller_id, run.started_at)
        stock = await read_stock(session, account, asked)
        return account, await with_losing(session, lease.seller_id, stock) if _keeps(
            run, account
        ) else stock


def _keeps(run: PriceRun, account: Account) -> bool:
    """Return whether the run stores receipts: it must follow a sync, and attribution logging must
    be on.
    """
    return run.trigger == "sync" and account.attribution_logging


def _retargeted(priced: pl.DataFrame, cards: pl.DataFrame) -> pl.DataFrame:
    """Return the cards whose target changed, by id; `asked` is true if the target differs from the
    card's price.
    """
    rows = priced.select(
        cards["id"],
        cards["my_store_priced"],
        "rule_id",
        price="current_price",
        target_price="target",
        target_price_old=cards["target_price"],
    ).filter(pl.col("target_price").ne_missing(pl.col("target_price_old")))
    return rows.with_columns(asked=asks().fill_null(False)).sort("id")


async def _supersede(session: AsyncSession, run: PriceRun, now: datetime) -> None:
    """Discard every older run that still waits for the seller's decision, as a newer upload ends
    the review of an older upload.
    """
    waiting = (
        (PriceRun.state == "awaiting_review")
        & PriceRun.upload_id.is_(None)
        & (PriceRun.id < run.id)
    )
    await session.execute(
        update(PriceRun)
        .where(PriceRun.seller_id == run.seller_id, waiting)
        .values(state="discarded", finished_at=now)
    )


def _exported(priced: pl.DataFrame, cards: pl.DataFrame) -> str:
    """Return the fingerprint that the price file will have once every target is written. Nothing
    else changes the price file meanwhile, because the run holds the lease.
    """
    active = cards.select(
        "marketplace_id",
        "listing_id",
        "product_line_enabled",
        "my_store_priced",
        price="current_price",
    ).with_columns(target_price=priced["target"])
    asked = importable(active.filter("product_line_enabled")).with_columns(
        write.decimal("target_price")
    )
    return fingerprint_of(asked.write_csv(include_header=False).encode())


async def _end(
    work: Work,
    lease: Lease,
    run: PriceRun,
    state: str,
    counts: dict[str, object],
    applied: Applied | None = None,
) -> None:
    """End the run in its last transaction: write its state, apply the consequences of its prices
    and release the lease. `applied` is None for a run that set no prices.

    Raises LeaseLost or CancelRequested.
    """
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        own = await own_state(session, lease)
        if own.cancel_requested_at is not None:
            raise CancelRequested
        changed = await count_changes(session, lease.seller_id, run.id)
        summary = kept_of(run) | counts | {"changed": changed}
        await session.execute(_of(lease, run).values(state=state, finished_at=now, summary=summary))
        if state in ("completed", "awaiting_review"):
            await _supersede(session, run, now)
        if state == "failed":
            await _let_sales_begin_another(session, own, run, now)
        if applied is None:
            applied = Applied()
        else:
            applied = await _with_task(session, run, applied, changed)
        await ended(session, own, applied, now)
        said = f"pricing run {run.id} {state}: {changed} new target{'' if changed == 1 else 's'}"
        note_by(session, lease.seller_id, "pricing", "pricing.repriced", said, now)
        await session.flush()
        await sync_state.release_lease(session, lease)


async def _with_task(
    session: AsyncSession, run: PriceRun, applied: Applied, changed: int
) -> Applied:
    """Return the change with the decision whether the agent gets a task. If the run follows an
    upload, the agent gets a task for any price in the price file, even if no target changed, as
    after an import without a run.
    """
    follows = "follows" in run.summary
    pushes = bool(changed) or (follows and applied.fingerprint != NOTHING)
    cycle = await _cycle_of(session, run) if pushes else None
    return replace(applied, pushes=pushes, withdraws=follows, cycle=cycle)


async def _let_sales_begin_another(
    session: AsyncSession,
    own: SyncState,
    run: PriceRun,
    now: datetime,
) -> None:
    """Make the sales' timer due again for the starts and ends that a failed run was to apply, after
    a pause that is longer after each consecutive failure.
    """
    edges = run.summary.get("sales")
    if edges is None:
        return
    own.sales_in_force = sorted({*own.sales_in_force} - {*edges["started"]} | {*edges["ended"]})
    mine = PriceRun.seller_id == run.seller_id
    last_good = select(func.max(PriceRun.id)).where(mine, PriceRun.state == "completed")
    since = PriceRun.id > func.coalesce(last_good.scalar_subquery(), 0)
    failed = select(func.count()).where(mine, PriceRun.state == "failed", since)
    failures = await session.scalar(failed)
    await mark_due_by(session, run.seller_id, SALES, now + pause(failures or 1))
