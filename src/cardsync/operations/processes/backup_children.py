"""Makes the daily backup, a backup that a page requests, and the restore that the set-up page
requests, in separate processes while the service runs.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import psycopg

from cardsync.operations import requested_restore
from cardsync.operations.processes.child import Child, child_env, stop
from cardsync.platform import clock
from cardsync.platform.backups import requested_backup
from cardsync.platform.backups.backup_folder import newest
from cardsync.platform.backups.backup_schedule import is_due
from cardsync.platform.concurrency import every_in_thread
from cardsync.platform.database.urls import connect
from cardsync.platform.settings import PREFIX, Settings

# Seconds from the start to the first check for a due backup, and between two checks; requests from
# a page are checked far more often.
_BACKUP_SECONDS: Final = 300
_ASKED_SECONDS: Final = 2


@contextmanager
def daily_backups(ready: Settings) -> Iterator[None]:
    """Make the daily backup when it is due, and requested backups, each in its own process."""
    if not ready.daily_backups:
        requested_backup.forget(ready.data_dir)
        yield
        return
    folder = ready.backups_folder
    requested_backup.write(ready.data_dir, "offered")

    def run(command: str) -> None:
        child = _backup_child(ready, command)
        child.start()
        while child.runs() and not over.wait(0.5):
            pass
        stop([child])

    looked = time.monotonic()

    def watch() -> None:
        nonlocal looked
        restore = requested_restore.read(ready.data_dir)
        if restore and restore.is_under_way:
            return
        if requested_backup.read(ready.data_dir) == "asked":
            requested_backup.write(ready.data_dir, "running")
            run("now")
            requested_backup.write(ready.data_dir, "offered")
        if time.monotonic() - looked < _BACKUP_SECONDS:
            return
        looked = time.monotonic()
        if not is_due(clock.now(), newest(folder)):
            return
        with suppress(psycopg.Error):
            if has_no_seller(ready):
                return
        run("daily")

    try:
        with every_in_thread(_ASKED_SECONDS, watch, "backups_not_watched") as over:
            yield
    finally:
        requested_backup.forget(ready.data_dir)


def _backup_child(ready: Settings, command: str) -> Child:
    env = child_env(ready)
    env[f"{PREFIX}MIGRATION_DATABASE_URL"] = str(ready.migration_database_url)
    return Child("backup", [sys.executable, "-m", "cardsync", "backup", command], env)


@contextmanager
def first_restore(ready: Settings) -> Iterator[Callable[[list[Child]], None]]:
    """Yield the function that performs a restore requested on the set-up page, while the
    installation has no shop.
    """
    folder = ready.data_dir
    if not has_no_seller(ready):
        requested_restore.forget(folder)
        yield lambda children: None
        return
    requested_restore.offer(folder)
    child = _backup_child(ready, "restore-asked")

    def go_on(children: list[Child]) -> None:
        if child.process is not None and not child.runs():
            requested_restore.end(folder, "the restore was stopped; nothing has changed")
            child.process = None
        asked = requested_restore.read(folder)
        if asked is None:
            return
        if asked.state == "asked" and child.process is None:
            child.start(stdin=subprocess.PIPE)
        elif asked.state == "switching" and child.process is not None:
            # Open pages that show the state reload within this time; they see the switch and then
            # wait longer.
            threading.Event().wait(requested_restore.RELOAD_SECONDS + 1)
            stop(children)
            _let_end(child)
            for each in children:
                each.start()

    try:
        yield go_on
    finally:
        if child.runs():
            stop([child])


def _let_end(child: Child) -> None:
    """Let a child continue that waits for the end of its input."""
    assert child.process is not None
    assert child.process.stdin is not None
    child.process.stdin.close()
    child.process.wait()


def has_no_seller(settings: Settings) -> bool:
    assert settings.database_url is not None
    with connect(settings.database_url) as connection:
        return connection.execute("SELECT FROM seller LIMIT 1").fetchone() is None
