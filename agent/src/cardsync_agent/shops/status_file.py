"""The small file in which a running agent records its state, for `cardsync-agent status`.

The state is computed from the agent's events by `after`, which is pure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cardsync_agent import __version__, clock

STATUS_FILE = "status.json"
_STATES = ("waiting", "paused", "update_required", "plan_refused", "refused", "stopped")


@dataclass(frozen=True)
class Status:
    """All moments are RFC 3339. `state` is the event that began the state, or `working`."""

    pid: int = 0
    version: str = ""
    state: str = "started"
    text: str = ""
    since: str = ""
    mode: str | None = None
    step: str | None = None
    your_turn: str | None = None
    trouble: str | None = None
    update: str | None = None
    last_poll: str | None = None
    next_poll: str | None = None
    last_end: str | None = None
    last_end_at: str | None = None


def after(status: Status, event: str, text: str, at: str, more: Mapping[str, object]) -> Status:
    """Return the status after an event; the events are listed at the top of `loop.py`."""
    if event in _STATES:
        # After a missed sign-in the person must still sign in, so the status keeps the turn while
        # the agent waits.
        turn = status.your_turn if event == "waiting" else None
        return replace(status, state=event, text=text, since=at, step=None, your_turn=turn)
    if event in ("cycle_started", "task_started"):
        return replace(status, state="working", text=text, since=at, step=None, trouble=None)
    if event in ("cycle_finished", "task_ended"):
        return replace(
            status, state="waiting", text="", since=at, step=None, trouble=None,
            last_end=text, last_end_at=at,
        )  # fmt: skip
    if event == "step_started":
        return replace(status, step=str(more.get("step")), trouble=None)
    if event == "connected":
        return replace(status, mode=str(more.get("sync_mode")), trouble=None)
    if event in ("update_available", "update_ready", "update_refused"):
        return replace(status, update=text)
    if event == "retrying":
        return replace(status, trouble=text)
    if event == "your_turn":
        return replace(status, your_turn=text.removeprefix("your turn: "))
    if event == "your_turn_ended":
        return replace(status, your_turn=None)
    return status


class StatusFile:
    """Updates the file; it is called with every event."""

    def __init__(self, home: Path) -> None:
        self._path = home / STATUS_FILE
        earlier = read_status(home) or Status()
        self._status = Status(
            pid=os.getpid(),
            version=__version__,
            since=clock.rfc3339(clock.now()),
            last_end=earlier.last_end,
            last_end_at=earlier.last_end_at,
        )
        self._write()

    def __call__(self, event: str, text: str, problem: bool, more: Mapping[str, object]) -> None:
        changed = after(self._status, event, text, clock.rfc3339(clock.now()), more)
        if changed != self._status:
            self._status = changed
            self._write()

    def polled(self) -> None:
        """Record that the server has answered."""
        self._status = replace(
            self._status, last_poll=clock.rfc3339(clock.now()), next_poll=None, trouble=None
        )
        self._write()

    def resting(self, seconds: float) -> None:
        """Record the time until the next request to the server."""
        when: datetime = clock.now() + timedelta(seconds=seconds)
        self._status = replace(self._status, next_poll=clock.rfc3339(when))
        self._write()

    def _write(self) -> None:
        # The file is written in place: after a crash in between, the status is unknown until the
        # next write. A full disk must not stop the agent.
        try:
            self._path.write_text(json.dumps(asdict(self._status), indent=1))
        except OSError:
            return


def read_status(home: Path) -> Status | None:
    """Return the last status of this home's agent, or None if it is unknown."""
    for _ in range(3):
        try:
            raw: dict[str, Any] = json.loads((home / STATUS_FILE).read_bytes())
            return Status(**{f.name: raw[f.name] for f in fields(Status) if f.name in raw})
        except (ValueError, TypeError):  # the file is being written
            clock.sleep(0.02)
        except OSError:
            return None
    return None
