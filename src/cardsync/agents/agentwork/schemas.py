"""The JSON structs of tasks, and the functions that fill them. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cardsync.agents.agentwork.claims import EXPIRED
from cardsync.agents.agentwork.models import AgentTask, Status
from cardsync.agents.agentwork.task_kinds import ATTEMPTS, Kind
from cardsync.agents.agentwork.tasks import has_run_out
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.value_types import JsonObject


class Task(msgspec.Struct):
    """`status` is pending, claimed, completed, failed or cancelled.

    `attempt` counts the claims without a result; the fifth is the last.
    """

    id: int
    kind: Kind
    """The work that the agent is to do"""
    payload: JsonObject
    status: Status
    """pending, claimed, completed, failed or cancelled"""
    attempt: int
    created_at: datetime
    claimed_at: datetime | None
    claim_expires_at: datetime | None
    finished_at: datetime | None
    result: JsonObject | None
    error: JsonObject | None
    """Why the task failed, as code and message"""


class Tasks(msgspec.Struct):
    tasks: list[Task]
    """The tasks, newest first"""
    total: int
    page: int
    per_page: int
    total_pages: int


def task_body(task: AgentTask, now: datetime) -> Task:
    """Return the task's struct; a task whose claim expired is shown as pending or failed."""
    over: dict[str, object] = {}
    if has_run_out(task, now):
        over = {"attempt": task.attempt + 1, "claimed_at": None, "claim_expires_at": None}
        over |= (
            {"status": "pending"}
            if task.attempt + 1 < ATTEMPTS
            else {"status": "failed", "error": EXPIRED, "finished_at": task.claim_expires_at}
        )
    return struct_of(Task, task, **over)
