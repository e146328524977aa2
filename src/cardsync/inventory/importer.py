"""Importing one upload: its bytes in, cards, history, targets and price changes out, in slabs under the seller's lease.

read → parse → identify (SKU, else catalog) → judge (short inventory) → price → diff → write → finish. Nothing is remembered between
runs but what stands in the database, so a run that was killed is simply run again.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl
import structlog
from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import bodies, clock, errors, limits, observe
from cardsync.accounts.entitlements import entitlements
from cardsync.accounts.models import Account
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.db import integer_columns
from cardsync.inventory import diff, history, slabs
from cardsync.inventory.diff import Changes, current_price
from cardsync.inventory.identify import identify
from cardsync.inventory.models import Activity, Upload
from cardsync.inventory.parse import Parsed, ProductLines, parse
from cardsync.jobs import Work
from cardsync.pricing import engine, store
from cardsync.pricing.export import fingerprint, fingerprint_of
from cardsync.pricing.models import PriceRun
from cardsync.storage import ObjectMissing
from cardsync.sync import state as sync_state
from cardsync.sync.models import SyncState
from cardsync.sync.state import Lease, LeaseLost, hold_lease

log = structlog.get_logger(__name__)

CARD_ID_BLOCK = 1000

# A stored card in integers: matches by their first letter, product lines by their place in the account's, prices in ten-thousandths.
STORED_SQL = {
    **{name: name for name in ("id", "marketplace_id", "listing_id", "product_id", "identity_hash", "values_hash")},
    "match": "ascii(match)",
    "product_line": "coalesce(array_position(CAST(%(lines)s AS text[]), product_line), 0)",
    "gone": "gone::integer",
    **{name: f"coalesce(({name} * 10000)::bigint, -1)" for name in ("price", "target_price")},
}
MATCHES = {ord(name[0]): name for name in ("matched", "provisional", "ambiguous")}


@dataclass(frozen=True)
class Verdict:
    """What was decided about an upload before its first row was written."""

    run_id: int
    short: list[str]
    breaker: bool
    absent: int
    sold_out: int
    confirmed: bool

    @property
    def gone(self) -> int:
        """Cards that this upload makes gone: sold out, and absent where the file is believed."""
        return self.sold_out + (self.absent if self.believable else 0)

    @property
    def review(self) -> list[str]:
        """Why nothing is repriced until the seller says so; empty when all is believable."""
        if self.confirmed:
            return []
        return [*(f"short_inventory:{line}" for line in self.short), *(["large_moves"] if self.breaker else [])]

    @property
    def believable(self) -> bool:
        return self.confirmed or not self.short


async def import_upload(work: Work, lease: Lease, upload: Upload) -> None:
    """Raises Problem for a file that can't be read, LeaseLost and CancelRequested at slab boundaries."""
    async with work.database.tenant(upload.seller_id) as session:
        account = (await session.execute(select(Account).where(Account.seller_id == upload.seller_id))).scalar_one()
        rules = await store.rules_of(session, upload.seller_id)
    # PostgreSQL reads the stored cards on one core while the file is inflated and parsed on the other.
    reading = asyncio.create_task(read_stored(work, upload.seller_id, account.product_lines))
    try:
        parsed = await read_file(work, upload, account)
    finally:
        stored = await reading
    rows = await identify(work.database, upload.seller_id, parsed.frame, stored)
    absent = diff.absent_cards(rows, parsed.rejected_ids, stored, upload.product_line)
    priced = await asyncio.to_thread(
        price_rows, rows, account, rules, upload.exported_at, upload.begun_at or upload.received_at
    )
    verdict = await judge(work, lease, upload, account, rows, absent, stored, priced)
    blocked = {code: n for code, n in engine.summary(priced).blocked.items() if n}
    rows = await asyncio.to_thread(with_targets, rows, priced, hold=bool(verdict.review))
    del priced
    changes = await asyncio.to_thread(diff.changes, rows, hold=bool(verdict.review))
    changes = await number_cards(work, upload.seller_id, changes)
    if not verdict.believable:
        absent = absent.clear()
    plan = slabs.plan(changes, absent, work.settings.slab_rows)
    total = changes.total + absent.height
    kept_since = await history.prepare(work, upload.seller_id, upload.exported_at)
    writer = slabs.Writer(work.database, lease, verdict.run_id, upload.exported_at, kept_since, total)
    # What is told of the upload is put together while PostgreSQL writes.
    telling = asyncio.create_task(asyncio.to_thread(outcome_of, parsed, rows, stored, absent, blocked, verdict))
    del parsed, stored, rows, changes
    try:
        await slabs.write(writer, plan)
    finally:
        outcome = await telling
    await finish(work, lease, upload, verdict, outcome)


async def read_stored(work: Work, seller_id: int, lines: list[str]) -> pl.DataFrame:
    """`diff.STORED` of every card of the seller; a product line that the account has no more is null."""
    async with work.database.tenant(seller_id) as session:
        source = "card WHERE seller_id = %(seller)s"
        read = await integer_columns(session, STORED_SQL, source, {"seller": seller_id, "lines": lines})
    return await asyncio.to_thread(_stored, read, lines)


def _stored(read: pl.DataFrame, lines: list[str]) -> pl.DataFrame:
    return read.with_columns(
        pl.col("match").replace_strict(MATCHES, return_dtype=pl.String),
        pl.col("product_line").replace_strict(dict(enumerate(lines, 1)), default=None, return_dtype=pl.String),
        pl.col("gone").cast(pl.Boolean),
        *(pl.when(pl.col(name) >= 0).then(name).alias(name) for name in ("price", "target_price")),
    )


async def read_file(work: Work, upload: Upload, account: Account) -> Parsed:
    """Inflate and parse. Raises Problem when the file is missing or can't be read."""
    try:
        data = await work.store.read(upload.storage_key)
    except ObjectMissing:
        raise errors.CsvProcessingFailed("the uploaded file is no longer in the object store") from None
    lines = ProductLines(NAME_BY_LABEL, tuple(account.product_lines), work.settings.allow_unknown_lines)
    return await asyncio.to_thread(_parse, data, lines, upload.product_line)


def _parse(data: bytes, lines: ProductLines, product_line: str | None) -> Parsed:
    if bodies.is_gzip(data):
        try:
            data = bodies.inflate(data, limits.BODY_INFLATED_BYTES)
        except bodies.BadGzip as e:
            raise errors.InvalidCsv(f"the file is damaged gzip: {e}") from e
    return parse(data, lines, product_line)


def price_rows(
    rows: pl.DataFrame, account: Account, rules: list[Any], observed_at: datetime, now: datetime
) -> pl.DataFrame:
    """The engine over the identified rows. `now` is when the upload was begun, so that a run that starts again prices the same."""
    cards = rows.select(
        "marketplace_id", "condition", "printing", "language", "quantity", "custom",
        "market", "low", "low_with_shipping", "direct_low",
        current_price=current_price(rows), observed_at=pl.lit(observed_at),
    )  # fmt: skip
    return engine.price(cards, rules, store.seller_pricing(account), now)


def with_targets(rows: pl.DataFrame, priced: pl.DataFrame, *, hold: bool) -> pl.DataFrame:
    """Targets beside their rows. While the seller has to look first, a card keeps its target only if its price stayed too."""
    if hold:
        kept = pl.when(pl.col("price").eq_missing(pl.col("price_old"))).then("target_price_old")
        return rows.with_columns(target_price=kept, rule_id=pl.lit(None, pl.Int64))
    return rows.with_columns(target_price=priced["target"], rule_id=priced["rule_id"])


async def judge(
    work: Work,
    lease: Lease,
    upload: Upload,
    account: Account,
    rows: pl.DataFrame,
    absent: pl.DataFrame,
    stored: pl.DataFrame,
    priced: pl.DataFrame,
) -> Verdict:
    """Decide once whether the upload is believed and keep it: rows written by a first attempt must not change the answer."""
    kept = upload.verdict or {}
    allowed = entitlements(
        account.plan, account.trial_ends_at, account.sync_mode, upload_approved=False, now=upload.received_at
    )
    short = kept["short"] if kept else diff.short_lines(absent, stored)
    tripped = kept["breaker"] if kept else allowed.sync_mode == "full" and engine.breaker(priced)
    gone = kept.get("absent", absent.height)
    sold_out = kept.get("sold_out", rows.select((pl.col("gone") & (~pl.col("gone_old"))).sum()).item())
    async with work.database.tenant(upload.seller_id) as session:
        run_id = await _run_of(session, upload)
        verdict = {"short": short, "breaker": tripped, "absent": gone, "sold_out": sold_out}
        await session.execute(
            update(Upload).where(Upload.seller_id == upload.seller_id, Upload.id == upload.id).values(verdict=verdict)
        )
        await hold_lease(session, lease, clock.now())
    return Verdict(run_id, short, tripped, gone, sold_out, upload.confirmed)


async def _run_of(session: AsyncSession, upload: Upload) -> int:
    known = await session.scalar(
        select(PriceRun.id).where(PriceRun.seller_id == upload.seller_id, PriceRun.upload_id == upload.id)
    )
    if known is not None:
        return known
    run = PriceRun(seller_id=upload.seller_id, trigger="sync", upload_id=upload.id, started_at=clock.now())
    session.add(run)
    await session.flush()
    return run.id


async def number_cards(work: Work, seller_id: int, changes: Changes) -> Changes:
    """Give new cards their ids, in blocks from one sequence: unique over all sellers, one round trip for all of them."""
    count = changes.insert_at.len()
    if not count:
        return changes
    async with work.database.tenant(seller_id) as session:
        blocks = (
            await session.scalars(
                text("SELECT nextval('card_id_block') FROM generate_series(1, :n)"),
                {"n": -(-count // CARD_ID_BLOCK)},
            )
        ).all()
    firsts = pl.DataFrame({"first": blocks}, schema={"first": pl.Int64}).select(pl.col("first") * CARD_ID_BLOCK)
    ids = firsts.select(pl.int_ranges("first", pl.col("first") + CARD_ID_BLOCK).explode()).to_series().head(count)
    return replace(changes, rows=changes.rows.with_columns(changes.rows["id"].scatter(changes.insert_at, ids)))


def notes_on(rows: pl.DataFrame) -> pl.DataFrame:
    """What is told of rows that were kept: conditions that can't be read, ids that a custom listing shares with another card."""
    shared = pl.col("custom") & pl.col("listing_id").is_duplicated()
    column = pl.when(shared).then(pl.lit("TCGplayer Id")).otherwise(pl.lit("Condition"))
    code = pl.when(shared).then(pl.lit("shared_id")).otherwise(pl.lit("unreadable_condition"))
    message = (
        pl.when(shared)
        .then(pl.format("TCGplayer Id {} is shared by several listings: their prices are not exported", "listing_id"))
        .otherwise(pl.format("Condition '{}' is not known", pl.col("condition_label").str.slice(0, 60)))
    )
    told = rows.select("line", "custom", "listing_id", "condition", "condition_label").filter(
        shared | pl.col("condition").is_null()
    )
    return told.select("line", column=column, code=code, message=message).sort("line")


def report_of(parsed: Parsed, rows: pl.DataFrame, blocked: dict[str, int], verdict: Verdict) -> dict[str, Any]:
    """The upload's report as GET /uploads/{id} shows it."""
    notes = notes_on(rows)
    matches = dict(rows["match"].value_counts().iter_rows())
    asks = pl.col("target_price").is_not_null() & pl.col("target_price").ne_missing(pl.col("price")) & ~pl.col("gone")
    return {
        "rows": parsed.rows,
        "applied": rows.height,
        "skipped": parsed.rejected_count,
        "duplicates": parsed.duplicates,
        "rejected_count": parsed.rejected_count,
        "rejected": [asdict(row) for row in parsed.rejected],
        "noted_count": parsed.noted_count + notes.height,
        "noted": [asdict(row) for row in parsed.noted]
        + notes.head(limits.REJECTED_LISTED - len(parsed.noted)).to_dicts(),
        "matched": matches.get("matched", 0),
        "provisional": matches.get("provisional", 0),
        "ambiguous": matches.get("ambiguous", 0),
        "gone": verdict.gone,
        "priced": 0 if verdict.review else rows.select(pl.col("target_price").is_not_null().sum()).item(),
        "changed": 0 if verdict.review else rows.select(asks.sum()).item(),
        "blocked": blocked,
        "review": verdict.review,
    }


@dataclass(frozen=True)
class Outcome:
    """What the last transaction keeps of a run: the report, what the export holds from now on, the lines seen and those new to the account."""

    report: dict[str, Any]
    fingerprint: str
    lines: list[str]
    new_lines: list[str]


def outcome_of(
    parsed: Parsed,
    rows: pl.DataFrame,
    stored: pl.DataFrame,
    absent: pl.DataFrame,
    blocked: dict[str, int],
    verdict: Verdict,
) -> Outcome:
    asked = diff.exported(rows, stored, absent).with_columns(slabs.decimal_text("target_price"))
    return Outcome(
        report_of(parsed, rows, blocked, verdict),
        fingerprint_of(asked.write_csv(include_header=False).encode()),
        rows["product_line"].unique().to_list(),
        list(parsed.new_lines),
    )


async def finish(work: Work, lease: Lease, upload: Upload, verdict: Verdict, outcome: Outcome) -> None:
    """The last transaction of the upload: report, run, fingerprint, lock and lease together."""
    now, report = clock.now(), outcome.report
    in_review = bool(verdict.review)
    async with work.database.tenant(upload.seller_id) as session:
        state = await _own_state(session, lease)
        row = await _settled(session, upload, "awaiting_review" if in_review else "done", now)
        row.report = report
        await session.execute(
            update(PriceRun)
            .where(PriceRun.seller_id == upload.seller_id, PriceRun.id == verdict.run_id)
            .values(
                state="awaiting_review" if in_review else "completed",
                finished_at=now,
                summary={name: report[name] for name in ("priced", "changed", "blocked")},
            )
        )
        await _supersede_reviews(session, upload)
        state.review_upload_id = upload.id if in_review else None
        state.export_fingerprint = outcome.fingerprint
        if verdict.believable:
            await _snapshot_lines(session, upload, outcome.lines)
        if outcome.new_lines:
            await _enable_lines(session, upload.seller_id, outcome.new_lines)
        _note(session, upload, report, now)
        await sync_state.upload_finished(session, upload.seller_id, "in_review" if in_review else "completed", now)
        await hold_lease(session, lease, now)
        await sync_state.release_lease(session, lease)
    _count(upload, "awaiting_review" if in_review else "done", now)
    log.info("upload_imported", seller_id=upload.seller_id, upload_id=upload.id, **{k: report[k] for k in COUNTS})


async def let_go(work: Work, lease: Lease) -> None:
    """After a run that did not get to its end: the fingerprint of what the export holds now, if it was changed; then the lease."""
    async with work.database.tenant(lease.seller_id) as session:
        known = await session.scalar(select(SyncState.export_fingerprint).where(SyncState.seller_id == lease.seller_id))
        if known is None:
            hash_now = await fingerprint(session, lease.seller_id)
            await hold_lease(session, lease, clock.now())
            await session.execute(
                update(SyncState).where(SyncState.seller_id == lease.seller_id).values(export_fingerprint=hash_now)
            )
        await sync_state.release_lease(session, lease)


COUNTS = ("rows", "applied", "rejected_count", "matched", "provisional", "ambiguous", "gone", "priced", "changed")


async def _own_state(session: AsyncSession, lease: Lease) -> SyncState:
    """The seller's state row, locked before the upload's as confirm and discard do. Raises LeaseLost when it isn't ours any more."""
    state = await sync_state.locked(session, lease.seller_id)
    if state.lease_token != lease.token:
        raise LeaseLost
    return state


async def _settled(session: AsyncSession, upload: Upload, state: str, now: datetime) -> Upload:
    statement = select(Upload).where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
    row = (await session.execute(statement.execution_options(populate_existing=True))).scalar_one()
    row.state, row.finished_at = state, now
    return row


async def _supersede_reviews(session: AsyncSession, upload: Upload) -> None:
    """A newer upload was worked off: what waited before it, for the seller's word or confirmed just now, is discarded."""
    ids = {"now": clock.now(), "seller": upload.seller_id, "id": upload.id}
    await session.execute(
        text("""
            WITH older AS (
                SELECT id, state FROM upload
                 WHERE seller_id = :seller AND id < :id AND stream = 'inventory'
                   AND (state = 'awaiting_review' OR (state = 'queued' AND confirmed))
            ), counted AS (
                UPDATE sync_state SET uploads_open = greatest(uploads_open - (SELECT count(*) FROM older WHERE state = 'queued'), 0)
                 WHERE seller_id = :seller
            ), runs AS (
                UPDATE price_run SET state = 'discarded', finished_at = :now
                 WHERE seller_id = :seller AND upload_id IN (SELECT id FROM older)
            )
            UPDATE upload SET state = 'discarded', finished_at = :now WHERE seller_id = :seller AND id IN (SELECT id FROM older)
        """),
        ids,
    )


async def _snapshot_lines(session: AsyncSession, upload: Upload, lines: list[str]) -> None:
    await session.execute(
        text("""
            INSERT INTO line_snapshot (seller_id, product_line, upload_id, observed_at)
            SELECT :seller, line, :upload, :observed_at FROM unnest(CAST(:lines AS text[])) line
            ON CONFLICT (seller_id, product_line) DO UPDATE
               SET upload_id = excluded.upload_id, observed_at = excluded.observed_at
        """),
        {"seller": upload.seller_id, "upload": upload.id, "observed_at": upload.exported_at, "lines": lines},
    )


async def _enable_lines(session: AsyncSession, seller_id: int, lines: list[str]) -> None:
    """Lines that the operator lets an account take up by uploading them (ALLOW_UNKNOWN_LINES)."""
    account = await session.get_one(Account, seller_id, with_for_update=True)
    account.product_lines = list(dict.fromkeys([*account.product_lines, *lines]))


def _note(session: AsyncSession, upload: Upload, report: dict[str, Any], now: datetime) -> None:
    summary = f"upload {upload.id}: {report['applied']} cards, {report['changed']} price changes, {report['gone']} gone"
    session.add(
        Activity(seller_id=upload.seller_id, actor="sync", action="inventory.imported", summary=summary, created_at=now)
    )


async def fail(work: Work, lease: Lease, upload: Upload, code: str, message: str) -> None:
    await _end(work, lease, upload, "failed", code, message)


async def cancel(work: Work, lease: Lease, upload: Upload) -> None:
    await _end(work, lease, upload, "cancelled", None, None)


async def _end(work: Work, lease: Lease, upload: Upload, state: str, code: str | None, message: str | None) -> None:
    """Close an upload that was not imported to the end; slabs already committed stay."""
    now = clock.now()
    async with work.database.tenant(upload.seller_id) as session:
        own = await _own_state(session, lease)
        known = await session.scalar(
            select(Upload.state).where(Upload.seller_id == upload.seller_id, Upload.id == upload.id)
        )
        if known != "processing":
            # What went wrong came after the upload's last commit: it stays as it ended.
            await sync_state.release_lease(session, lease)
            return
        row = await _settled(session, upload, state, now)
        row.error_code, row.error_message = code, message
        await session.execute(
            update(PriceRun)
            .where(PriceRun.seller_id == upload.seller_id, PriceRun.upload_id == upload.id)
            .values(state=state, finished_at=now)
        )
        if own.review_upload_id == upload.id:
            own.review_upload_id = None
        own.export_fingerprint = await fingerprint(session, upload.seller_id)
        await sync_state.upload_finished(session, upload.seller_id, state, now)
        await sync_state.release_lease(session, lease)
    _count(upload, state, now)


def _count(upload: Upload, state: str, now: datetime) -> None:
    observe.UPLOADS.labels(state).inc()
    observe.UPLOAD_SECONDS.observe((now - upload.received_at).total_seconds())
