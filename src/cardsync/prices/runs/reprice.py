"""Requests pricing runs over the stored cards, starts them under the seller's lease, and decides
the runs that wait for a review.

A run is requested by the seller, by the start or end of a sale, or by an import whose rules have
queries, because PostgreSQL evaluates queries only after the cards are written. If a worker is
killed, the sweep finds its run and starts it again; rows that are already written are equal, and
are not written twice. The changes of a run are counted from the rows that it wrote, however often
it started.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import procrastinate
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.lease import UnderLease
from cardsync.agents.seller_state.state import Lease
from cardsync.agents.sync import cancel
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_as, rows_of
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import enqueue, jobs, mark_due
from cardsync.prices.models import PriceRun, RunTrigger
from cardsync.prices.runs.run_pricing import fail_run, price_run
from cardsync.prices.runs.run_reads import kept_of, oldest_open, run_of

STREAM = "reprice"
HOLDER = "reprice"
_FOLLOWING: Final = """
    AND upload_id IS NULL AND state IN ('running', 'awaiting_review', 'discarded')
    AND CAST(summary ->> 'follows' AS integer) = ANY(:uploads) ORDER BY id
"""
_OVERTAKING: Final = """
    SELECT id FROM price_run
     WHERE seller_id = :seller AND finished_at > CAST(:ended AS timestamptz) AND state = 'completed'
     LIMIT 1
"""


@jobs.task(name="pricing.reprice", queue="imports", pass_context=True)
async def reprice(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(RUNS, reprice, context, seller_id)


async def request(session: AsyncSession, caller: Caller, now: datetime) -> int:
    """Return the id of the run that will price the cards again: an open run if there is one, or
    else a new run.

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
    trigger: RunTrigger,
    now: datetime,
    *,
    upload_id: int | None = None,
    sales: dict[str, list[int]] | None = None,
) -> int:
    """Create a run over the stored cards, and its job, in the caller's transaction; `upload_id` is
    the upload whose import the run follows. `sales` has the ids of the sales that `started` and
    `ended`.
    """
    summary: dict[str, object] = {"follows": upload_id} if upload_id else {}
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
    trigger: RunTrigger,
    now: datetime,
    sales: dict[str, list[int]],
) -> None:
    """Create a run for these sales unless a run waits to start: the waiting run will price for a
    later time, and so include these sales.

    The caller has locked the state row.
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
    source: Source,
    seller_id: int,
    upload_ids: Sequence[int],
) -> dict[int, PriceRun]:
    """Return, by upload, the runs that still price its cards, wait for the seller's decision or
    were discarded.

    Until such a run is completed, the upload's agent has no prices to fetch.
    """
    found = await rows_as(source, PriceRun, seller_id, _FOLLOWING, uploads=list(upload_ids))
    return {
        run.summary["follows"]: run
        for run in found
        if run.state != "awaiting_review" or not await _is_overtaken(source, run)
    }


async def settle_review(
    session: AsyncSession,
    caller: Caller,
    run_id: int,
    answer: str,
    now: datetime,
) -> PriceRun:
    """Apply the seller's answer, "confirmed" or "discarded", to a run that stopped for a review.

    Raises NotFound, NotAwaitingReview.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    run = await run_of(session, caller, run_id)
    if run.state != "awaiting_review":
        raise errors.NotAwaitingReview(f"pricing run {run_id} is {run.state}")
    if answer == "confirmed" and await _is_overtaken(session, run):
        raise errors.NotAwaitingReview(
            f"pricing run {run_id} is outdated: the cards have been priced again since"
        )
    if answer == "discarded":
        run.state = "discarded"
        run.finished_at = now
    else:
        run.state, run.finished_at, run.summary = (
            "running",
            None,
            kept_of(run) | {"confirmed": True},
        )
        run.attempts = run.failures = 0
        await mark_due(session, caller.seller_id, STREAM)
        await enqueue(session, reprice, seller_id=caller.seller_id)
    note(session, caller, f"pricing.run_{answer}", f"pricing run {run_id} {answer}", now)
    await session.flush()
    return run


async def _is_overtaken(source: Source, run: PriceRun) -> bool:
    # Runs are not compared by id, because an import can end before a run that was requested
    # earlier.
    values = {"seller": run.seller_id, "ended": run.finished_at}
    return bool(await rows_of(source)(_OVERTAKING, values))


async def _before(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """End the seller's canceled run, so that it is not continued."""
    await cancel.end_left(session, seller_id, now)


def _begin(run: PriceRun, now: datetime) -> None:
    """Set the time for which the run prices, only at the first attempt."""
    if not run.attempts:
        run.started_at = now


RUNS = runner.Stream[PriceRun, Lease](
    STREAM,
    UnderLease(HOLDER),
    oldest=oldest_open,
    work=price_run,
    fail=fail_run,
    cancel=cancel.end_held,
    before=_before,
    begin=_begin,
)
work_off_one = partial(runner.work_off_one, RUNS)
