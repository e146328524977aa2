"""The agent's commands as a person runs them: processes with a home of their own, with or without a
terminal.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.contract.agent_process import FAST, Agents

from waiting import until

AGENT = [sys.executable, "-m", "cardsync_agent"]
SECONDS = 60


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str = ""


class Person:
    """A person's home directory on a computer; `bin` comes first in the path."""

    def __init__(self, home: Path, agents: Agents) -> None:
        self._agents = agents
        self.home, self.bin = home, home / "bin"
        self.bin.mkdir(parents=True)
        self.config = home / ".config" / "cardsync-agent" / "agent.toml"
        # Variables that begin like this stay as the test has set them.
        self.keeps: tuple[str, ...] = ()

    def environ(self, **pace: str) -> dict[str, str]:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CARDSYNC_AGENT_", "XDG_"))
            or (self.keeps and name.startswith(self.keeps))
        }
        all_pace = {**FAST, "INTERVAL": "0.05", "CONTACT": "30", **pace}
        return (
            clean
            | {"HOME": str(self.home), "PATH": f"{self.bin}:{os.environ['PATH']}"}
            | {f"CARDSYNC_AGENT_PACE_{name}": value for name, value in all_pace.items()}
        )

    def writes(self, settings: str, key: str = "csk_test") -> None:
        """The settings by hand, with the key in a file beside them."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(settings)
        file = self.config.with_name("the.key")
        file.write_text(key)
        file.chmod(0o600)

    def runs(self, *words: str) -> Said:
        return Said(*self._agents.command(*words, environ=self.environ()))

    @contextmanager
    def keeps_running(self, *words: str, **pace: str) -> Iterator[Background]:
        running = Background(
            [*AGENT, *words], self.environ(**pace), self.home / f"output-{words[0]}"
        )
        try:
            yield running
        finally:
            running.stop()

    def answers(self, answers: list[str], *words: str) -> Said:
        """At a terminal: each answer waits for a question; `^C` interrupts."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvpe(AGENT[0], [*AGENT, *words], self.environ())
        shown, seen, left = "", 0, list(answers)
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    part = os.read(terminal, 65_536).decode()
                except OSError:  # the other end is closed
                    break
                shown += part
            elif shown.endswith(": ") and len(shown) > seen and left:
                # The terminal shows answers: what ends so afterwards is the next question.
                answer = left.pop(0)
                os.write(terminal, b"\x03" if answer == "^C" else f"{answer}\n".encode())
                seen = len(shown)
        else:
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert not left, shown
        return Said(code, shown.replace("\r\n", "\n"))


class Background:
    """A process that works until it is stopped; its output goes to a file."""

    def __init__(self, command: list[str], environ: dict[str, str], output: Path) -> None:
        self._output = output
        with output.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def said(self) -> str:
        return self._output.read_text()

    def wait_for(self, words: str, times: int = 1) -> None:
        until(lambda: self.said().count(words) >= times, self.said)

    def stop(self, number: int = signal.SIGTERM) -> int:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
