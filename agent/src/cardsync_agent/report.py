"""Computes the report of a cycle from its journal: its status, the body of POST /sync/log and the
line for people. Pure.
"""

from __future__ import annotations

from cardsync_agent import __version__
from cardsync_agent.state import Cycle
from cardsync_agent.step_ends import CANCELLED


def verdict(cycle: Cycle) -> str:
    """Return `success` if every step was done or had nothing to do, `partial` if only part of the
    work was done, and `failed` otherwise.

    A step that this agent does not support, or had no file for, is unfinished work, so its cycle is
    never a success. The server counts the seller's history as fetched only if the steps that fetch
    it succeeded (decisions.md, "First and full"), whatever the status.
    """
    fetched = any(
        step.status == "success" and step.name.startswith("fetch_") for step in cycle.steps
    )
    if cycle.failure is not None:
        return "partial" if cycle.imported or (fetched and cycle.over is None) else "failed"
    # The server would treat a success without steps as a fetched history.
    if not cycle.steps:
        return "failed"
    if (cycle.unable or cycle.lacking) and not any(
        step.status == "success" for step in cycle.steps
    ):
        return "failed"
    return "partial" if cycle.needs_review or cycle.unable or _missed(cycle) else "success"


def _missed(cycle: Cycle) -> list[str]:
    """Return the steps for which the seller could have supplied a file.

    A refresh of the account fails if it is the cycle's only step; a full sync succeeds without it.
    """
    return [name for name in cycle.lacking if name != "refresh_account"]


def report_of(cycle: Cycle, platform: str) -> dict[str, object]:
    """Return the body of POST /sync/log."""
    return {
        "status": cycle.status,
        "sync_cycle_id": cycle.sync_cycle_id,
        "steps": [
            {
                "name": step.name,
                "status": step.status,
                "duration_ms": step.duration_ms,
                "error": step.error,
            }
            for step in cycle.steps
        ],
        "agent_version": __version__,
        "platform": platform,
        "duration_ms": cycle.duration_ms,
        "started_at": cycle.started_at,
    }


def cannot(steps: list[str]) -> str:
    return f"this sync app can't {', '.join(step.replace('_', ' ') for step in steps)} yet"


def trouble_of(cycle: Cycle) -> str | None:
    """Return the explanation for the seller of a cycle that is not a success."""
    if cycle.failure is not None:
        return cycle.failure
    if cycle.needs_review:
        return "an upload waits for review"
    if not cycle.steps:
        return "the server's plan names no step"
    if cycle.lacking:
        reasons = {step.name: step.error for step in cycle.steps}
        return "; ".join(str(reasons.get(name)) for name in cycle.lacking)
    return cannot(cycle.unable) if cycle.unable else None


def line_of(cycle: Cycle) -> str:
    after = f"after {cycle.duration_ms / 1000:.1f} s"
    if cycle.over == CANCELLED:
        return f"sync {CANCELLED} {after}"
    trouble = trouble_of(cycle)
    if cycle.status == "partial" and not is_problem(cycle):
        parts = [
            ("what this sync app can't do yet", cycle.unable),
            ("what there was no file for", _missed(cycle)),
        ]
        return f"sync done {after}, save for " + " and ".join(
            f"{why}: {_things(names)}" for why, names in parts if names
        )
    word = {"success": "done", "partial": "partly done"}.get(cycle.status or "", "failed")
    return f"sync {word} {after}" + (f": {trouble}" if trouble else "")


def _things(steps: list[str]) -> str:
    return ", ".join(step.partition("_")[2].replace("_", " ") for step in steps)


def is_problem(cycle: Cycle) -> bool:
    """Return whether the seller should act or check. Steps that this agent does not support are not
    a problem.
    """
    return cycle.failure is not None or cycle.needs_review or cycle.status == "failed"
