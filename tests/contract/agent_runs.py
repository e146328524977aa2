"""Steps that the agent's tests repeat: they save an export in the inbox, run the agent once and
read the one cycle that it reported.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.contract.agent_fake_server import KEY, FakeServer
from tests.contract.agent_process import Agents, Ended


def drop(folder: Path, content: bytes, name: str = "export.csv") -> None:
    """An export saved long ago."""
    path = folder / "inbox" / name
    path.write_bytes(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def once(
    agents: Agents,
    server: FakeServer,
    folder: Path,
    *more: str,
    key: str = KEY,
    kill_at: int = 0,
    side: str = "before",
) -> Ended:
    arguments = ("--server", server.url, "--key", key, "--folder", str(folder), "--once", *more)
    return agents.run(*arguments, kill_at=kill_at, side=side)


def the_log(server: FakeServer) -> tuple[str, dict[str, tuple[str, str | None]]]:
    """The one cycle's status, and each step's status and error."""
    [log] = server.cycles().values()
    return log["status"], {step["name"]: (step["status"], step["error"]) for step in log["steps"]}
