"""The JSON structs of cycles, and the functions that fill them from rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from cardsync.agents.sync.models import CycleStatus, DebugScreenshot, SyncCycle
from cardsync.platform import clock
from cardsync.platform.clock import rfc3339_or_none


class CycleStep(msgspec.Struct):
    name: str
    """The name of the step"""
    status: Literal["success", "failed", "skipped"]
    """success, failed or skipped"""
    duration_ms: int | None = None
    error: str | None = None


class CycleScreenshot(msgspec.Struct):
    """The picture itself is at GET /sync/screenshots/{id}."""

    id: int
    step_name: str | None
    page_url: str | None
    captured_at: str | None
    received_at: str


class Cycle(msgspec.Struct):
    """`status` is success, partial, failed or cancelled; with `running` the agent has not logged
    it yet. `price_events` are the agents' reports of price files.
    """

    id: int
    sync_cycle_id: str | None
    status: CycleStatus
    """success, partial, failed or cancelled; with running, there is no log yet"""
    running: bool
    started_at: str
    logged_at: str
    """When the agent logged it; null before"""
    duration_ms: int | None
    agent_version: str | None
    platform: str | None
    steps: list[CycleStep]
    """The steps of the agent"""
    price_events: list[dict[str, Any]]
    """The agents' reports of price files"""
    screenshots: list[CycleScreenshot]
    """The screenshots that the agent took"""


class Cycles(msgspec.Struct):
    cycles: list[Cycle]
    total: int
    page: int
    per_page: int
    total_pages: int


def cycle_body(row: SyncCycle, pictures: Sequence[DebugScreenshot]) -> Cycle:
    steps = [msgspec.convert(step, CycleStep) for step in row.steps]
    shots = [
        CycleScreenshot(
            shot.id,
            shot.step_name,
            shot.page_url,
            rfc3339_or_none(shot.captured_at),
            clock.rfc3339(shot.received_at),
        )
        for shot in pictures
    ]
    same = ("id", "sync_cycle_id", "status", "duration_ms", "agent_version", "platform")
    return Cycle(
        **{name: getattr(row, name) for name in same},
        running=row.placeholder,
        started_at=clock.rfc3339(row.started_at),
        logged_at=clock.rfc3339(row.logged_at),
        steps=steps,
        price_events=row.price_events,
        screenshots=shots,
    )
