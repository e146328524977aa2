"""Formats the state of a shop's agent as the lines of `cardsync-agent status`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cardsync_agent import clock
from cardsync_agent.shops.rest import Rest
from cardsync_agent.shops.status_file import Status


@dataclass(frozen=True)
class Known:
    """`runs` is whether a process has the folder's lock. `unfinished` names a sync or task that
    an ended agent left in its journal.
    """

    runs: bool
    status: Status | None
    rest: Rest | None
    unfinished: str | None


def state_of(known: Known) -> str:
    """Return the agent's state as one word for programs."""
    if not known.runs:
        return "stopped"
    if known.status is None:
        return "unknown"
    if known.status.your_turn:
        return "your_turn"
    if known.rest and known.status.state != "working":
        return "paused"
    return "offline" if known.status.trouble else known.status.state


def lines_of(known: Known, now: datetime) -> list[str]:
    """Return the lines about the agent, the most important first."""
    if not known.runs:
        return _stopped(known, now)
    if (status := known.status) is None:
        return ["running; what it does is not known"]
    lines = [_doing(known, status)]
    if status.your_turn:
        lines.insert(0, f"YOUR TURN: {status.your_turn}")
    if known.rest and status.state == "working":
        lines.append(f"then {known.rest.text}")
    if status.trouble:
        lines.append(f"trouble: {status.trouble}")
    lines.append(_polls(status, now))
    return lines + _last(status, now) + ([status.update] if status.update else [])


def _stopped(known: Known, now: datetime) -> list[str]:
    lines = ["not running; `cardsync-agent run` or `cardsync-agent service install` starts it"]
    if known.unfinished:
        lines.append(f"the next start goes on with {known.unfinished}")
    if known.rest:
        lines.append(known.rest.text)
    return lines + (_last(known.status, now) if known.status else [])


def _doing(known: Known, status: Status) -> str:
    if status.state == "working":
        step = f": {status.step.replace('_', ' ')}" if status.step else ""
        return f"{status.text}{step}"
    if known.rest:
        return known.rest.text
    if status.state == "started":
        return "starting"
    return status.text or "waiting for the next question to the server"


def _polls(status: Status, now: datetime) -> str:
    if status.last_poll is None:
        return "the server has not answered yet"
    text = f"the server answered {_ago(status.last_poll, now)}"
    if status.next_poll is not None:
        left = (clock.read_rfc3339(status.next_poll) - now).total_seconds()
        text += f", next question in {clock.span(max(0.0, left))}"
    return text + (f" (sync mode {status.mode})" if status.mode else "")


def _last(status: Status, now: datetime) -> list[str]:
    if status.last_end is None or status.last_end_at is None:
        return []
    return [f"last: {status.last_end} ({_ago(status.last_end_at, now)})"]


def _ago(moment: str, now: datetime) -> str:
    return f"{clock.span(max(0.0, (now - clock.read_rfc3339(moment)).total_seconds()))} ago"
