"""A task as the API shows it: its row in, the JSON's struct out. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from cardsync import clock
from cardsync.agentwork.models import AgentTask


class Task(msgspec.Struct):
    """`status` is pending, claimed, completed, failed or cancelled.

    `attempt` counts the claims that came to nothing.
    """

    id: int
    kind: str
    payload: dict[str, Any]
    status: str
    attempt: int
    created_at: str
    claimed_at: str | None
    claim_expires_at: str | None
    finished_at: str | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None


def task_body(task: AgentTask) -> Task:
    moments = ("created_at", "claimed_at", "claim_expires_at", "finished_at")
    fields: dict[str, Any] = {name: getattr(task, name) for name in Task.__struct_fields__}
    return Task(**fields | {name: _rfc3339(fields[name]) for name in moments})


def _rfc3339(moment: datetime | None) -> str | None:
    return clock.rfc3339(moment) if moment else None
