"""Real agent processes, cheaply: a small program imports the agent once and forks it per run,
optionally to die by SIGKILL on the way.

A *point* is a moment at which something outside the process changes: a file is renamed into
place, or a request is sent. `run(..., kill_at=n, side="before")` kills the agent right before (or
after) its n-th point. Nothing in the agent knows of this.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAST = {
    "SETTLE": "0.02",
    "RETRY_FIRST": "0.01",
    "RETRY_MOST": "0.05",
    "REFUSED": "0.05",
    "POLL_FIRST": "0.005",
    "POLL_MOST": "0.01",
    "CONTACT": "2",
    "PATIENCE": "2",
    "ELSEWHERE": "0.1",
    "INTERVAL": "5",
}


@dataclass(frozen=True)
class Ended:
    returncode: int
    events: list[dict[str, Any]]
    points: list[str]
    errors: str

    def named(self, event: str) -> list[dict[str, Any]]:
        return [e for e in self.events if e["event"] == event]


class Agents:
    """The forking program, and one place for the agents' output."""

    def __init__(self, directory: Path) -> None:
        self._out = directory / "agent-output"
        self._program = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {f"CARDSYNC_AGENT_PACE_{name}": value for name, value in FAST.items()},
        )

    def run(self, *argv: str, kill_at: int = 0, side: str = "before") -> Ended:
        order = {"argv": ["run", "--json-events", *argv], "kill_at": kill_at, "side": side}
        returncode, read = self._order(order)
        events = [json.loads(line) for line in read["events"].splitlines()]
        return Ended(returncode, events, read["points"].splitlines(), read["errors"])

    def command(self, *argv: str, environ: dict[str, str]) -> tuple[int, str, str]:
        """Any command in an environment of its own; returns exit code, output and errors."""
        order = {"argv": argv, "environ": environ, "kill_at": 0, "side": "before"}
        returncode, read = self._order(order)
        return returncode, read["events"], read["errors"]

    def _order(self, order: dict[str, Any]) -> tuple[int, dict[str, str]]:
        assert self._program.stdin
        assert self._program.stdout
        self._program.stdin.write(json.dumps({**order, "out": str(self._out)}) + "\n")
        self._program.stdin.flush()
        returncode = json.loads(self._program.stdout.readline())
        read = {
            kind: Path(f"{self._out}.{kind}").read_text() for kind in ("events", "points", "errors")
        }
        return returncode, read

    def close(self) -> None:
        assert self._program.stdin
        assert self._program.stdout
        self._program.stdin.close()
        self._program.wait(60)
        self._program.stdout.close()


def _serve_orders() -> None:
    # These cost time once: the imports, and reading the system's certificates.
    from cardsync_agent import cli

    certificates = ssl.create_default_context()
    ssl.create_default_context = lambda **kwargs: certificates
    for line in sys.stdin:
        order = json.loads(line)
        if (child := os.fork()) == 0:
            _be_the_agent(cli.main, order)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps(os.waitstatus_to_exitcode(status)) + "\n")
        sys.stdout.flush()


def _be_the_agent(main: Callable[[list[str]], int], order: dict[str, Any]) -> None:
    if "environ" in order:
        os.environ.clear()
        os.environ.update(order["environ"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.fsync = lambda handle: None  # costly, and a kill is no power cut
    signal.alarm(20)  # a hanging agent is a failing test, not a hanging suite
    for stream, kind in ((1, "events"), (2, "errors")):
        os.dup2(os.open(f"{order['out']}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    with Path(f"{order['out']}.points").open("w", buffering=1) as points:
        _arm(points.write, order["kill_at"], order["side"])
        try:
            code = main(order["argv"])
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 70
    sys.stdout.flush()
    os._exit(code)


def _arm(note: Callable[[str], object], kill_at: int, side: str) -> None:
    import httpx

    passed = 0

    def wrap(real: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def point(*args: Any, **kwargs: Any) -> Any:
            nonlocal passed
            passed += 1
            mine = passed == kill_at
            note(name(*args) + "\n")
            if mine and side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*args, **kwargs)
            if mine and side == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return point

    os.replace = wrap(
        os.replace, lambda part, target: f"write {Path(target).parent.name}/{Path(target).name}"
    )
    httpx.Client.send = wrap(
        httpx.Client.send, lambda client, request: f"{request.method} {request.url.path}"
    )  # type: ignore[method-assign]


if __name__ == "__main__":
    _serve_orders()
