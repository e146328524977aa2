"""Stores the repairs that this agent has used or that wait for a person, in its home folder. A
repair that a person called wrong is never used again, whoever proposes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from cardsync_agent import durable
from cardsync_agent.state import wait_for_lock

_FILE, _LOCK = "kept-repairs.json", "kept-repairs.lock"
_MOST = 500
State = Literal["proposed", "confirmed", "used", "failed", "wrong"]


class KeptRepair(msgspec.Struct, kw_only=True):
    """`lost` describes the element as the pack has it, `found` is the selector that replaces it.

    The states: a proposed repair waits for a person, who then approves it (confirmed) or rejects it
    (wrong). A used repair was tried in a reading step, and the step's post-condition was satisfied;
    after a failed repair the post-condition was not satisfied.
    """

    number: int
    workflow: str
    step: str
    element: str
    lost: str
    found: str
    shows: str = ""
    page_url: str = ""
    state: State = "proposed"
    correction_id: int = 0
    # Whether the server has received the report that the repair worked.
    confirmed: bool = False
    # A person's answer that was not sent to the server yet.
    unsent: bool = False

    def line(self) -> str:
        what = f"{self.workflow}, {self.step}: {self.element.replace('_', ' ')}"
        shows = f' which shows "{self.shows}"' if self.shows else ""
        return f"{self.number}  {self.state}: {what} would be {self.found}{shows}, {self.page_url}"


class KeptRepairs:
    """The stored repairs. Each call reads the file, because `cardsync-agent repairs` writes it
    beside a running agent.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    def all(self) -> list[KeptRepair]:
        try:
            return msgspec.json.decode((self._home / _FILE).read_bytes(), type=list[KeptRepair])
        except (OSError, msgspec.MsgspecError):
            return []

    def usable(self, workflow: str, step: str, lost: str, *, changes: bool) -> list[KeptRepair]:
        """Return the repairs that may be tried without asking the person; for a step that changes
        something, only confirmed repairs.
        """
        states = ("confirmed",) if changes else ("confirmed", "used")
        return [one for one in self._of(workflow, step, lost) if one.state in states]

    def wrong(self, workflow: str, step: str, lost: str) -> list[str]:
        """Return the selectors that a person called wrong."""
        return [one.found for one in self._of(workflow, step, lost) if one.state == "wrong"]

    def note(self, repair: KeptRepair) -> KeptRepair:
        """Store a repair, or its new state. A wrong repair stays wrong. A confirmed repair
        becomes a proposed repair again if its element now has another text.
        """
        with self._changing() as kept:
            for one in kept:
                if _same(one, repair):
                    if one.state != "wrong" and (one.state, repair.state) != ("confirmed", "used"):
                        one.state, one.shows = repair.state, repair.shows
                    one.correction_id, one.confirmed = repair.correction_id, repair.confirmed
                    return one
            repair.number = max((one.number for one in kept), default=0) + 1
            kept.append(repair)
            return repair

    def decide(self, number: int, state: Literal["confirmed", "wrong"]) -> KeptRepair | None:
        """Store a person's answer. Return None if there is no such repair."""
        with self._changing() as kept:
            for one in kept:
                if one.number == number:
                    one.state, one.unsent = state, True
                    return one
        return None

    def send_answers(self, send: Callable[[KeptRepair], None]) -> None:
        """Pass each unsent answer to `send`; it counts as sent if that succeeds."""
        for one in [one for one in self.all() if one.unsent]:
            send(one)
            with self._changing() as kept:
                for other in kept:
                    if other.number == one.number and other.state == one.state:
                        other.unsent = False

    def _of(self, workflow: str, step: str, lost: str) -> list[KeptRepair]:
        key = (workflow, step, lost)
        return [one for one in self.all() if (one.workflow, one.step, one.lost) == key]

    @contextmanager
    def _changing(self) -> Iterator[list[KeptRepair]]:
        with (self._home / _LOCK).open("a+b") as lock:
            wait_for_lock(lock)
            kept = self.all()
            yield kept
            # A person's decision is never dropped.
            spare = [one for one in kept if one.state in ("failed", "used", "proposed")]
            for old in spare[: max(0, len(kept) - _MOST)]:
                kept.remove(old)
            durable.write(self._home / _FILE, msgspec.json.encode(kept))


def _same(one: KeptRepair, other: KeptRepair) -> bool:
    return (one.workflow, one.step, one.lost, one.found) == (
        other.workflow, other.step, other.lost, other.found,
    )  # fmt: skip
