"""Runs one step of a cycle, or skips it, and records the result, with a picture of a failure."""

from __future__ import annotations

from cardsync_agent import clock
from cardsync_agent.client import KeyRefused, Refused
from cardsync_agent.job import Job
from cardsync_agent.pace import GaveUp, Stopped
from cardsync_agent.repairs import NotFound
from cardsync_agent.report import cannot
from cardsync_agent.state import StateProblem, StepRecord
from cardsync_agent.step_ends import CANCELLED, CycleOver, NothingThere, StepFailed, StepSkipped
from cardsync_agent.steps import STEPS, needed_by

MOST_SCREENSHOT = 2_000_000


def run_step(job: Job, name: str) -> StepRecord:
    if job.cycle.over is not None or job.cycle.failed_steps & needed_by(name):
        cancelled = job.cycle.over == CANCELLED
        return StepRecord(name, "skipped", 0, CANCELLED if cancelled else "an earlier step failed")
    if name not in STEPS:
        job.cycle.unable.append(name)
        return _told(job, StepRecord(name, "skipped", 0, cannot([name])), detail=True)
    job.say("step_started", name.replace("_", " "), detail=True, step=name)
    began = clock.monotonic()
    status, error = _outcome(job, name)
    record = StepRecord(name, status, round((clock.monotonic() - began) * 1000), error)
    return _told(job, record, detail=error is None)


def _told(job: Job, record: StepRecord, *, detail: bool) -> StepRecord:
    text = f"{record.name.replace('_', ' ')}: {record.status}" + (
        f" ({record.error})" if record.error else ""
    )
    job.say(
        "step_finished",
        text,
        problem=record.status == "failed",
        detail=detail,
        step=record.name,
        status=record.status,
        duration_ms=record.duration_ms,
        error=record.error,
    )
    return record


def _outcome(job: Job, name: str) -> tuple[str, str | None]:
    """Run one step and return its status and its error.

    Exceptions that only interrupt the cycle (signals, outages, the key) are not caught.
    """
    job.note = None
    try:
        job.check_age()
        job.check_wanted()
        job.market.keep_alive(job.while_sending())
        STEPS[name].run(job)
    except (Stopped, GaveUp, KeyRefused, StateProblem):
        raise
    except StepSkipped as skipped:
        if isinstance(skipped, NothingThere):
            job.cycle.lacking.append(name)
        return "skipped", str(skipped)
    except CycleOver as over:
        job.cycle.over = str(over)
        return "failed", str(over)
    except (StepFailed, Refused, OSError, NotFound) as failed:
        return "failed", str(failed)
    except Exception as bug:
        # A cycle always ends in a report; an uncaught bug would end the agent at every start.
        return "failed", f"internal error: {type(bug).__name__}: {bug}"
    return "success", job.note


def send_pictures(job: Job, record: StepRecord) -> None:
    """Send the pictures that a step made and, for a failed step, a picture of the marketplace's
    current page.

    The cycle's report does not depend on the pictures.
    """
    failed = record.status == "failed" and record.error != CANCELLED
    try:
        for shot in job.market.pictures(of_failure=failed):
            if len(shot.content) <= MOST_SCREENSHOT:
                moment = clock.rfc3339(clock.now())
                job.client.send_debug(job.cycle.sync_cycle_id, record.name, moment, shot)
    except Exception as trouble:
        job.say("problem", f"no picture of the step: {trouble}", detail=True)
