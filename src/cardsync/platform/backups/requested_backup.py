"""Records the backup that a person requests on a page. `cardsync serve` makes the backup, because
web processes may not read every table. A file in DATA_DIR records whether a backup is requested or
running.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from cardsync.platform import errors

State = Literal["offered", "asked", "running"]
_STATES: Final[dict[str, State]] = {one: one for one in ("offered", "asked", "running")}
_FILE: Final = "backup-asked"


def read(folder: Path) -> State | None:
    """Return the state in a data folder, or None if no `serve` process makes backups."""
    try:
        return _STATES.get((folder / _FILE).read_text().strip())
    except OSError:
        return None


def write(folder: Path, state: State) -> None:
    draft = folder / f".{_FILE}-{os.getpid()}"
    draft.write_text(state)
    draft.replace(folder / _FILE)


def ask(folder: Path) -> bool:
    """Request a backup; return False if one is already requested or running. Raises NotFound."""
    match read(folder):
        case None:
            raise errors.NotFound("automatic backups are off on this server")
        case "offered":
            write(folder, "asked")
            return True
        case _:
            return False


def forget(folder: Path) -> None:
    (folder / _FILE).unlink(missing_ok=True)
