"""Waiting for a condition, always with a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import TypeVar

T = TypeVar("T")


def until(
    condition: Callable[[], T],
    what: str | Callable[[], object],
    seconds: float = 120,
    pause: float = 0.05,
) -> T:
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, _still(what, seconds)
        time.sleep(pause)
    return value


async def eventually(
    condition: Callable[[], object], what: str = "it", seconds: float = 60
) -> None:
    """The same beside other tasks, also for a condition that is awaited."""
    deadline = time.monotonic() + seconds
    while not (await told if isawaitable(told := condition()) else told):
        assert time.monotonic() < deadline, _still(what, seconds)
        await asyncio.sleep(0.01)


def _still(what: str | Callable[[], object], seconds: float) -> str:
    return f"after {seconds:.0f} s still waiting for {what if isinstance(what, str) else what()}"
