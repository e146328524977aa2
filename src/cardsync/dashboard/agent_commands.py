"""Writes the commands that install the sync app and start it with its key, quoted for the shell of
each operating system. Pure.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

FOLDER: Final = "cards"
_PLACE: Final = "cardsync-sync"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:-]+")


class Shell(NamedTuple):
    """The commands for one shell: a person pastes all `lines` into `program` at once."""

    key: str
    system: str
    program: str
    lines: str


def shells(server: str, app: str, api_key: str) -> list[Shell]:
    """Return the commands for each operating system. `app` is the address from which pip installs
    the sync app. Raises ValueError for an invalid address, or one with characters that a shell
    would interpret.
    """
    for place in (server, app):
        if not _PLAIN.fullmatch(place.replace("[", "").replace("]", "")):
            raise ValueError(f"{place!r} is no address")
    if not _PLAIN.fullmatch(api_key):
        raise ValueError("this is no key")
    run = f'run --server "{server}" --folder {FOLDER}'
    windows = f'py -m pip install --user "{app}"', f"py -m cardsync_agent {run}"
    # The Python of macOS and Linux refuses to install packages beside the system's own.
    unix = _lines(
        f'python3 -m venv "$HOME/{_PLACE}"',
        f'"$HOME/{_PLACE}/bin/pip" install "{app}"',
        f'export CARDSYNC_AGENT_KEY="{api_key}"',
        f'"$HOME/{_PLACE}/bin/cardsync-agent" {run}',
    )
    in_powershell = _lines(windows[0], f'$env:CARDSYNC_AGENT_KEY = "{api_key}"', windows[1])
    in_cmd = _lines(windows[0], f'set "CARDSYNC_AGENT_KEY={api_key}"', windows[1])
    return [
        Shell("powershell", "Windows", "PowerShell", in_powershell),
        Shell("cmd", "Windows (cmd)", "Command Prompt", in_cmd),
        Shell("macos", "Mac", "Terminal", unix),
        Shell("linux", "Linux", "a terminal", unix),
    ]


def _lines(*lines: str) -> str:
    return "\n".join(lines)
