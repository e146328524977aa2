"""The steps that send the inventory to the server: take the export, send it, and wait until the
server has priced it.

Uploads are journaled wherever repeating would do harm. Each step may run again from its beginning
after a kill -9.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cardsync_agent import clock
from cardsync_agent.client import Refused
from cardsync_agent.inbox import NoExport
from cardsync_agent.job import Job, worked_off
from cardsync_agent.pace import GaveUp
from cardsync_agent.step_ends import Cancelled, CycleOver, StepFailed, StepSkipped

MOST_TICKETS = 3
REVIEW_HINT = "confirm it in the dashboard, or with POST /api/v1/uploads/{}/confirm"


def export_inventory(job: Job) -> None:
    cycle = job.cycle
    known = frozenset() if cycle.reason == "manual_request" else job.store.memory.hashes()
    try:
        found = job.market.export_inventory(job.store.spool, known)
    except NoExport as none:
        raise StepFailed(str(none)) from none
    cycle.file, cycle.sha256, cycle.exported_at = (
        str(found.path),
        found.sha256,
        clock.rfc3339(found.exported_at),
    )
    text = (
        f"taking {found.path.name}"
        f" ({found.size:,} bytes, from {clock.for_people(found.exported_at)})"
    )
    job.say(
        "inventory_found",
        text,
        path=cycle.file,
        sha256=found.sha256,
        bytes=found.size,
        exported_at=cycle.exported_at,
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
    """Upload by the presigned flow.

    Return False if the server has no such flow, or if the network reaches the server but not its
    object store.
    """
    refusal: Refused | None = None
    for _ in range(MOST_TICKETS):
        try:
            _have_ticket(job)
            refusal = _put(job) or refusal
            _offer(job)
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
            # The object never arrived (the address had expired, or the store lost it), so the agent
            # requests a new address.
            refusal = refusal or refused
            job.cycle.key, job.cycle.upload_url, job.cycle.put_done, job.cycle.offered = (
                None,
                None,
                False,
                False,
            )
    raise refusal or StepFailed("the server gave no usable upload address")


def _only_the_store_is_away(job: Job) -> bool:
    url = job.cycle.upload_url
    return url is not None and not job.cycle.put_done and job.client.is_elsewhere(url)


def _offer(job: Job) -> None:
    """Journal that from here on the server may have the upload, and only the upload's own state
    shows whether it was cancelled.
    """
    if not job.cycle.offered:
        job.check_wanted()  # a POST /sync after a cancel would begin a new sync
        job.cycle.offered = True
        job.store.save()


def _have_ticket(job: Job) -> None:
    if job.cycle.key is None:
        ticket = job.call("asking for an upload address", job.client.upload_request)
        job.cycle.key, job.cycle.upload_url = ticket.key, ticket.upload_url
        job.store.save()


def _put(job: Job) -> Refused | None:
    """Send the bytes to the presigned address.

    If the address itself is refused, return the refusal: POST /sync shows whether the bytes had
    arrived.
    """
    cycle, refusal = job.cycle, None
    if cycle.put_done:
        return None
    url, content = cycle.upload_url or "", job.store.spool.read_bytes()
    patience = job.pace.elsewhere if job.client.is_elsewhere(url) else None
    try:
        job.call(
            "sending the file",
            lambda: job.client.put_object(url, content, job.while_sending()),
            patience,
        )
    except Refused as refused:
        # 409 already_used: our PUT had arrived, and its answer was lost. 403: the address has
        # expired, perhaps after the bytes had arrived.
        if refused.status not in (403, 409):
            raise
        refusal = refused
    cycle.put_done = True
    job.store.save()
    return refusal


def _accept(job: Job) -> int:
    return job.client.accept(
        job.cycle.key or "", job.cycle.sync_cycle_id, job.cycle.exported_at or ""
    )


def _upload_raw(job: Job) -> None:
    """Upload by the raw form, which has no key to make a second sending harmless: the file is sent
    again only if the first sending surely did not arrive.
    """
    cycle, content = job.cycle, job.store.spool.read_bytes()

    if not cycle.raw_sent:
        job.check_wanted()

    def send() -> int | None:
        if cycle.raw_sent and _server_has_an_upload(job):
            return None
        if not cycle.raw_sent:
            cycle.last_sync_before, cycle.raw_sent = job.client.status().get("last_sync_at"), True
            job.store.save()
        return job.client.accept_raw(content, cycle.sync_cycle_id, cycle.exported_at or "")

    cycle.upload_id = job.call("sending the file to the server", send)


def _server_has_an_upload(job: Job) -> bool:
    # The lock's holder gets `sync` again as long as nothing was uploaded (decisions.md, section 3).
    decision = job.ask()
    if decision.action == "sync" or decision.reason == "in_progress":
        return decision.action != "sync"
    status = job.client.status()
    if (
        status.get("phase") == "awaiting_review"
        or status.get("last_sync_at") != job.cycle.last_sync_before
    ):
        return True
    # If a cancel ended this cycle, sending again would begin a sync that nobody requested.
    raise CycleOver(
        "the server ended this cycle while it could not be reached;"
        " whether the file arrived is not known"
    )


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
        # The reason is a short inventory (decisions.md, section 3), or the server's `review` list.
        why = (
            "; ".join(map(str, report.get("review") or ()))
            or "the server found the inventory surprising"
        )
        job.say("review_needed", f"the upload waits for review: {why}", problem=True, report=report)
        raise StepFailed(f"awaiting_review: {why}; {hint}")
    if state == "cancelled":
        raise Cancelled
    if state != "done":
        error = report.get("error") or {}
        raise StepFailed(
            ": ".join(str(error[part]) for part in ("code", "message") if error.get(part)) or state
        )
    job.say("upload_done", _summary(report), report=report)


def _finished_report(job: Job) -> dict[str, Any]:
    def say(report: dict[str, Any]) -> None:
        job.say(
            "upload_progress",
            f"the server is still at work ({report['state']})",
            state=report["state"],
        )

    return worked_off(job, "asking how the upload fares", lambda: _ask_progress(job), say)


def _ask_progress(job: Job) -> dict[str, Any]:
    if job.cycle.upload_id is not None:
        return job.client.upload(job.cycle.upload_id)
    # A raw upload whose answer was lost has no number: the account's status replaces its report.
    status = job.client.status()
    review = status.get("phase") == "awaiting_review"
    busy = status.get("sync_in_progress") is True and not review
    if busy or review:
        return {"state": "processing" if busy else "awaiting_review"}
    if status.get("last_sync_at") == job.cycle.last_sync_before:
        raise CycleOver(
            "the server ended this upload without completing it: it failed or was cancelled"
        )
    return {"state": "done"}


def _summary(report: dict[str, Any]) -> str:
    text = f"imported {report.get('rows', '?')} rows: {report.get('changed', '?')} prices to change"
    rejected = report.get("rejected_count")
    return f"{text}, {rejected} rows rejected" if rejected else text
