"""Importing one upload: its bytes in, cards, history, targets and price changes out, in slabs
under the seller's lease.

read → parse → identify (SKU, else catalog) → judge (short inventory) → price → diff → write →
finish. What product a new card is, is found while others are written. Nothing is remembered
between runs but what stands in the database, so a run that was killed is simply run again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any

import polars as pl
from sqlalchemy import select, text

from cardsync import errors, limits
from cardsync.access.models import Account
from cardsync.cards import history, write
from cardsync.cards.changes import Changes
from cardsync.cards.exported import fingerprint_of
from cardsync.cards.models import CARD_ID_BLOCK
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.database.session import integer_columns
from cardsync.inventory import diff
from cardsync.inventory.diff import current_price
from cardsync.inventory.finish import Outcome, finish
from cardsync.inventory.identify import identify
from cardsync.inventory.judge import Verdict, judge
from cardsync.inventory.new_products import NewProducts
from cardsync.inventory.parse import Parsed, ProductLines, parse
from cardsync.pricing.engine import breaker, engine
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.export import on_sale
from cardsync.pricing.receipts.archive import keep
from cardsync.pricing.receipts.columns import filled
from cardsync.pricing.rules import rows as store
from cardsync.pricing.runs.price_history import Past, past_of
from cardsync.seller_state.lease import boundary
from cardsync.seller_state.state import Lease
from cardsync.storage import ObjectMissing, Store
from cardsync.web import bodies
from cardsync.work.jobs import Work
from cardsync.work.uploads import Upload

# A stored card in integers: prices in ten-thousandths, and in one, because each takes as long,
# what is told by a letter, a place or a bit: a match by its first letter, the product line by its
# place in the account's, whether it is gone.
STORED_SQL = {
    **{
        name: name
        for name in (
            "id",
            "marketplace_id",
            "listing_id",
            "product_id",
            "identity_hash",
            "values_hash",
        )
    },
    "kind": "coalesce(array_position((SELECT product_lines FROM account a WHERE a.seller_id = {seller_id}), product_line), 0) * 256"
    " + ascii(match) * 2 + gone::integer",
    **{name: f"coalesce(({name} * 10000)::bigint, -1)" for name in ("price", "target_price")},
}
MATCHES = {ord(name[0]): name for name in ("matched", "provisional", "ambiguous")}


async def import_upload(work: Work, lease: Lease, upload: Upload) -> None:
    """Raises Problem for a file that can't be read, LeaseLost and CancelRequested at slab
    boundaries.
    """
    async with work.database.tenant(upload.seller_id) as session:
        account = (
            await session.execute(select(Account).where(Account.seller_id == upload.seller_id))
        ).scalar_one()
        run = await store.run_of(session, account, upload.begun_at or upload.received_at)
        pins = await store.pins_of(session, upload.seller_id)
    # PostgreSQL reads the stored cards on one core while the file is inflated and parsed on the
    # other.
    reading = asyncio.create_task(read_known(work, account, run))
    try:
        parsed = await read_file(work, upload, account)
    finally:
        stored, past = await reading
    await boundary(work.database, lease)
    async with NewProducts(work.database, parsed.frame, stored) as new:
        rows = await identify(work.database, upload.seller_id, parsed.frame, stored)
        await boundary(work.database, lease)
        absent = diff.absent_cards(
            rows, parsed.rejected_ids, parsed.unnamed, stored, upload.product_line
        )
        if why := diff.why_kept(absent, parsed.unnamed):
            parsed.note("cards_kept", why)
        # Queries ask for what stands in the database: such rules price the cards once they are
        # written (`pricing.reprice`).
        later = run.queried
        priced = await asyncio.to_thread(
            price_rows,
            rows,
            past,
            pins,
            replace(run, rules=[], sales=[]) if later else run,
            upload.exported_at,
        )
        verdict = await judge(work, lease, upload, account, rows, absent, stored, priced)
        blocked = (
            {} if later else {code: n for code, n in engine.summary(priced).blocked.items() if n}
        )
        hold = later or bool(verdict.review)
        rows = await asyncio.to_thread(with_targets, rows, priced, hold=hold)
        # What the run left empty goes at once: the rest is held until it is kept.
        receipts = filled(priced) if account.attribution_logging and not hold else None
        held = engine.held(priced)
        confirmed = breaker.leaps(priced) if verdict.settles_leaps else None
        sold = None if hold else on_sale.on_sale(priced)
        del priced
        changes = await asyncio.to_thread(diff.changes, rows, hold=hold)
        changes = await number_cards(work, upload.seller_id, changes)
        absent = absent.filter(pl.col("gone") & verdict.believable)
        plan = deque(new.found_for(write.plan(changes, work.settings.slab_rows)))
        gone = write.tombstones(absent, work.settings.slab_rows)
        total = changes.total + absent.height
        kept_since = await history.prepare(work, upload.seller_id, upload.exported_at)
        writer = write.Writer(
            work.database, lease, verdict.run_id, upload.exported_at, kept_since, total
        )
        # What is told of the upload is put together while PostgreSQL writes, and then its
        # receipts: not both at once, they are large.
        telling = partial(outcome_of, parsed, rows, stored, absent, blocked, verdict)
        told = asyncio.create_task(
            _told_and_kept(telling, new, work.store, writer, receipts, held, confirmed, sold, run)
        )
        del parsed, stored, rows, changes, receipts, telling
        try:
            if sold is not None:
                await on_sale.note(work.database, lease, sold, work.settings.slab_rows)
            await write.write(writer, plan)
        finally:
            outcome = await told
        await finish(writer, upload, verdict, outcome, gone, reprice=later and not verdict.review)


async def _told_and_kept(
    telling: Callable[[], Outcome],
    new: NewProducts,
    store: Store,
    writer: write.Writer,
    receipts: pl.DataFrame | None,
    held: list[int],
    confirmed: pl.DataFrame | None,
    sold: on_sale.OnSale | None,
    run: Run,
) -> Outcome:
    # The writers wait for the first matches, and matching takes memory as well.
    matches = await new.matches()
    outcome = replace(await asyncio.to_thread(telling), held=held, confirmed=confirmed, sold=sold)
    del telling
    for match, count in matches.items():
        outcome.report[match] += count
    if receipts is None:
        return outcome
    return replace(
        outcome, receipts=await keep(store, writer.seller_id, writer.run_id, receipts, run)
    )


async def read_known(work: Work, account: Account, run: Run) -> tuple[pl.DataFrame, Past]:
    """The stored cards, and what the run wants to know of their past."""
    stored = await read_stored(work, account.seller_id)
    async with work.database.tenant(account.seller_id) as session:
        return stored, await past_of(session, account.seller_id, run, account.time_zone)


async def read_stored(work: Work, seller_id: int) -> pl.DataFrame:
    """`diff.STORED` of every card of the seller that files speak of; a product line that the
    account has no more is null.
    """
    columns = {name: sql.format(seller_id=int(seller_id)) for name, sql in STORED_SQL.items()}
    source = f"card WHERE seller_id = {int(seller_id)} AND contribution IS NULL"
    async with work.database.tenant(seller_id, snapshot=True) as session:
        lines = await session.scalar(
            select(Account.product_lines).where(Account.seller_id == seller_id)
        )
        read = await integer_columns(session, columns, source, "id")
    return await asyncio.to_thread(_stored, read, lines or [])


def _stored(read: dict[str, Any], lines: list[str]) -> pl.DataFrame:
    kind = pl.col("kind")
    return (
        pl.DataFrame(read, schema=dict.fromkeys(read, pl.Int64))
        .with_columns(
            *(
                pl.when(pl.col(name) >= 0).then(name).alias(name)
                for name in ("price", "target_price")
            ),
            match=(kind // 2 % 128).replace_strict(MATCHES, return_dtype=pl.String),
            product_line=(kind // 256).replace_strict(
                dict(enumerate(lines, 1)), default=None, return_dtype=pl.String
            ),
            gone=kind % 2 == 1,
        )
        .select(*diff.STORED)
    )


async def read_file(work: Work, upload: Upload, account: Account) -> Parsed:
    """Inflate and parse. Raises Problem when the file is missing or can't be read."""
    try:
        data = await work.store.read(upload.storage_key)
    except ObjectMissing:
        raise errors.CsvProcessingFailed(
            "the uploaded file is no longer in the object store"
        ) from None
    lines = ProductLines(
        NAME_BY_LABEL,
        tuple(account.product_lines),
        work.settings.allow_unknown_lines,
        tuple(account.disabled_lines),
    )
    return await asyncio.to_thread(_parse, data, lines, upload.product_line)


def _parse(data: bytes, lines: ProductLines, product_line: str | None) -> Parsed:
    try:
        return parse(bodies.pieces(data, limits.BODY_INFLATED_BYTES), lines, product_line)
    except bodies.BadGzip as e:
        raise errors.InvalidCsv(f"the file is damaged gzip: {e}") from e


def price_rows(
    rows: pl.DataFrame, past: Past, pins: dict[int, int], run: Run, observed_at: datetime
) -> pl.DataFrame:
    """The engine over the identified rows.

    The run's moment is when the upload was begun, so that one that starts again prices the same.
    """
    cards = rows.select(
        "marketplace_id", "condition", "printing", "language", "quantity", "custom",
        "market", "low", "low_with_shipping", "direct_low",
        current_price=current_price(rows), observed_at=pl.lit(observed_at),
    )  # fmt: skip
    cards = cards.with_columns(**past.columns(rows, observed_at))
    if pins:
        cards = cards.with_columns(
            pin=pl.col("marketplace_id").replace_strict(pins, default=None, return_dtype=pl.Int64)
        )
    return engine.price(cards, run.rules, run.seller, run.now, run.sales)


def with_targets(rows: pl.DataFrame, priced: pl.DataFrame, *, hold: bool) -> pl.DataFrame:
    """Targets beside their rows.

    While the seller has to look first, a card keeps its target only if its price stayed too.
    """
    if hold:
        kept = pl.when(pl.col("price").eq_missing(pl.col("price_old"))).then("target_price_old")
        return rows.with_columns(target_price=kept, rule_id=pl.lit(None, pl.Int64))
    return rows.with_columns(target_price=priced["target"], rule_id=priced["rule_id"])


async def number_cards(work: Work, seller_id: int, changes: Changes) -> Changes:
    """Give new cards their ids, in blocks from one sequence: unique over all sellers, one round
    trip for all of them.
    """
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
    firsts = pl.DataFrame({"first": blocks}, schema={"first": pl.Int64}).select(
        pl.col("first") * CARD_ID_BLOCK
    )
    ids = (
        firsts.select(pl.int_ranges("first", pl.col("first") + CARD_ID_BLOCK).explode())
        .to_series()
        .head(count)
    )
    return replace(
        changes, rows=changes.rows.with_columns(changes.rows["id"].scatter(changes.insert_at, ids))
    )


def notes_on(rows: pl.DataFrame) -> pl.DataFrame:
    """What is told of rows that were kept: conditions that can't be read, ids that a custom
    listing shares with another card.
    """
    shared = pl.col("custom") & pl.col("listing_id").is_duplicated()
    column = pl.when(shared).then(pl.lit("TCGplayer Id")).otherwise(pl.lit("Condition"))
    code = pl.when(shared).then(pl.lit("shared_id")).otherwise(pl.lit("unreadable_condition"))
    message = (
        pl.when(shared)
        .then(
            pl.format(
                "TCGplayer Id {} is shared by several listings: their prices are not exported",
                "listing_id",
            )
        )
        .otherwise(
            pl.format("Condition '{}' is not known", pl.col("condition_label").str.slice(0, 60))
        )
    )
    told = rows.select("line", "custom", "listing_id", "condition", "condition_label").filter(
        shared | pl.col("condition").is_null()
    )
    return told.select("line", column=column, code=code, message=message).sort("line")


def report_of(
    parsed: Parsed, rows: pl.DataFrame, blocked: dict[str, int], verdict: Verdict
) -> dict[str, Any]:
    """The upload's report as GET /uploads/{id} shows it, but for the matches of new cards."""
    notes = notes_on(rows)
    matches = dict(rows["match"].drop_nulls().value_counts().iter_rows())
    asks = (
        pl.col("target_price").is_not_null()
        & pl.col("target_price").ne_missing(pl.col("price"))
        & ~pl.col("gone")
    )
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
        "priced": 0
        if verdict.review
        else rows.select(pl.col("target_price").is_not_null().sum()).item(),
        "changed": 0 if verdict.review else rows.select(asks.sum()).item(),
        "blocked": blocked,
        "review": verdict.review,
    }


def outcome_of(
    parsed: Parsed,
    rows: pl.DataFrame,
    stored: pl.DataFrame,
    absent: pl.DataFrame,
    blocked: dict[str, int],
    verdict: Verdict,
) -> Outcome:
    asked = diff.exported(rows, stored, absent).with_columns(write.decimal("target_price"))
    return Outcome(
        report_of(parsed, rows, blocked, verdict),
        fingerprint_of(asked.write_csv(include_header=False).encode()),
        rows["product_line"].unique().to_list(),
        list(parsed.new_lines),
    )
