"""Writes the commands that install the sync app and start it with its key, as each system's shell
reads them. Pure.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

PACKAGE: Final = "cardsync-agent"
FOLDER: Final = "cards"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:-]+")


class Shell(NamedTuple):
    """`lines` are to be pasted together into `program`."""

    key: str
    system: str
    program: str
    lines: str


def shells(server: str, api_key: str) -> list[Shell]:
    """Return the commands of each system, for an address that no shell reads in its own way.

    Raises ValueError for one that is none.
    """
    if not _PLAIN.fullmatch(server.replace("[", "").replace("]", "")):
        raise ValueError(f"{server!r} is no address")
    if not _PLAIN.fullmatch(api_key):
        raise ValueError("this is no key")
    run = f'cardsync_agent run --server "{server}" --folder {FOLDER}'
    unix = f'cardsync-agent run --server "{server}" --folder {FOLDER}'
    return [
        Shell(
            "powershell",
            "Windows",
            "PowerShell",
            _lines(
                f"py -m pip install --user {PACKAGE}",
                f'$env:CARDSYNC_AGENT_KEY = "{api_key}"',
                f"py -m {run}",
            ),
        ),
        Shell(
            "cmd",
            "Windows (cmd)",
            "Command Prompt",
            _lines(
                f"py -m pip install --user {PACKAGE}",
                f'set "CARDSYNC_AGENT_KEY={api_key}"',
                f"py -m {run}",
            ),
        ),
        Shell(
            "macos",
            "Mac",
            "Terminal",
            _lines(
                f"python3 -m pip install --user {PACKAGE}",
                f'export CARDSYNC_AGENT_KEY="{api_key}"',
                f"python3 -m {run}",
            ),
        ),
        Shell(
            "linux",
            "Linux",
            "a terminal",
            _lines(
                f"pipx install {PACKAGE}",
                f'export CARDSYNC_AGENT_KEY="{api_key}"',
                f'"$HOME/.local/bin/cardsync-agent" {unix.partition(" ")[2]}',
            ),
        ),
    ]


def _lines(*lines: str) -> str:
    return "\n".join(lines)
