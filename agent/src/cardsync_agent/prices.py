"""The steps that carry prices down: they save price files in exports/ and deliver them to the
marketplace.

A Job comes in; files go out, each written once, however often a step is run again after a kill -9.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cardsync_agent import clock, durable
from cardsync_agent.job import Job, StepSkipped


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
    """Download the prices; decide the file's name if there is anything to save."""
    cycle, memory = job.cycle, job.store.memory
    updates = job.call("downloading price updates", lambda: job.client.price_updates(memory.etag))
    cycle.export_name = None
    if updates is None or updates.rows == 0:
        reasons = ["not_modified"] if updates is None else [*updates.empty_reasons]
        cycle.needs_review = "awaiting_review" in reasons
        if updates is not None:
            memory.etag = updates.etag
        job.say(
            "export_empty",
            f"no price changes ({', '.join(reasons) or 'no reason given'})",
            reasons=reasons,
        )
        return None
    durable.discard_parts(job.exports(), "price-updates-*.csv")
    cycle.export_name = _free_name(job.exports(), clock.now())
    cycle.export_rows, cycle.etag = updates.rows, updates.etag
    return updates.content


def _free_name(directory: Path, now: datetime) -> str:
    stem, number = f"price-updates-{clock.for_file_name(now)}", 1
    while (directory / (name := f"{stem}.csv" if number == 1 else f"{stem}-{number}.csv")).exists():
        number += 1
    return name


def import_prices(job: Job) -> None:
    cycle = job.cycle
    if cycle.export_name is None:
        raise StepSkipped("nothing to import")
    prices = job.exports() / cycle.export_name
    if job.market.has_imported(prices, staged=cycle.outbox_staged):
        return
    # The mode may have changed since the cycle began, and read_only must not push.
    if job.call("heartbeat", job.beat).sync_mode != "full":
        raise StepSkipped("the account is in read_only mode now")

    def note_staged() -> None:
        cycle.outbox_staged = True
        job.store.save()

    target = job.market.import_prices(prices, staged=cycle.outbox_staged, note_staged=note_staged)
    job.say("prices_placed", f"placed a copy in {target}", path=str(target), rows=cycle.export_rows)
