"""Imports one upload: writes cards, history, targets and price changes in slabs, which are
transactions of some thousand rows, while it holds the seller's lease for price changes.

The steps are: parse → identify (by SKU, else by catalog) → price → judge (short inventory) → diff →
write → finish. All state between runs is in the database, so a killed import simply runs again.

Three steps run concurrently with others, by `at_once` or tasks of `NewProducts`: stored cards are
read while the file is parsed, the products of new cards are found while other cards are written,
and the outcome is computed while PostgreSQL writes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import polars as pl
from sqlalchemy import select, text

from cardsync.access.models import Account
from cardsync.agents.seller_state.lease import boundary
from cardsync.agents.seller_state.state import Lease
from cardsync.catalog.product_lines import NAME_BY_LABEL
from cardsync.imports import diff
from cardsync.imports.errors import CsvProcessingFailed
from cardsync.imports.finish import finish
from cardsync.imports.identify import identify
from cardsync.imports.judge_upload import judge
from cardsync.imports.new_products import NewProducts
from cardsync.imports.outcome import Outcome, outcome_of
from cardsync.imports.parse import Parsed, ProductLines, parse
from cardsync.imports.price import Prices, price_rows, prices_of, with_targets
from cardsync.imports.stored_cards import read_stored
from cardsync.platform import errors, limits
from cardsync.platform.concurrency import at_once
from cardsync.platform.storage import ObjectMissing, Store
from cardsync.platform.telemetry import spans
from cardsync.platform.work.jobs import Work
from cardsync.platform.work.models import Upload
from cardsync.prices.decisions import on_sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs import rule_rows
from cardsync.prices.inputs.cards_to_price import ON_SALE
from cardsync.prices.inputs.market_inputs import market_inputs
from cardsync.prices.inputs.price_history import Past, past_of
from cardsync.prices.inputs.rules_before_keys import LONG, before_keys
from cardsync.prices.receipts.archive import keep
from cardsync.prices.standing import decided_of
from cardsync.stock.cards import history, write
from cardsync.stock.cards.changes import Changes
from cardsync.stock.cards.models import CARD_ID_BLOCK
from cardsync.web import bodies


async def import_upload(work: Work, lease: Lease, upload: Upload) -> None:
    """Import the upload. Raises Problem for a file that can't be read, LeaseLost and
    CancelRequested at slab boundaries.
    """
    account, run, decided = await read_rules(work, upload)
    parsed, (stored, past, seen) = await at_once(
        parse_file(work, upload, account),
        read_known(work, account, run),
    )
    await boundary(work.database, lease)
    async with NewProducts(work.database, parsed.frame, stored) as new:
        rows = await identify(work.database, upload.seller_id, parsed.frame, stored)
        await boundary(work.database, lease)
        absent = absent_cards(parsed, rows, stored, upload)
        with spans.part("price", rows=rows.height):
            priced = await asyncio.to_thread(
                price_rows, rows, past, seen, decided, run, upload.exported_at
            )
        verdict = await judge(work, lease, upload, account, rows, absent, stored, priced)
        prices = prices_of(priced, run, verdict, logged=account.attribution_logging)
        held_back, sold = prices.held_back, prices.sold
        rows = await asyncio.to_thread(with_targets, rows, priced, held_back=held_back)
        del priced
        with spans.part("diff"):
            changes = await asyncio.to_thread(diff.changes, rows, hold=held_back)
        changes = await number_cards(work, upload.seller_id, changes)
        absent = absent.filter(pl.col("gone") & verdict.believable)
        slabs = deque(new.found_for(write.plan(changes, work.settings.slab_rows)))
        gone = write.tombstones(absent, work.settings.slab_rows)
        kept_since = await history.prepare(work, upload.seller_id, upload.exported_at)
        total = changes.total + absent.height
        writer = write.Writer(
            work.database,
            lease,
            verdict.run_id,
            upload.exported_at,
            kept_since,
            total,
        )
        make_outcome = partial(outcome_of, parsed, rows, stored, absent, prices, verdict)
        written = write_slabs(work, writer, slabs, sold)
        outcome_task = put_together(make_outcome, new, work.store, writer, prices, run)
        # The frames are large. Without these references, they are freed when the tasks have used
        # them.
        del parsed, stored, rows, changes, prices, make_outcome
        _, outcome = await at_once(written, outcome_task)
        reprice = run.asks_database and not verdict.review
        pictures = bool(work.settings.picture_hosts)
        with spans.part("finish"):
            await finish(writer, upload, verdict, outcome, gone, reprice=reprice, pictures=pictures)


async def read_rules(work: Work, upload: Upload) -> tuple[Account, Run, pl.DataFrame]:
    """Return the account, its rules when the import began, and the seller's decisions about
    single prices.
    """
    async with work.database.tenant(upload.seller_id) as session:
        account = (
            await session.execute(select(Account).where(Account.seller_id == upload.seller_id))
        ).scalar_one()
        run = await rule_rows.run_of(session, account, upload.begun_at or upload.received_at)
        if work.settings.price_write_limits:
            before = await before_keys(session, upload.seller_id, run, LONG)
            run = replace(run, watched=before is not None)
        decided = await decided_of(
            session, upload.seller_id, run.now, reviewed=run.reviewed, costed=run.costed
        )
        return account, run, decided


async def parse_file(work: Work, upload: Upload, account: Account) -> Parsed:
    """Decompress and parse the file. Raises Problem if the file is missing or can't be read."""
    try:
        with spans.part("read file"):
            data = await work.store.read(upload.storage_key)
    except ObjectMissing:
        raise CsvProcessingFailed("the uploaded file is no longer in the object store") from None
    lines = ProductLines(
        NAME_BY_LABEL,
        tuple(account.product_lines),
        work.settings.allow_unknown_lines,
        tuple(account.disabled_lines),
    )
    with spans.part("parse"):
        return await asyncio.to_thread(_parse, data, lines, upload.product_line)


def _parse(data: bytes, lines: ProductLines, product_line: str | None) -> Parsed:
    try:
        return parse(bodies.pieces(data, limits.BODY_INFLATED_BYTES), lines, product_line)
    except bodies.BadGzip as e:
        raise errors.InvalidCsv(f"the file is damaged gzip: {e}") from e


async def read_known(
    work: Work,
    account: Account,
    run: Run,
) -> tuple[pl.DataFrame, Past, pl.DataFrame | None]:
    """Return the stored cards, the parts of their history that the pricing needs, and their market
    evidence, if any. A pricing run over the stored cards reads its own evidence.
    """
    stored, (past, seen) = await at_once(
        read_stored(work, account.seller_id), read_past(work, account, run)
    )
    return stored, past, seen


async def read_past(work: Work, account: Account, run: Run) -> tuple[Past, pl.DataFrame | None]:
    """Return the parts of the cards' history that the pricing needs, and their market evidence."""
    async with work.database.tenant(account.seller_id) as session:
        past = await past_of(session, account.seller_id, run, account.time_zone)
        if not run.reads_market or run.asks_database:
            return past, None
        seen = await market_inputs(session, account.seller_id, run.now, ON_SALE)
        return past, seen if seen.height else None


def absent_cards(
    parsed: Parsed,
    rows: pl.DataFrame,
    stored: pl.DataFrame,
    upload: Upload,
) -> pl.DataFrame:
    """Return the stored cards without a row in the file. If some of them remain in stock, add a
    note with the reason to the report.
    """
    absent = diff.absent_cards(
        rows,
        parsed.rejected_ids,
        parsed.unnamed,
        stored,
        upload.product_line,
    )
    if why := diff.why_kept(absent, parsed.unnamed):
        parsed.note("cards_kept", why)
    return absent


async def number_cards(work: Work, seller_id: int, changes: Changes) -> Changes:
    """Assign ids to new cards in one round trip. All sellers share the sequence of id blocks, so
    that ids are unique over all sellers.
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
        changes,
        rows=changes.rows.with_columns(changes.rows["id"].scatter(changes.insert_at, ids)),
    )


async def write_slabs(
    work: Work,
    writer: write.Writer,
    slabs: deque[write.Slab],
    sold: on_sale.OnSale | None,
) -> None:
    """Write which targets are prices of a promotion, and then the cards."""
    if sold is not None:
        await on_sale.note(work.database, writer.lease, sold, work.settings.slab_rows)
    await write.write(writer, slabs)


async def put_together(
    make_outcome: Callable[[], Outcome],
    new: NewProducts,
    store: Store,
    writer: write.Writer,
    prices: Prices,
    run: Run,
) -> Outcome:
    """Compute the outcome, and then write the receipts: concurrently, both would use much memory."""
    # Matching also uses much memory, and the writers wait for the first matches, so it is awaited
    # first.
    matches = await new.matches()
    outcome = await asyncio.to_thread(make_outcome)
    del make_outcome
    for match, count in matches.items():
        outcome.report[match] += count
    if prices.receipts is None:
        return outcome
    taken = [prices.receipts]
    # `taken` has the only reference to the receipts, so `keep` can free the unsorted receipts while
    # it sorts them.
    del prices
    receipts = await keep(store, writer.seller_id, writer.run_id, taken, run)
    return replace(outcome, receipts=receipts)
