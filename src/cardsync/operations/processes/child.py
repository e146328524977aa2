"""Manages one process of the service: its supervisor starts it again when it dies, and stops it."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass

from cardsync.platform import clock
from cardsync.platform.settings import PREFIX, Settings

STOP_SECONDS = 25
# A process that fails this soon after its start, this often in a row, is given up; the pauses
# between the starts add up to 12 s.
QUICK_SECONDS = 10
MAX_QUICK_DEATHS = 6
# The exit statuses of a process that a person or a system ended on purpose.
_KILLED = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT}


@dataclass
class Child:
    """A child process of the supervisor, restarted unless it was stopped."""

    name: str
    command: list[str]
    env: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0
    # Consecutive deaths soon after the start.
    quick_deaths: int = 0
    deaths: int = 0
    restart_at: float | None = None

    def start(self, stdin: int = subprocess.DEVNULL) -> None:
        self.started_at = clock.monotonic()
        self.restart_at = None
        # A separate session: Ctrl-C in the terminal reaches only the supervisor, which stops
        # processes in order.
        self.process = subprocess.Popen(
            self.command,
            env=self.env,
            start_new_session=True,
            stdin=stdin,
        )

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def died(self, *, starting: bool) -> None:
        """Schedule the next start: immediately, or after a growing pause if the process repeatedly
        fails soon after its start.

        A process that was killed on purpose has not failed, but a process that never becomes ready
        is given up in any case.
        """
        assert self.process is not None
        self.deaths += 1
        now = clock.monotonic()
        failed = starting or self.process.returncode not in _KILLED
        self.quick_deaths = (
            self.quick_deaths + 1 if failed and now - self.started_at < QUICK_SECONDS else 0
        )
        self.restart_at = now + (min(0.25 * 2**self.quick_deaths, 5) if self.quick_deaths else 0)


def child_env(settings: Settings) -> dict[str, str]:
    """Return a child's environment: the same settings, and the parent to watch."""
    assert settings.database_url is not None
    passed = {
        "DATABASE_URL": settings.database_url,
        "DATA_DIR": str(settings.data_dir),
        "BIND": settings.bind,
        "WEB_WORKERS": str(settings.web_workers),
        "DAILY_BACKUPS": str(bool(settings.daily_backups)).lower(),
        "PARENT": str(os.getpid()),
    }
    return {**os.environ, **{PREFIX + name: value for name, value in passed.items()}}


def stop(children: list[Child]) -> None:
    """Send SIGTERM to all children, and SIGKILL to those that still run after `STOP_SECONDS`."""
    running = [
        child.process for child in children if child.process and child.process.poll() is None
    ]
    for process in running:
        process.terminate()
    deadline = clock.monotonic() + STOP_SECONDS
    for process in running:
        try:
            process.wait(max(0.1, deadline - clock.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
