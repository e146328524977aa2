"""The JSON structs of tasks, and the functions that fill them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from cardsync.agents.agentwork.claims import EXPIRED
from cardsync.agents.agentwork.models import AgentTask, Status
from cardsync.agents.agentwork.task_kinds import ATTEMPTS, Kind
from cardsync.agents.agentwork.tasks import has_run_out
from cardsync.platform.clock import rfc3339_or_none


class Task(msgspec.Struct):
    """`status` is pending, claimed, completed, failed or cancelled.

    `attempt` counts the claims that came to nothing; the fifth is the last.
    """

    id: int
    kind: Kind
    """The work that the agent is to do"""
    payload: dict[str, Any]
    status: Status
    """pending, claimed, completed, failed or cancelled"""
    attempt: int
    created_at: str
    claimed_at: str | None
    claim_expires_at: str | None
    finished_at: str | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    """Why it failed, as code and message"""


class Tasks(msgspec.Struct):
    tasks: list[Task]
    """The tasks, newest first"""
    total: int
    page: int
    per_page: int
    total_pages: int


def task_body(task: AgentTask, now: datetime) -> Task:
    """A claim that has run out shows as what it comes to."""
    moments = ("created_at", "claimed_at", "claim_expires_at", "finished_at")
    fields: dict[str, Any] = {name: getattr(task, name) for name in Task.__struct_fields__}
    fields |= {name: rfc3339_or_none(fields[name]) for name in moments}
    return Task(**fields | (_run_out(task) if has_run_out(task, now) else {}))


def _run_out(task: AgentTask) -> dict[str, Any]:
    over: dict[str, Any] = {
        "attempt": task.attempt + 1,
        "claimed_at": None,
        "claim_expires_at": None,
    }
    if task.attempt + 1 < ATTEMPTS:
        return over | {"status": "pending"}
    ended = rfc3339_or_none(task.claim_expires_at)
    return over | {"status": "failed", "error": EXPIRED, "finished_at": ended}
