"""Does the server's tasks, each as a cycle of steps, and reports the outcome.

The steps are journaled one by one, so that after a kill -9 each step is done exactly once. Unlike a
sync a task has no lock; it ends with PATCH /tasks/{id} instead of a log.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from cardsync_agent import clock
from cardsync_agent.state import Claim, Cycle, StepRecord
from cardsync_agent.steps import HISTORY, STEPS

_PRICES_DOWN = ("download_price_updates", "import_prices")
# A new kind of task needs only one more line here.
STEPS_OF_TASK = {
    "refresh_orders": HISTORY,
    "backfill_orders": HISTORY,
    "backfill_sales_report": ("fetch_sales_report",),
    "apply_price_updates": _PRICES_DOWN,
    "apply_rollback": _PRICES_DOWN,
    "quick_add_listing": _PRICES_DOWN,
    "refresh_account": ("refresh_account",),
}
TASK_KINDS = tuple(STEPS_OF_TASK)
# The poll tells the server which steps and which kinds of task this agent can do.
CAPABILITIES = ",".join(
    [*(f"{name}@{step.version}" for name, step in STEPS.items()), *(f"{k}@1" for k in TASK_KINDS)]
)
# The server stores the message of a failure with the task.
MOST_MESSAGE = 500


def begin_task(claim: Claim, now: datetime) -> Cycle:
    """Return the journal of a claimed task; a backfill uses the rows of all years."""
    named = claim.payload.get("months") or [claim.payload.get("month")]
    months = [f"{month[:7]}-01" for month in named if isinstance(month, str)]
    return Cycle(
        sync_cycle_id=str(uuid.uuid4()),
        kind=claim.kind,
        reason="task",
        started_at=clock.rfc3339(now),
        planned=list(STEPS_OF_TASK[claim.kind]),
        first_sync=claim.kind == "backfill_orders",
        months=months or None,
        task=claim,
    )


def outcome_of(cycle: Cycle) -> dict[str, Any]:
    """Return the body of PATCH /tasks/{id}.

    A task that found nothing new to do is completed. A task that found no file fails, and is not
    offered again automatically, because only the seller can supply the file. A task with a failed
    step is offered again, because the step may succeed the next time.
    """
    assert cycle.task is not None
    body: dict[str, Any] = {"claim_token": cycle.task.claim_token}
    if (failure := cycle.failure) is not None:
        return body | _failed("step_failed", failure, retryable=True)
    if not any(step.status == "success" for step in cycle.steps):
        if cycle.lacking:
            return body | _failed("nothing_there", _reasons(cycle, cycle.lacking), retryable=False)
        if cycle.mode_refused:
            return body | _failed("read_only", cycle.mode_refused, retryable=False)
    return body | {"status": "completed", "result": _result(cycle)}


def _result(cycle: Cycle) -> dict[str, Any]:
    result: dict[str, Any] = {
        "steps": [
            {"name": step.name, "status": step.status, "error": step.error} for step in cycle.steps
        ]
    }
    if cycle.export_name is not None:
        result |= {
            "file": cycle.export_name,
            "rows": cycle.export_rows,
            "file_sha256": cycle.export_sha256,
            "paused": cycle.paused_cards,
        }
    return result


def _failed(code: str, message: str, *, retryable: bool) -> dict[str, Any]:
    error = {"code": code, "message": message[:MOST_MESSAGE]}
    return {"status": "failed", "error": error, "retryable": retryable}


def _reasons(cycle: Cycle, names: list[str]) -> str:
    errors = {step.name: step.error for step in cycle.steps}
    return "; ".join(dict.fromkeys(str(errors.get(name)) for name in names))


def line_of_task(cycle: Cycle, outcome: dict[str, Any]) -> str:
    """Return the line for people."""
    name = cycle.kind.replace("_", " ")
    if outcome["status"] == "failed":
        return f"task {name} failed: {outcome['error']['message']}"
    left = [step for step in cycle.steps if step.status == "skipped"]
    if len(left) == len(cycle.steps):
        return f"task {name} done: {_first_reason(left)}"
    return f"task {name} done after {cycle.duration_ms / 1000:.1f} s"


def _first_reason(steps: list[StepRecord]) -> str:
    return next((step.error for step in steps if step.error), "there was nothing to do")
