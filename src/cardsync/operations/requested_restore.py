"""Records the restore that a person requests on the set-up page. `cardsync serve` performs the
restore, because only `serve` can stop the processes that use the database; a file in DATA_DIR
records the progress.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from cardsync.platform import errors
from cardsync.platform.backups import backup_folder

if TYPE_CHECKING:
    from cardsync.operations.installation_backups import InstallationBackups

_FILE, _LOCK = "restore.json", ".restore.lock"
# Seconds after which pages with the state reload; more while web processes restart.
RELOAD_SECONDS: Final = 3
SWITCH_SECONDS: Final = 20
_UNDER_WAY: Final = ("asked", "loading", "switching")


class RestoreRequest(msgspec.Struct, frozen=True):
    """A backup's name and the outcome of its restore. `failure` is one sentence. The state
    `offered` means that `serve` can restore a backup.
    """

    name: str = ""
    state: Literal["offered", "asked", "loading", "switching", "failed"] = "offered"
    failure: str = ""

    @property
    def is_under_way(self) -> bool:
        return self.state in _UNDER_WAY


def read(folder: Path) -> RestoreRequest | None:
    """Return the request in a data folder. Return None if no `serve` process restores backups."""
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=RestoreRequest)
    except (OSError, msgspec.MsgspecError):
        return None


def offer(folder: Path) -> None:
    """Allow a request for a restore. A restore that an earlier start left unfinished counts as
    failed.
    """
    end(folder, "cardsync was stopped before it ended; nothing has changed")
    if read(folder) is None:
        _write(folder, RestoreRequest())


def ask(folder: Path, name: str) -> None:
    """Request the restore of a backup. Raises NotFound if `serve` does not restore backups or the
    name is not a backup's, and RestoreUnderWay.
    """
    # If two members request a restore at the same time, one request is refused.
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = read(folder)
        if before is None or backup_folder.moment_of(name) is None:
            raise errors.NotFound("there is no backup of that name")
        if before.is_under_way:
            raise errors.RestoreUnderWay
        _write(folder, RestoreRequest(name, "asked"))


def forget(folder: Path) -> None:
    (folder / _FILE).unlink(missing_ok=True)


def end(folder: Path, failure: str) -> None:
    """Record that the restore failed, unless its end is recorded already."""
    asked = read(folder)
    if asked is not None and asked.is_under_way:
        _write(folder, RestoreRequest(asked.name, "failed", failure))


def carry_out(folder: Path, backups: InstallationBackups, pause: Callable[[], object]) -> None:
    """Restore the requested backup. `pause` returns when the service's processes have ended. Raises
    CommandError.
    """
    asked = read(folder)
    if asked is None or asked.state != "asked":
        return
    _write(folder, RestoreRequest(asked.name, "loading"))

    def stop_service() -> None:
        _write(folder, RestoreRequest(asked.name, "switching"))
        pause()

    try:
        backups.restore_first(asked.name, stop_service)
    except (errors.CommandError, RuntimeError, OSError) as e:
        end(folder, str(e)[:1000])
        raise
    forget(folder)


def _write(folder: Path, asked: RestoreRequest) -> None:
    draft = folder / f".{_FILE}-{os.getpid()}"
    draft.write_bytes(msgspec.json.encode(asked))
    draft.replace(folder / _FILE)
