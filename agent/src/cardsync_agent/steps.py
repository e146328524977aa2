"""What a cycle does: which steps a decision means, and one function per step of the pricing chain.

In: a Job (the journaled cycle and the doors to server, folder and people). Out: changes in `job.cycle`, saved wherever repeating
would do harm. A step returns when done, raises StepSkipped or StepFailed, or lets Refused and OSError through as its failure.
Every step may run again from its beginning after a kill -9.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from cardsync_agent import clock, durable
from cardsync_agent.client import Client, Decision, Heartbeat, Refused, TryAgain
from cardsync_agent.events import Reporter
from cardsync_agent.inbox import NoExport
from cardsync_agent.marketplace import Marketplace
from cardsync_agent.pace import GaveUp, Pace, Stop, persist
from cardsync_agent.state import Cycle, StepRecord, Store

T = TypeVar("T")
PRICING_CHAIN = ("export_inventory", "upload_inventory", "await_repricing", "download_price_updates", "import_prices")
STEPS_OF_KIND = {
    "orders": ("fetch_orders", "fetch_order_items", "fetch_shipping"),
    "refunds": ("fetch_orders", "fetch_refunds"),
    "feedback": ("fetch_orders", "fetch_feedback"),
    "sales": ("fetch_sales_report",),
    "account": ("refresh_account",),
}
MOST_TICKETS = 3
REVIEW_HINT = "confirm it in the dashboard, or with POST /api/v1/uploads/{}/confirm"


class StepFailed(Exception):
    """The message is what the server's log and the person read."""


class StepSkipped(Exception):
    """Nothing to do, for the reason given."""


@dataclass
class Job:
    """A cycle at work, with everything its steps reach out to."""

    cycle: Cycle
    store: Store
    client: Client
    market: Marketplace
    folder: Path
    say: Reporter
    pace: Pace
    stop: Stop
    beat: Callable[[], Heartbeat]
    patience: float | None

    def call(self, what: str, make: Callable[[], T], patience: float | None = None, *, aging: bool = True) -> T:
        """One server call, repeated over outages; with `aging` not beyond the cycle's life."""

        def on_retry(trouble: TryAgain, delay: float) -> None:
            if aging:
                self.check_age()
            self.say.retrying(what, trouble, delay)

        return persist(make, self.pace, self.stop, on_retry, self.patience if patience is None else patience)

    def check_age(self) -> None:
        age = clock.now() - clock.read_rfc3339(self.cycle.started_at)
        if age > timedelta(seconds=self.pace.cycle_expires):
            raise StepFailed(f"abandoned: not finished within {self.pace.cycle_expires / 3600:.0f} h")

    def exports(self) -> Path:
        return self.folder / "exports"


def begin(decision: Decision, sync_mode: str, now: datetime) -> Cycle:
    """The journal of a new cycle: its steps, in order, and those that the server's plan leaves out."""
    steps = list(STEPS_OF_KIND.get(decision.kind, PRICING_CHAIN))
    if decision.plan_steps is not None:
        order = [*PRICING_CHAIN, *(step for step in decision.plan_steps if step not in PRICING_CHAIN)]
        steps = [step for step in order if step in decision.plan_steps]
    if sync_mode != "full":
        steps = [step for step in steps if step != "import_prices"]
    return Cycle(
        sync_cycle_id=str(uuid.uuid4()),
        kind=decision.kind,
        reason=decision.reason,
        started_at=clock.rfc3339(now),
        planned=steps,
        steps=[StepRecord(name, "skipped", 0, why) for name, why in decision.plan_skipped.items() if name not in steps],
    )


def export_inventory(job: Job) -> None:
    cycle = job.cycle
    known = frozenset() if cycle.reason == "manual_request" else job.store.memory.hashes()
    try:
        found = job.market.export_inventory(job.store.spool, known)
    except NoExport as none:
        raise StepFailed(str(none)) from none
    cycle.file, cycle.sha256, cycle.exported_at = str(found.path), found.sha256, clock.rfc3339(found.exported_at)
    text = f"taking {found.path.name} ({found.size:,} bytes, from {clock.for_people(found.exported_at)})"
    job.say(
        "inventory_found", text, path=cycle.file, sha256=found.sha256, bytes=found.size, exported_at=cycle.exported_at
    )


def upload_inventory(job: Job) -> None:
    cycle = job.cycle
    if cycle.file is None:
        raise StepSkipped("no export was taken in this cycle")
    if cycle.raw_sent or not _upload_by_key(job):
        _upload_raw(job)
    text = f"uploaded {Path(cycle.file).name}; the server is working on it"
    job.say("uploaded", text, upload_id=cycle.upload_id)


def _upload_by_key(job: Job) -> bool:
    """The presigned flow. False where the server has no such flow, or the network lets us reach the server but not its object store."""
    refusal: Refused | None = None
    for _ in range(MOST_TICKETS):
        try:
            _have_ticket(job)
            refusal = _put(job) or refusal
            job.cycle.upload_id = job.call("handing over the upload", lambda: _accept(job))
            return True
        except GaveUp:
            if not _only_the_store_is_away(job):
                raise
            return False
        except Refused as refused:
            if refused.code == "object_store_pipeline_disabled":
                return False
            if refused.code != "invalid_object_key":
                raise
            # The object never arrived (the address had expired, or the store lost it): a new address.
            refusal = refusal or refused
            job.cycle.key, job.cycle.upload_url, job.cycle.put_done = None, None, False
    raise refusal or StepFailed("the server gave no usable upload address")


def _only_the_store_is_away(job: Job) -> bool:
    url = job.cycle.upload_url
    return url is not None and not job.cycle.put_done and job.client.is_elsewhere(url)


def _have_ticket(job: Job) -> None:
    if job.cycle.key is None:
        ticket = job.call("asking for an upload address", job.client.upload_request)
        job.cycle.key, job.cycle.upload_url = ticket.key, ticket.upload_url
        job.store.save()


def _put(job: Job) -> Refused | None:
    """Send the bytes to the presigned address. A refusal of the address itself is returned: POST /sync tells whether they had landed."""
    cycle, refusal = job.cycle, None
    if cycle.put_done:
        return None
    url, content = cycle.upload_url or "", job.store.spool.read_bytes()
    patience = job.pace.elsewhere if job.client.is_elsewhere(url) else None
    try:
        job.call("sending the file", lambda: job.client.put_object(url, content), patience)
    except Refused as refused:
        # 409 already_used: our PUT had landed, its answer was lost. 403: expired, perhaps after it had landed.
        if refused.status not in (403, 409):
            raise
        refusal = refused
    cycle.put_done = True
    job.store.save()
    return refusal


def _accept(job: Job) -> int:
    return job.client.accept(job.cycle.key or "", job.cycle.sync_cycle_id, job.cycle.exported_at or "")


def _upload_raw(job: Job) -> None:
    """The raw form has no key to make a second sending harmless, so it is sent again only when the first surely did not arrive."""
    cycle, content = job.cycle, job.store.spool.read_bytes()

    def send() -> int | None:
        if cycle.raw_sent and _server_has_an_upload(job):
            return None
        if not cycle.raw_sent:
            cycle.last_sync_before, cycle.raw_sent = job.client.status().get("last_sync_at"), True
            job.store.save()
        return job.client.accept_raw(content, cycle.sync_cycle_id, cycle.exported_at or "")

    cycle.upload_id = job.call("sending the file to the server", send)


def _server_has_an_upload(job: Job) -> bool:
    # The lock's holder gets `sync` again as long as nothing was uploaded (decisions.md, section 3). Any other wait than
    # in_progress may also mean that the lock went stale over a long outage, so it takes a finished sync to believe in an upload.
    decision = job.client.pending(job.store.memory.agent_id)
    if decision.action == "sync" or decision.reason == "in_progress":
        return decision.action != "sync"
    status = job.client.status()
    return status.get("phase") == "awaiting_review" or status.get("last_sync_at") != job.cycle.last_sync_before


def await_repricing(job: Job) -> None:
    if job.cycle.upload_id is None and not job.cycle.raw_sent:
        raise StepSkipped("nothing was uploaded in this cycle")
    report = _finished_report(job)
    state = str(report.get("state"))
    if state in ("done", "awaiting_review"):
        job.cycle.imported = True
        if job.cycle.sha256:
            job.store.memory.remember_import(job.cycle.sha256, clock.now())
    if state == "awaiting_review":
        job.cycle.needs_review = True
        hint = REVIEW_HINT.format(report.get("id", "<id>"))
        # Why: a short inventory (decisions.md, section 3), or what the server lists under `review`.
        why = "; ".join(map(str, report.get("review") or ())) or "the server found the inventory surprising"
        job.say("review_needed", f"the upload waits for review: {why}", problem=True, report=report)
        raise StepFailed(f"awaiting_review: {why}; {hint}")
    if state != "done":
        error = report.get("error") or {}
        raise StepFailed(": ".join(str(error[part]) for part in ("code", "message") if error.get(part)) or state)
    job.say("upload_done", _summary(report), report=report)


def _finished_report(job: Job) -> dict[str, Any]:
    """Poll, ever slower, until the server has worked the upload off. The poll keeps the sync lock fresh; so does the heartbeat the agent's presence."""
    pause, spoken = job.pace.poll_first, clock.monotonic()
    while True:
        report = job.call("asking how the upload fares", lambda: _ask_progress(job))
        if report.get("state") not in ("queued", "processing"):
            return report
        job.check_age()
        if clock.monotonic() - spoken >= job.pace.interval:
            spoken = clock.monotonic()
            job.call("heartbeat", job.beat)
            job.say("upload_progress", f"the server is still at work ({report['state']})", state=report["state"])
        job.stop.sleep(pause)
        pause = min(pause * 1.5, job.pace.poll_most)


def _ask_progress(job: Job) -> dict[str, Any]:
    if job.cycle.upload_id is not None:
        return job.client.upload(job.cycle.upload_id)
    # A raw upload whose answer was lost has no number: the account's status stands in for its report.
    status = job.client.status()
    review = status.get("phase") == "awaiting_review"
    busy = status.get("sync_in_progress") is True and not review
    return {"state": "processing" if busy else "awaiting_review" if review else "done"}


def _summary(report: dict[str, Any]) -> str:
    text = f"imported {report.get('rows', '?')} rows: {report.get('changed', '?')} prices to change"
    rejected = report.get("rejected_count")
    return f"{text}, {rejected} rows rejected" if rejected else text


def download_price_updates(job: Job) -> None:
    cycle, memory = job.cycle, job.store.memory
    content = None if cycle.export_staged else _fetch_prices(job)
    if cycle.export_name is None:
        return

    def note_staged() -> None:
        cycle.export_staged = True
        job.store.save()

    target = job.exports() / cycle.export_name
    durable.place(target, lambda: content or b"", staged=cycle.export_staged, note_staged=note_staged)
    memory.etag = cycle.etag
    text = f"saved {cycle.export_rows} price changes in {target}"
    job.say("export_saved", text, path=str(target), rows=cycle.export_rows)


def _fetch_prices(job: Job) -> bytes | None:
    """Download; decides the file's name if there is anything to save."""
    cycle, memory = job.cycle, job.store.memory
    updates = job.call("downloading price updates", lambda: job.client.price_updates(memory.etag))
    cycle.export_name = None
    if updates is None or updates.rows == 0:
        reasons = ["not_modified"] if updates is None else [*updates.empty_reasons]
        cycle.needs_review = "awaiting_review" in reasons
        if updates is not None:
            memory.etag = updates.etag
        job.say("export_empty", f"no price changes ({', '.join(reasons) or 'no reason given'})", reasons=reasons)
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


STEPS: dict[str, Callable[[Job], None]] = {
    "export_inventory": export_inventory,
    "upload_inventory": upload_inventory,
    "await_repricing": await_repricing,
    "download_price_updates": download_price_updates,
    "import_prices": import_prices,
}
