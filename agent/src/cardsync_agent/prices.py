"""The steps that send prices to the marketplace: they save price files in exports/ and deliver
them.

Each file is written once, however often a step is repeated after a kill -9.
"""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from cardsync_agent import clock, durable
from cardsync_agent.card_failures import CardFailures, without_cards
from cardsync_agent.client import Client, PriceUpdates
from cardsync_agent.imported import MOST_REASON, read_prices, remember_entries, report
from cardsync_agent.imported import Refused as RefusedCards
from cardsync_agent.job import Job
from cardsync_agent.marketplace import NotTaken
from cardsync_agent.step_ends import StepFailed, StepSkipped

# The seller requested the content of these kinds of file; in read_only they are only placed.
ASKED_FOR = ("rollback", "quick_add")


def download_price_updates(job: Job) -> None:
    cycle, memory = job.cycle, job.store.memory
    content = None if cycle.export_staged else _fetch_prices(job)
    if cycle.export_name is None:
        return

    def note_staged() -> None:
        cycle.export_staged = True
        job.store.save()

    target = job.exports() / cycle.export_name
    durable.place(
        target, lambda: content or b"", staged=cycle.export_staged, note_staged=note_staged
    )
    memory.etag = cycle.etag
    text = f"saved {cycle.export_rows} price changes in {target}"
    job.say("export_saved", text, path=str(target), rows=cycle.export_rows)


def _fetch_prices(job: Job) -> bytes | None:
    """Download the prices; choose the file's name if there is anything to save."""
    cycle, memory = job.cycle, job.store.memory
    updates = job.call(
        "downloading price updates",
        lambda: job.client.price_updates(memory.etag, memory.agent_id, memory.listings),
    )
    cycle.export_name = None
    if updates is None or updates.rows == 0:
        reasons = ["not_modified"] if updates is None else [*updates.empty_reasons]
        cycle.needs_review = "awaiting_review" in reasons
        if updates is not None and not job.review:
            memory.etag = updates.etag
        job.say(
            "export_empty",
            f"no price changes ({', '.join(reasons) or 'no reason given'})",
            reasons=reasons,
        )
        return None
    sha256 = hashlib.sha256(updates.content).hexdigest()
    kind = updates.kind or _kind_of(updates)
    if updates.number is not None and updates.number == memory.listings:
        raise StepSkipped("these listings were placed before, and wait for the marketplace")
    if cycle.task is not None and kind == "price_updates" and memory.has_placed(sha256):
        # A sync or an earlier attempt of the task has delivered the same prices.
        raise StepSkipped("the same prices were placed before, and wait for the marketplace")
    durable.discard_parts(job.exports(), "price-updates-*.csv")
    cycle.export_name = _free_name(job.exports(), clock.now())
    cycle.export_rows, cycle.etag = updates.rows, None if job.review else updates.etag
    cycle.export_kind_told = updates.kind is not None
    cycle.export_kind = kind
    asked_for = cycle.export_kind in ASKED_FOR and not job.review
    if asked_for and "import_prices" not in cycle.planned:
        # A sync in the read_only mode has no step import_prices, so the step is added: the server
        # serves this file only once.
        place = cycle.planned.index("download_price_updates") + 1
        cycle.planned.insert(place, "import_prices")
    cycle.export_sha256, cycle.export_number = sha256, updates.number
    remember_entries(job.store.home, cycle.export_name, updates.entries)
    return updates.content


def _kind_of(updates: PriceUpdates) -> str:
    """Return the kind of a file if the server does not send it: only listings add a quantity."""
    rows = csv.DictReader(io.StringIO(updates.content.decode("utf-8-sig"), newline=""))
    adds = any((row.get("Add to Quantity") or "0") not in ("", "0") for row in rows)
    return "quick_add" if adds else "price_updates"


def _free_name(directory: Path, now: datetime) -> str:
    stem, number = f"price-updates-{clock.for_file_name(now)}", 1
    while (directory / (name := f"{stem}.csv" if number == 1 else f"{stem}-{number}.csv")).exists():
        number += 1
    return name


def import_prices(job: Job) -> None:
    cycle, memory = job.cycle, job.store.memory
    if cycle.export_name is None:
        raise StepSkipped("nothing to import")
    prices = job.exports() / cycle.export_name
    if job.market.has_imported(prices, staged=cycle.outbox_staged):
        _report_published(job, prices)
        _remember_placed(job)
        return
    guarded = cycle.export_kind == "quick_add" and not cycle.export_kind_told
    if guarded and memory.has_placed(cycle.export_sha256):
        raise StepSkipped("these listings were placed before, and wait for the marketplace")
    # The mode may have changed since the cycle began, and read_only must not push. A requested file
    # is delivered in either mode, if the server still serves it.
    asked_for = cycle.export_kind in ASKED_FOR
    if not asked_for:
        _need_full_mode(job)
    if not cycle.outbox_staged:
        cycle.paused_cards = _paused_of(job, prices)
        if cycle.export_rows == len(cycle.paused_cards):
            memory.listings = cycle.export_number or memory.listings
            raise StepSkipped(f"all cards of the file are paused: {_some(cycle.paused_cards)}")

    def note_staged() -> None:
        if job.market.publishes and not asked_for:
            # The mode is checked again, because a sign-in and earlier batches may have taken long.
            _need_full_mode(job)
        cycle.outbox_staged = True
        memory.listings = cycle.export_number or memory.listings
        job.store.save()

    try:
        target = job.market.import_prices(
            prices,
            lambda content: without_cards(content, cycle.paused_cards)[0],
            staged=cycle.outbox_staged,
            go_on=job.check_wanted,
            note_staged=note_staged,
        )
    except (StepFailed, StepSkipped) as ended:
        _report_unfinished(job, prices, ended)
        raise
    _report_published(job, prices)
    _remember_placed(job)
    if left := job.market.left_out(prices):
        job.note = f"{len(left)} cards are not in the marketplace's export any more: left out"
    rows = cycle.export_rows - len(cycle.paused_cards)
    if not job.market.publishes:
        job.say("prices_placed", f"placed a copy in {target}", path=str(target), rows=rows)
    if cycle.paused_cards:
        text = (
            f"{len(cycle.paused_cards)} paused cards were left out, as the marketplace refused each"
            f" three times: {_some(cycle.paused_cards)}; `cardsync-agent cards` shows the reasons"
        )
        job.say("cards_paused", text, problem=True, cards=cycle.paused_cards)
        job.note = f"{job.note}; {text}" if job.note else text


def _report_published(job: Job, prices: Path) -> None:
    """Report the prices that the adapter has published; a person who imports them reports them."""
    if job.market.publishes:
        paused = frozenset(job.cycle.paused_cards)
        left = job.market.left_out(prices)
        text = job.call(
            "reporting the prices",
            lambda: report_published(job.client, job.store.home, prices, paused, left),
        )
        job.say("prices_reported", text, path=str(prices))


def report_published(
    client: Client, home: Path, prices: Path, paused: frozenset[int], left: frozenset[int]
) -> str:
    """Report that the marketplace has the prices of a file, except paused cards and cards that the
    marketplace does not list; the server counts a repeated report once. Return the line for people.
    """
    file = read_prices(prices)
    rows = [row for row in file.rows if row["marketplace_id"] not in paused | left]
    CardFailures(home).note(prices.name, {row["marketplace_id"] for row in rows}, {})
    return report(client, replace(file, rows=rows), None, RefusedCards(), paused)


def _report_unfinished(job: Job, prices: Path, ended: StepFailed | StepSkipped) -> None:
    published = job.market.published(prices)
    work = partial(
        report_unfinished, job.client, job.store.home, prices, published, ended,
        is_rollback=job.cycle.export_kind == "rollback",
    )  # fmt: skip
    job.call("reporting what was published", work)


def report_unfinished(
    client: Client,
    home: Path,
    prices: Path,
    published: frozenset[int],
    ended: StepFailed | StepSkipped,
    *,
    is_rollback: bool = False,
) -> None:
    """Count the cards that the marketplace refused, and report the prices that were published
    before the import of a file ended.

    A rollback, and new listings, are one unit for the server: no part of these is reported.
    """
    refused = dict(ended.rejected) if isinstance(ended, NotTaken) else {}
    if not (published or refused):
        return
    CardFailures(home).note(prices.name, (), refused)
    file = read_prices(prices)
    is_whole = is_rollback or file.without_id > 0 or len(file.entries) > 0
    if published and not is_whole:
        known = published | set(refused)
        rows = [row for row in file.rows if row["marketplace_id"] in known]
        report(client, replace(file, rows=rows), None, RefusedCards(refused), ())
    elif refused:
        report(client, file, str(ended)[:MOST_REASON], RefusedCards(), ())


def _need_full_mode(job: Job) -> None:
    """Raise StepSkipped unless the account is in full mode."""
    if job.call("heartbeat", job.beat).sync_mode != "full":
        job.cycle.mode_refused = "the account is in read_only mode now"
        raise StepSkipped(job.cycle.mode_refused)


def _paused_of(job: Job, prices: Path) -> list[int]:
    """Return the cards of a price file that are paused, also in listings and rollbacks."""
    paused = CardFailures(job.store.home).paused()
    return without_cards(prices.read_bytes(), paused)[1] if paused else []


def _some(cards: list[int]) -> str:
    named = ", ".join(map(str, cards[:5]))
    return named if len(cards) <= 5 else f"{named} and {len(cards) - 5} more"


def _remember_placed(job: Job) -> None:
    cycle = job.cycle
    if cycle.export_sha256 and cycle.export_name:
        job.store.memory.remember_placed(cycle.export_sha256, cycle.export_name)
        job.store.save()
