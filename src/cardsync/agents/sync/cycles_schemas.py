"""The JSON structs of cycles, and the functions that fill them from rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from cardsync.agents.sync.models import CycleStatus, DebugScreenshot, SyncCycle
from cardsync.platform.kit.struct_rows import Column, struct_of
from cardsync.platform.value_types import JsonObject


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
    captured_at: datetime | None
    received_at: datetime


class Cycle(msgspec.Struct):
    """`status` is success, partial, failed or cancelled; `running` means that the agent has not
    logged the cycle yet. `price_events` are the agents' reports of price files.
    """

    id: int
    sync_cycle_id: str | None
    status: CycleStatus
    """success, partial, failed or cancelled; with running, there is no log yet"""
    running: Annotated[bool, Column("placeholder")]
    started_at: datetime
    logged_at: datetime
    """When the agent logged the cycle; before that, when the cycle was first noted"""
    duration_ms: int | None
    agent_version: str | None
    platform: str | None
    steps: list[CycleStep]
    """The steps of the agent"""
    price_events: list[JsonObject]
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
    return struct_of(
        Cycle, row, screenshots=[struct_of(CycleScreenshot, picture) for picture in pictures]
    )
