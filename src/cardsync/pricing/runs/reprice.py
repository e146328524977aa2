"""Prices the stored cards again in a pricing run: targets and price changes, in slabs under the
seller's lease.

A run is started by the seller, or by an import when rules have queries, which PostgreSQL answers
once the cards are written. A run that a killed worker left is found by the sweep and begun again:
rows that it wrote already are equal and are not written twice. The changes of a run are counted
from what it wrote, however often it began.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any

import polars as pl
import procrastinate
from sqlalchemy import Update, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access.activity import Activity, note
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.cards import write
from cardsync.cards.exported import NOTHING, fingerprint, fingerprint_of, importable
from cardsync.pricing.decisions import on_sale
from cardsync.pricing.decisions.confirmed import must_stop
from cardsync.pricing.decisions.found_in_run import found_in
from cardsync.pricing.engine import breaker, engine
from cardsync.pricing.inputs import rule_rows as store
from cardsync.pricing.inputs.cards_to_price import Stock, read_stock, with_losing
from cardsync.pricing.models import PriceRun
from cardsync.pricing.receipts.archive import keep
from cardsync.pricing.runs.ended import Ended, settle
from cardsync.pricing.runs.run_reads import count_changes
from cardsync.seller_state import state as sync_state
from cardsync.seller_state.lease import UnderLease, boundary
from cardsync.seller_state.models import SyncState
from cardsync.seller_state.state import Lease, own_state
from cardsync.sync import cancel
from cardsync.work import runner
from cardsync.work.jobs import SALES, Work, enqueue, jobs, mark_due, mark_due_by
from cardsync.work.models import Upload
from cardsync.work.piece import CancelRequested
from cardsync.work.setbacks import pause

STREAM = "reprice"
HOLDER = "reprice"
_COUNTED = (
    "cards", "priced", "held", "reviewed", "blocked", "up", "down", "up_value", "down_value",
)  # fmt: skip


@jobs.task(name="pricing.reprice", queue="imports", pass_context=True)
async def reprice(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(RUNS, reprice, context, seller_id)


async def request(session: AsyncSession, caller: Caller, now: datetime) -> int:
    """The id of the run that will price the cards again; one that waits already is taken.

    Raises MutexHeld.
    """
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    if sync_state.lease_is_live(state, now) and state.lease_expires_at is not None:
        raise errors.MutexHeld(max(1, math.ceil((state.lease_expires_at - now).total_seconds())))
    waiting = await oldest_open(session, caller.seller_id)
    if waiting is not None:
        return waiting.id
    run_id = await begin(session, caller.seller_id, "manual", now)
    note(session, caller, "pricing.reprice_requested", f"pricing run {run_id}", now)
    return run_id


async def begin(
    session: AsyncSession,
    seller_id: int,
    trigger: str,
    now: datetime,
    *,
    upload_id: int | None = None,
    sales: dict[str, list[int]] | None = None,
) -> int:
    """A run over the stored cards, and its job, in the transaction that asks for it; `upload_id`
    is the import that it follows, `sales` are those that `started` or `ended` by it.
    """
    summary: dict[str, Any] = {"follows": upload_id} if upload_id else {}
    if sales is not None:
        summary["sales"] = sales
    run = PriceRun(seller_id=seller_id, trigger=trigger, started_at=now, summary=summary)
    session.add(run)
    await session.flush()
    await mark_due(session, seller_id, STREAM)
    await enqueue(session, reprice, seller_id=seller_id)
    return run.id


async def begin_unless_one_waits(
    session: AsyncSession,
    seller_id: int,
    trigger: str,
    now: datetime,
    sales: dict[str, list[int]],
) -> None:
    """A run for these sales, unless one was not taken up yet: that one prices for a later moment
    than this, and so for them, too.

    The state row is locked.
    """
    is_open = (PriceRun.state == "running") & PriceRun.upload_id.is_(None)
    waiting = (PriceRun.seller_id == seller_id) & is_open
    is_new = PriceRun.attempts == 0
    run = await session.scalar(select(PriceRun).where(waiting, is_new).limit(1))
    if run is None:
        await begin(session, seller_id, trigger, now, sales=sales)
    else:
        before = run.summary.get("sales", {})
        both = {edge: sorted({*before.get(edge, ()), *ids}) for edge, ids in sales.items()}
        run.summary = run.summary | {"sales": both}


async def following(
    session: AsyncSession,
    seller_id: int,
    upload_ids: Sequence[int],
) -> dict[int, PriceRun]:
    """Return the runs that still price the cards of uploads, wait for the seller's word on them, or
    were discarded, by the upload.

    Until such a run has ended, the upload's agent has no prices to fetch.
    """
    open_or_judged = PriceRun.state.in_(("running", "awaiting_review", "discarded"))
    follows = PriceRun.summary["follows"].as_integer()
    statement = select(PriceRun).where(
        PriceRun.seller_id == seller_id,
        PriceRun.upload_id.is_(None),
        open_or_judged,
        follows.in_(upload_ids),
    )
    found = await session.scalars(statement.order_by(PriceRun.id))
    return {
        run.summary["follows"]: run
        for run in found.all()
        if run.state != "awaiting_review" or not await _is_overtaken(session, run)
    }


async def settle_review(
    session: AsyncSession,
    caller: Caller,
    run_id: int,
    answer: str,
    now: datetime,
) -> PriceRun:
    """`confirmed` or `discarded`: the seller's word on a run that stopped for a look.

    Raises NotFound, NotAwaitingReview.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    run = await run_of(session, caller, run_id)
    if run.state != "awaiting_review":
        raise errors.NotAwaitingReview(f"pricing run {run_id} is {run.state}")
    if answer == "confirmed" and await _is_overtaken(session, run):
        raise errors.NotAwaitingReview(
            f"pricing run {run_id} is overtaken: the cards were priced again since"
        )
    if answer == "discarded":
        run.state = "discarded"
        run.finished_at = now
    else:
        run.state, run.finished_at, run.summary = "running", None, _kept(run) | {"confirmed": True}
        run.attempts = run.failures = 0
        await mark_due(session, caller.seller_id, STREAM)
        await enqueue(session, reprice, seller_id=caller.seller_id)
    note(session, caller, f"pricing.run_{answer}", f"pricing run {run_id} {answer}", now)
    await session.flush()
    return run


def _kept(run: PriceRun) -> dict[str, Any]:
    """The part of a run's summary that all of its starts keep: the upload that it follows, and the
    sales that it is for.
    """
    return {name: value for name, value in run.summary.items() if name in ("follows", "sales")}


async def _is_overtaken(session: AsyncSession, run: PriceRun) -> bool:
    # Not by id: an import can be done before a run that was asked for earlier.
    later = (PriceRun.seller_id == run.seller_id) & (PriceRun.finished_at > run.finished_at)
    later &= PriceRun.state == "completed"
    return bool(await session.scalar(select(select(PriceRun.id).where(later).exists())))


async def run_of(session: AsyncSession, caller: Caller, run_id: int) -> PriceRun:
    """Raises NotFound."""
    statement = select(PriceRun).where(
        PriceRun.seller_id == caller.seller_id, PriceRun.id == run_id
    )
    run = await session.scalar(statement.execution_options(populate_existing=True))
    if run is None:
        raise errors.NotFound(f"there is no pricing run {run_id}")
    return run


async def oldest_open(session: AsyncSession, seller_id: int) -> PriceRun | None:
    statement = select(PriceRun).where(
        PriceRun.seller_id == seller_id,
        PriceRun.state == "running",
        PriceRun.upload_id.is_(None),
    )
    return await session.scalar(
        statement.order_by(PriceRun.id).limit(1).execution_options(populate_existing=True)
    )


async def _before(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """A run that was cancelled is not gone on with."""
    await cancel.end_left(session, seller_id, now)


def _begin(run: PriceRun, now: datetime) -> None:
    """The moment that it prices for: however long it waited to be taken up or confirmed, and the
    same in every life.
    """
    if not run.attempts:
        run.started_at = now


async def _fail(
    work: Work,
    lease: Lease,
    run: PriceRun,
    code: str | None,
    why: str,
) -> None:
    await _end(work, lease, run, "failed", {})


async def _cycle_of(session: AsyncSession, run: PriceRun) -> str | None:
    """The agent's cycle whose import the run follows."""
    followed = (Upload.seller_id == run.seller_id) & (Upload.id == run.summary.get("follows"))
    return await session.scalar(select(Upload.sync_cycle_id).where(followed))


def _of(lease: Lease, run: PriceRun) -> Update:
    return update(PriceRun).where(PriceRun.seller_id == lease.seller_id, PriceRun.id == run.id)


async def _price(work: Work, lease: Lease, run: PriceRun) -> None:
    account, stock = await _read(work, lease, run)
    await boundary(work.database, lease)
    priced = await asyncio.to_thread(
        engine.price,
        stock.cards,
        stock.run.rules,
        stock.run.seller,
        stock.run.now,
        stock.run.sales,
    )
    summary = asdict(engine.summary(priced))
    counts: dict[str, Any] = {name: summary[name] for name in _COUNTED}
    # The rules that govern a card, so that Today can name those that govern none.
    counts["rules"] = priced["rule_id"].drop_nulls().unique().sort().to_list()
    full = account.entitlements(run.started_at).sync_mode == "full"
    confirmed = breaker.leaps(priced) if run.summary.get("confirmed") else None
    if full and confirmed is None and await _must_stop(work, lease, run, priced):
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
        Ended,
        held=engine.held(priced),
        gated=engine.gated(priced),
        sold=sold,
        reviews=found_in(priced, stock.run),
        confirmed=confirmed,
    )
    await on_sale.note(work.database, lease, sold, work.settings.slab_rows)
    rows = await asyncio.to_thread(_retargeted, priced, stock.cards)
    # This runs while PostgreSQL writes.
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


async def _read(work: Work, lease: Lease, run: PriceRun) -> tuple[Account, Stock]:
    async with work.database.tenant(lease.seller_id, snapshot=True) as session:
        account = await session.get_one(Account, lease.seller_id)
        asked = await store.run_of(session, account, run.started_at)
        stock = await read_stock(session, account, asked)
        return account, await with_losing(session, lease.seller_id, stock) if _keeps(
            run, account
        ) else stock


def _keeps(run: PriceRun, account: Account) -> bool:
    """Whether the run leaves receipts: what follows a sync, with attribution logging on."""
    return run.trigger == "sync" and account.attribution_logging


def _retargeted(priced: pl.DataFrame, cards: pl.DataFrame) -> pl.DataFrame:
    """The rows whose target is another than before, by id; `asked` where it asks for a price that
    the card does not have.
    """
    rows = priced.select(
        cards["id"],
        "rule_id",
        price="current_price",
        target_price="target",
        target_price_old=cards["target_price"],
    ).filter(pl.col("target_price").ne_missing(pl.col("target_price_old")))
    asks = pl.col("target_price").is_not_null() & pl.col("target_price").ne_missing(pl.col("price"))
    return rows.with_columns(asked=asks.fill_null(False)).sort("id")


async def _supersede(session: AsyncSession, run: PriceRun, now: datetime) -> None:
    """End every run that still waits for the seller's decision, as a newer upload ends the review
    of an older one.
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
    """The fingerprint of what the export holds once every target is written: under the lease
    nothing else changes it.
    """
    active = cards.select(
        "marketplace_id",
        "listing_id",
        "product_line_enabled",
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
    counts: dict[str, Any],
    ended: Ended | None = None,
) -> None:
    """The run's last transaction: state, what follows from its prices, lease. One that set no prices
    has not `ended` anything.

    Raises LeaseLost or CancelRequested.
    """
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        own = await own_state(session, lease)
        if own.cancel_requested_at is not None:
            raise CancelRequested
        changed = await count_changes(session, lease.seller_id, run.id)
        summary = _kept(run) | counts | {"changed": changed}
        await session.execute(_of(lease, run).values(state=state, finished_at=now, summary=summary))
        if state in ("completed", "awaiting_review"):
            await _supersede(session, run, now)
        if state == "failed":
            await _let_sales_begin_another(session, own, run, now)
        if ended is None:
            ended = Ended(await fingerprint(session, lease.seller_id), completed=False)
        else:
            ended = await _with_task(session, run, ended, changed)
        await settle(session, own, ended, now)
        session.add(
            Activity(
                seller_id=lease.seller_id,
                actor="pricing",
                action="pricing.repriced",
                summary=f"pricing run {run.id} {state}: {changed} price changes",
                created_at=now,
            )
        )
        await session.flush()
        await sync_state.release_lease(session, lease)


async def _with_task(session: AsyncSession, run: PriceRun, ended: Ended, changed: int) -> Ended:
    """Add whether the agent gets a task. An upload that shows the old prices has them offered again,
    as after an import without a run.
    """
    follows = "follows" in run.summary
    pushes = bool(changed) or (follows and ended.fingerprint != NOTHING)
    cycle = await _cycle_of(session, run) if pushes else None
    return replace(ended, pushes=pushes, withdraws=follows, cycle=cycle)


async def _let_sales_begin_another(
    session: AsyncSession,
    own: SyncState,
    run: PriceRun,
    now: datetime,
) -> None:
    """Let the timer of the sales find again the edges that a failed run was for. It rests first,
    longer after each failure in a row.
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


RUNS = runner.Stream[PriceRun, Lease](
    STREAM,
    UnderLease(HOLDER),
    oldest=oldest_open,
    work=_price,
    fail=_fail,
    cancel=cancel.end_held,
    before=_before,
    begin=_begin,
)
work_off_one = partial(runner.work_off_one, RUNS)
