"""Runs every shop of the settings file in its own process, and restarts a failed process after
growing delays; the other shops continue.

A child ends when its standard input ends, so on every platform it ends together with this process.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from cardsync_agent import clock
from cardsync_agent.events import Reporter
from cardsync_agent.pace import Pace, Stop, Stopped, backoff

TICK = 0.1
# A child that ran this long has recovered: its next failure counts as the first.
HEALTHY = 600.0
# A step ends within this time, or the child is killed; the journal makes that safe.
ENDING = 90.0


@dataclass
class Child:
    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    not_before: float = 0.0


class Crew:
    """`commands` are the shops' names, each with the command that runs it."""

    def __init__(
        self, commands: dict[str, list[str]], say: Reporter, pace: Pace, stop: Stop
    ) -> None:
        self._children = [Child(name, command) for name, command in commands.items()]
        self._say, self._pace, self._stop = say, pace, stop

    def run(self) -> int:
        """Run until a signal arrives."""
        try:
            while True:
                for child in self._children:
                    self._look_after(child)
                self._stop.sleep(TICK)
        except Stopped:
            return 0
        finally:
            end_all(self._children)

    def once(self) -> int:
        """Run each shop once, in parallel; return 0, or the worst exit code."""
        try:
            for child in self._children:
                start(child)
            while any(child.process and child.process.poll() is None for child in self._children):
                self._stop.sleep(TICK)
        except Stopped:
            pass
        finally:
            end_all(self._children)
        codes: list[int] = [child.process.returncode for child in self._children if child.process]
        return max((abs(code) for code in codes), default=0)

    def _look_after(self, child: Child) -> None:
        if child.process is None:
            if clock.monotonic() >= child.not_before:
                start(child)
            return
        if (code := child.process.poll()) is None:
            return
        lived = clock.monotonic() - child.started
        close(child)
        child.failures = 1 if lived > HEALTHY else child.failures + 1
        delay = self._pace.retry_first + backoff(child.failures, self._pace)
        child.not_before = clock.monotonic() + delay
        text = f"the shop {child.name} ended with exit code {code}; next start in {delay:.0f} s"
        self._say(
            "shop_ended", text, problem=True, ended=child.name, exit_code=code,
            seconds=round(delay, 1),
        )  # fmt: skip


def start(child: Child) -> None:
    child.started = clock.monotonic()
    child.process = subprocess.Popen(child.command, stdin=subprocess.PIPE)


def close(child: Child) -> None:
    """Remove an ended process."""
    if child.process is not None:
        if child.process.stdin is not None:
            child.process.stdin.close()
        child.process.wait()
    child.process = None


def end_all(children: Sequence[Child]) -> None:
    """Let every child end at its next safe point; kill a child that does not end in time."""
    living = [child.process for child in children if child.process is not None]
    for process in living:
        if process.stdin is not None:
            process.stdin.close()
    ends = clock.monotonic() + ENDING
    for process in living:
        try:
            process.wait(max(0.0, ends - clock.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def stop_with_parent(stop: Stop) -> None:
    """Request the stop when standard input ends."""

    def watch() -> None:
        # The descriptor is read directly, because a thread that waits in a buffered file would
        # block the interpreter's end.
        while os.read(0, 1):
            pass
        stop.requested = True

    threading.Thread(target=watch, daemon=True).start()
