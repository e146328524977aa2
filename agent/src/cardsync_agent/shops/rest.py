"""Decides whether a shop's agent rests now: because a person paused it, or in its quiet hours.

A pause is one file in the shop's home, so it survives restarts and works while no agent runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cardsync_agent import clock, durable
from cardsync_agent.shops.quiet_hours import Span, quiet_until

PAUSE_FILE = "pause.json"
_LENGTH = re.compile(r"(\d{1,4})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Rest:
    """Why, and until when, the agent rests. `until` is None if only `cardsync-agent resume` ends
    the rest.
    """

    reason: str  # paused, or quiet_hours
    until: datetime | None

    @property
    def text(self) -> str:
        if self.reason == "quiet_hours":
            return f"quiet hours until {_moment(self.until)}: no sync starts"
        end = f"until {_moment(self.until)}" if self.until else "until you say so"
        return f"paused {end}; `cardsync-agent resume` goes on"


def rest_now(home: Path, quiet: Sequence[Span]) -> Rest | None:
    """Return why the agent of the shop with this home may not work now, or None if it may."""
    if (pause := read_pause(home)) is not None:
        return pause
    wall = clock.local_wall(clock.now())
    end = quiet_until(quiet, wall)
    return Rest("quiet_hours", clock.from_wall(end)) if end else None


def read_pause(home: Path) -> Rest | None:
    """Return the pause, unless it has expired."""
    try:
        until = json.loads((home / PAUSE_FILE).read_bytes())["until"]
        end = clock.read_rfc3339(until) if until is not None else None
        over = end is not None and end <= clock.now()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        # An unreadable pause is a pause: a person wanted the agent to do nothing.
        end, over = None, False
    return None if over else Rest("paused", end)


def pause(home: Path, length: timedelta | None) -> Rest:
    """Pause for this time, or until resumed."""
    until = clock.now() + length if length is not None else None
    text = None if until is None else clock.rfc3339(until)
    durable.write(home / PAUSE_FILE, json.dumps({"until": text}).encode())
    return Rest("paused", until)


def resume(home: Path) -> bool:
    """End the pause; return whether there was a pause."""
    was = read_pause(home) is not None
    (home / PAUSE_FILE).unlink(missing_ok=True)
    return was


def read_length(text: str) -> timedelta | None:
    """Parse `1h`, `30m`, `2d`, or `on` (None: until resumed). Raises ValueError."""
    if text == "on":
        return None
    match = _LENGTH.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"a pause is 1h, 4h, 24h or on, not {text!r}")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _moment(when: datetime | None) -> str:
    return "" if when is None else clock.for_people(when)[:-3]
