"""The steps that send orders, and the rows that belong to orders, to the server: a file of the
marketplace becomes rows, and rows become uploads, in order.

The uploads are journaled part by part. Every upload is an upsert, so a part that is sent again
after a kill -9 changes nothing. No cell of a file is written into the journal, a log or an error
text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache, partial
from typing import Any, TypeVar

from cardsync_agent import clock
from cardsync_agent.csv_records import Damaged, Problem
from cardsync_agent.inbox import NoExport, OrderFile
from cardsync_agent.job import Job, worked_off
from cardsync_agent.marketplace import Window
from cardsync_agent.orders import DEPENDENTS, ORDER_LIST, SALES, Kind, Parsed, parse, window_start
from cardsync_agent.parts import parts
from cardsync_agent.sales import (
    Summary,
    months_to_ask,
    months_to_send,
    parse_summary,
    still_unoffered,
)
from cardsync_agent.state import Part, Sent
from cardsync_agent.step_ends import NothingThere, StepFailed, StepSkipped

T = TypeVar("T")
MOST_TOLD, MOST_LISTED = 3, 1_000


def fetch(kind: Kind) -> Callable[[Job], None]:
    """Return the step that sends the files of one kind."""

    def step(job: Job) -> None:
        since = _since(job)
        files = _files(job, kind, since)
        anew = job.cycle.reason == "manual_request"
        wanted = [
            file
            for file in files
            if anew or not job.store.memory.has_sent(_sent(kind, file, since))
        ]
        # After a kill -9 between the last part and the step's record, the memory may list the file
        # because this same cycle sent it.
        if not wanted and not any(
            _sent(kind, file, since) in job.cycle.delivered for file in files
        ):
            # The browser's downloads are already deleted, so the file's name is omitted.
            newest = "" if job.market.publishes else f" ({files[-1].path.name} was uploaded before)"
            raise StepSkipped(f"{job.market.place} has no new {kind.name}{newest}")
        for file in wanted:
            if _sent(kind, file, since) not in job.cycle.delivered:
                _send(job, kind, file, since)

    return step


def fetch_sales_report(job: Job) -> None:
    """Send the sales reports of at most two months per cycle, oldest first: months that the server
    lacks and the files cover. The server finds missing months by the orders, including the orders
    that this cycle has sent. A month that the marketplace did not offer must not keep the later
    ones from being asked for.
    """
    missing = cache(lambda: job.call("asking which months are missing", job.client.sales_gaps))
    summary = _summary(job, missing)
    gaps = missing()
    # The months are journaled, so that a cycle that continues after a kill -9 does not send more
    # than two.
    if job.cycle.months is None:
        job.cycle.months = months_to_send(gaps, summary.months)
        job.store.save()
    if gaps and not job.cycle.months:
        raise NothingThere(
            f"{job.market.place} has no sales summary of the {len(gaps)} months"
            f" that are missing since {gaps[0]}"
        )
    reports = [report for month in job.cycle.months if (report := summary.months.get(month))]
    if job.cycle.task is not None and not reports:
        raise NothingThere(
            f"{job.market.place} has no sales summary of"
            f" {', '.join(month[:7] for month in job.cycle.months)}"
        )
    for report in reports:
        job.check_wanted()
        _send_month(job, report)


def _summary(job: Job, missing: Callable[[], list[str]]) -> Summary:
    """Read the sales summaries, and store which of the months that a browser asked for the
    marketplace did not offer.
    """
    summary, asked = Summary(), list[str]()
    memory, today = job.store.memory, clock.read_rfc3339(job.cycle.started_at).date()

    def months() -> list[str]:
        asked[:] = months_to_ask(job.cycle.months or missing(), memory.unoffered, today)
        return asked

    nothing = None
    try:
        files = _files(job, SALES, _since(job), months)
    except NothingThere as none:
        files, nothing = [], none
    for file in files:
        found = _read(file, parse_summary)
        _tell(job, SALES, file, found.problems)
        summary.months |= found.months
    if refused := set(asked) - summary.months.keys():
        still = still_unoffered(memory.unoffered, today)
        memory.unoffered = still | dict.fromkeys(sorted(refused), today.isoformat())
        job.store.save()
    if nothing is not None:
        raise nothing
    return summary


def _ended(job: Job, upload_id: int) -> dict[str, Any]:
    """Return the report of a finished upload of rows.

    The server finishes an upload even after the seller cancels the sync, but a cancellation ends
    the wait.
    """
    ask = partial(job.client.upload, upload_id)
    return worked_off(job, "asking how the rows fare", ask, lambda _: job.check_wanted())


def _send_month(job: Job, report: dict[str, object]) -> None:
    answer = job.call("sending a sales report", lambda: job.client.send_sales_report(report))
    month = str(answer.get("month"))
    job.say(
        "sales_report_sent",
        f"sent the sales report of {month}",
        month=month,
        empty=answer.get("empty") is True,
    )


def _files(
    job: Job, kind: Kind, since: date, months: Callable[[], Sequence[str]] = lambda: ()
) -> list[OrderFile]:
    until = clock.read_rfc3339(job.cycle.started_at).date()
    try:
        return job.market.order_files(kind, Window(since, until, months))
    except NoExport as none:
        raise NothingThere(str(none)) from None


def _since(job: Job) -> date:
    # The window is relative to the cycle's start: a cycle that continues on the next day must
    # divide the same rows into the same parts.
    started = clock.read_rfc3339(job.cycle.started_at).date()
    return window_start(first_sync=job.cycle.first_sync, today=started)


def _sent(kind: Kind, file: OrderFile, since: date) -> Sent:
    return Sent(kind.name, file.sha256, since.isoformat())


def _send(job: Job, kind: Kind, file: OrderFile, since: date) -> None:
    cycle, sent = job.cycle, _sent(kind, file, since)
    parsed = _read(file, lambda content: parse(kind, content, since))
    _tell(job, kind, file, parsed.problems)
    if parsed.lost and not parsed.taken + parsed.older:
        raise StepFailed(f"no line of {file.path.name} can be read: {_some(parsed.problems)}")
    if cycle.part is None or cycle.part.file != sent:
        cycle.part = Part(sent)
    for number, body in enumerate(parts(parsed.rows)):
        if number == cycle.part.done:
            job.check_wanted()
            _send_part(job, kind, cycle.part, body)
    left_out = _left_out(job, kind, file, cycle.part.upload_ids)
    _say_sent(job, kind, file, parsed, cycle.part.upload_ids, since, left_out)
    # The server skipped rows whose orders it had not received yet: they are sent again after new
    # orders.
    forget = {dependent.name for dependent in DEPENDENTS} if kind is ORDER_LIST else set()
    job.store.memory.remember_sent(sent, forget)
    cycle.delivered.append(sent)
    cycle.part = None
    job.store.save()


def _send_part(job: Job, kind: Kind, part: Part, body: bytes) -> None:
    answer = job.call(f"sending {kind.rows}", lambda: job.client.send_rows(kind.path, body))
    if isinstance(upload_id := answer.get("upload_id"), int):
        part.upload_ids.append(upload_id)
    part.done += 1
    job.store.save()


def _left_out(job: Job, kind: Kind, file: OrderFile, upload_ids: list[int]) -> int:
    """Return the number of rows whose orders the server does not have.

    An accepted upload may still fail: its rows then do not count as delivered.
    """
    left_out = 0
    for report in [_ended(job, upload_id) for upload_id in upload_ids]:
        if report.get("state") == "failed":
            error = report.get("error") or {}
            why = (
                ": ".join(str(error[part]) for part in ("code", "message") if error.get(part))
                or "failed"
            )
            raise StepFailed(
                f"the server could not apply the {kind.rows} of {file.path.name}: {why}"
            )
        left_out += int(report.get("skipped") or 0)
        if rejected := int(report.get("rejected_count") or 0):
            text = (
                f"{file.path.name}: the server could not read {rejected:,} values;"
                " the upload's report says which"
            )
            job.say(
                "values_rejected",
                text,
                problem=True,
                kind=kind.name,
                count=rejected,
                upload_id=report.get("id"),
            )
    return left_out


def _say_sent(
    job: Job,
    kind: Kind,
    file: OrderFile,
    parsed: Parsed,
    upload_ids: list[int],
    since: date,
    left_out: int,
) -> None:
    text = f"sent {len(parsed.rows):,} {kind.rows} from {file.path.name}"
    if parsed.older:
        text += f"; {parsed.older:,} from before {since} left out"
    if left_out:
        text += (
            f"; {left_out:,} name orders that the server does not know,"
            " and come again after new orders"
        )
    job.say(
        "rows_sent",
        text,
        kind=kind.name,
        path=str(file.path),
        rows=len(parsed.rows),
        older=parsed.older,
        skipped=left_out,
        upload_ids=upload_ids,
    )


def _tell(job: Job, kind: Kind, file: OrderFile, problems: list[Problem]) -> None:
    if problems:
        job.say(
            "rows_unreadable",
            f"{file.path.name}: {_some(problems)}",
            problem=True,
            kind=kind.name,
            path=str(file.path),
            count=len(problems),
            problems=[
                {"line": problem.line, "problem": problem.text}
                for problem in problems[:MOST_LISTED]
            ],
        )


def _some(problems: list[Problem]) -> str:
    told = "; ".join(f"line {problem.line}: {problem.text}" for problem in problems[:MOST_TOLD])
    more = len(problems) - MOST_TOLD
    return f"{told}; and {more:,} more" if more > 0 else told


def _read(file: OrderFile, reading: Callable[[bytes], T]) -> T:
    """Read a file. The message of an unexpected error may quote a cell and would be reported, so
    only the error's name is used.
    """
    try:
        return reading(file.content)
    except Damaged as damaged:
        raise StepFailed(f"{file.path.name} {damaged}") from None
    except Exception as bug:
        raise StepFailed(
            f"{file.path.name} could not be read: internal error {type(bug).__name__}"
        ) from None
