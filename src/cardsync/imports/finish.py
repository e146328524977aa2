"""Ends an import as finished, failed or cancelled, in one transaction that locks the seller's row
and releases the lease.
"""

from __future__ import annotations

from datetime import datetime

import structlog
from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.access.models import Account
from cardsync.agents.seller_state import state as sync_state
from cardsync.agents.seller_state.exported import NOTHING
from cardsync.agents.seller_state.state import Lease, hold_lease, own_state
from cardsync.agents.sync import cancel as sync_cancel
from cardsync.imports.judge_upload import Verdict
from cardsync.imports.outcome import Outcome
from cardsync.platform import clock
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.work.jobs import Work
from cardsync.platform.work.metrics import UPLOAD_SECONDS, UPLOADS
from cardsync.platform.work.models import State, Upload
from cardsync.platform.work.piece import CancelRequested
from cardsync.prices.decisions.ended import Applied, ended
from cardsync.prices.models import PriceRun
from cardsync.prices.runs.reprice import begin
from cardsync.prices.runs.run_reads import count_changes
from cardsync.prices.runs.sale_runs import begun_since
from cardsync.stock.cards.chosen_match import keep_settled
from cardsync.stock.cards.write import Slab, Writer, bury
from cardsync.stock.contributions.promote import promote
from cardsync.stock.pictures.ask import ask_for_pictures
from cardsync.stock.quick_add.shown_by_import import note_shown

log = structlog.get_logger(__name__)


async def finish(
    writer: Writer,
    upload: Upload,
    verdict: Verdict,
    outcome: Outcome,
    gone: list[Slab],
    *,
    reprice: bool,
    pictures: bool,
) -> None:
    """Run the last transaction of the upload: mark absent cards as gone, store the report, the
    pricing run and the export's fingerprint, update the sync state, and release the lease.

    With `reprice`, a pricing run over the stored cards follows, because rules contain queries. With
    `pictures`, the pictures of new cards are fetched.
    """
    now = clock.now()
    seller_id, in_review = upload.seller_id, bool(verdict.review)
    end: State = "awaiting_review" if in_review else "done"
    async with writer.database.tenant(seller_id) as session:
        await bury(session, writer, gone)
        state = await own_state(session, writer.lease)
        row = await _settled(session, upload, end, now)
        row.report = outcome.report
        await _end_run(session, upload, verdict, outcome, now)
        await _supersede_reviews(session, upload)
        await ended(session, state, _applied(upload, outcome, in_review, reprice), now)
        if outcome.sold is not None:
            await begun_since(session, state, upload.begun_at or upload.received_at, now)
        await keep_settled(session, seller_id)
        await promote(session, seller_id)
        await note_shown(session, seller_id, now)
        state.review_upload_id = upload.id if in_review else None
        await _keep_names(session, upload, verdict, outcome)
        _note(session, upload, outcome.report, now)
        if reprice:
            await begin(session, seller_id, "sync", now, upload_id=upload.id)
        if pictures:
            await ask_for_pictures(session, seller_id)
        outcome_word = "in_review" if in_review else "completed"
        await sync_state.upload_finished(session, seller_id, outcome_word, now)
        await hold_lease(session, writer.lease, now)
        await sync_state.release_lease(session, writer.lease)
    _count(upload, end, now)
    log.info(
        "upload_imported",
        seller_id=seller_id,
        upload_id=upload.id,
        **{name: outcome.report[name] for name in COUNTS},
    )


async def _end_run(
    session: AsyncSession,
    upload: Upload,
    verdict: Verdict,
    outcome: Outcome,
    now: datetime,
) -> None:
    """End the pricing run of the upload with its counts."""
    report = outcome.report
    counts = {
        "priced": report["priced"],
        "blocked": report["blocked"],
        **outcome.moves,
        "changed": await count_changes(session, upload.seller_id, verdict.run_id),
        "cards": report["applied"],
        "receipts": outcome.receipts,
        "reviewed": outcome.reviews.waiting.height if outcome.reviews else 0,
    }
    state = "awaiting_review" if verdict.review else "completed"
    await session.execute(
        update(PriceRun)
        .where(PriceRun.seller_id == upload.seller_id, PriceRun.id == verdict.run_id)
        .values(state=state, finished_at=now, summary=counts)
    )


def _applied(
    upload: Upload,
    outcome: Outcome,
    in_review: bool,
    reprice: bool,
) -> Applied:
    """Return the results of the upload's pricing. If a pricing run follows (`reprice`), that run
    queues or withdraws the agent's task.
    """
    changed = bool(outcome.report["changed"])
    return Applied(
        outcome.fingerprint,
        completed=not in_review and not reprice,
        pushes=changed and not reprice,
        withdraws=outcome.fingerprint == NOTHING and not reprice,
        cycle=upload.sync_cycle_id,
        limited=outcome.limited,
        lines=outcome.lines,
        sold=outcome.sold,
        reviews=outcome.reviews,
        confirmed=outcome.confirmed,
        followed=reprice,
    )


async def settle_and_release(work: Work, lease: Lease) -> None:
    """Store the export's fingerprint if a failed or cancelled import changed the export, then
    release the lease. Raises LeaseLost.
    """
    try:
        async with work.database.tenant(lease.seller_id) as session:
            own = await own_state(session, lease)
            now = clock.now()
            await hold_lease(session, lease, now)
            if own.export_fingerprint is None:
                await ended(session, own, Applied(), now)
            await sync_state.release_lease(session, lease)
    except CancelRequested:
        await sync_cancel.end_held(work, lease)


COUNTS = (
    "rows",
    "applied",
    "rejected_count",
    "matched",
    "provisional",
    "ambiguous",
    "gone",
    "priced",
    "changed",
)


async def _settled(
    session: AsyncSession,
    upload: Upload,
    state: State,
    now: datetime,
) -> Upload:
    statement = select(Upload).where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
    row = (await session.execute(statement.execution_options(populate_existing=True))).scalar_one()
    row.state = state
    row.finished_at = now
    return row


async def _supersede_reviews(session: AsyncSession, upload: Upload) -> None:
    """Discard earlier uploads that need review or were just confirmed, because a newer upload was
    imported.
    """
    ids = {
        "now": clock.now(),
        "seller": upload.seller_id,
        "id": upload.id,
    }
    await session.execute(
        text(queries_of(__package__)["discard_older"]),
        ids,
    )


async def _keep_names(
    session: AsyncSession,
    upload: Upload,
    verdict: Verdict,
    outcome: Outcome,
) -> None:
    """Store the product lines and sets that the upload contains."""
    if verdict.believable:
        await _snapshot_lines(session, upload, outcome.lines)
    if outcome.new_lines:
        await _enable_lines(session, upload.seller_id, outcome.new_lines)
    await _keep_sets(session, upload.seller_id, outcome.sets)


async def _snapshot_lines(session: AsyncSession, upload: Upload, lines: list[str]) -> None:
    await session.execute(
        text("""
            INSERT INTO line_snapshot (seller_id, product_line, upload_id, observed_at)
            SELECT :seller, line, :upload, :observed_at FROM unnest(CAST(:lines AS text[])) line
            ON CONFLICT (seller_id, product_line) DO UPDATE
               SET upload_id = excluded.upload_id, observed_at = excluded.observed_at
        """),
        {
            "seller": upload.seller_id,
            "upload": upload.id,
            "observed_at": upload.exported_at,
            "lines": lines,
        },
    )


async def _keep_sets(session: AsyncSession, seller_id: int, sets: list[str]) -> None:
    """Store the names of the sets in stock, for the completion of searches."""
    await run(session, _SETS, {"seller": seller_id, "sets": sets})


_SETS = """
    INSERT INTO seller_set (seller_id, set_name)
    SELECT :seller, named FROM unnest(CAST(:sets AS text[])) AS named
    ON CONFLICT (seller_id, set_name) DO NOTHING
"""


async def _enable_lines(session: AsyncSession, seller_id: int, lines: list[str]) -> None:
    """Add unknown product lines to the account. Only the operator's setting ALLOW_UNKNOWN_LINES
    allows such lines.
    """
    account = await session.get_one(Account, seller_id, with_for_update=True)
    new = [line for line in lines if line not in account.disabled_lines]
    account.product_lines = list(dict.fromkeys([*account.product_lines, *new]))


def _note(
    session: AsyncSession,
    upload: Upload,
    report: dict[str, object],
    now: datetime,
) -> None:
    summary = (
        f"upload {upload.id}: {report['applied']} cards, {report['changed']} new prices,"
        f" {report['gone']} sold out"
    )
    note_by(session, upload.seller_id, "sync", "inventory.imported", summary, now)


async def fail(
    work: Work,
    lease: Lease,
    upload: Upload,
    code: str,
    message: str,
) -> None:
    """Mark an upload as failed; its committed slabs remain."""
    now = clock.now()
    async with work.database.tenant(upload.seller_id) as session:
        own = await own_state(session, lease)
        known = await session.scalar(
            select(Upload.state).where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
        )
        if known != "processing":
            # The failure happened after the upload's last commit, so its stored end is correct.
            await sync_state.release_lease(session, lease)
            return
        row = await _settled(session, upload, "failed", now)
        row.error_code = code
        row.error_message = message
        await session.execute(
            update(PriceRun)
            .where(PriceRun.seller_id == upload.seller_id, PriceRun.upload_id == upload.id)
            .values(state="failed", finished_at=now)
        )
        if own.review_upload_id == upload.id:
            own.review_upload_id = None
        await ended(session, own, Applied(), now)
        if own.cancel_requested_at is not None:
            await session.flush()
            await sync_cancel.end(session, own, now)
        else:
            await sync_state.upload_finished(session, upload.seller_id, "failed", now)
            await sync_state.release_lease(session, lease)
    _count(upload, "failed", now)


def _count(upload: Upload, state: str, now: datetime) -> None:
    UPLOADS.labels(state).inc()
    UPLOAD_SECONDS.observe((now - upload.received_at).total_seconds())
