"""Finds and stops the server of one embedded PostgreSQL cluster, and removes the remains of a
crash.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from cardsync.operations.processes.embedded_host import SOCKET_NAME, EmbeddedError
from cardsync.platform import clock

STOP_SECONDS = 120.0
REPORT_SECONDS = 3.0
POLL_SECONDS = 0.02
# How long processes that outlived their server may take to end: on their own, after SIGQUIT, after
# SIGKILL.
REMAINS_SECONDS = (2.0, 3.0, 10.0)

Say = Callable[[str], None]


def is_up(cluster: Path) -> bool:
    """Return whether the main process is running; cheap enough to check twice a second."""
    with suppress(psutil.Error, OSError, ValueError, IndexError):
        process = psutil.Process(int(pid_file(cluster)[0]))
        return bool(process.name() == "postgres" and process.status() != psutil.STATUS_ZOMBIE)
    return False


def clear_remains(cluster: Path, sockets: Path, say: Say) -> None:
    """End processes that outlived their server after a crash: they write to its files and memory,
    and no new server starts beside them. Also remove lock files, because no server starts while a
    lock file names a process ID that is in use, even by a dead server that was not reaped.
    """
    for signum, patience in zip(
        (None, signal.SIGQUIT, signal.SIGKILL),
        REMAINS_SECONDS,
        strict=True,
    ):
        for process in _processes(cluster) if signum else []:
            with suppress(psutil.Error):
                process.send_signal(signum)
        if wait(
            lambda: not _processes(cluster),
            patience,
            say,
            "Processes of a crashed PostgreSQL are ending",
        ):
            break
    else:
        pids = ", ".join(str(process.pid) for process in _processes(cluster))
        raise EmbeddedError(
            f"Processes of a crashed server still use {cluster} and do not end: {pids}."
        )
    for stale in (
        cluster / "postmaster.pid",
        sockets / SOCKET_NAME,
        sockets / f"{SOCKET_NAME}.lock",
    ):
        stale.unlink(missing_ok=True)


def stop(cluster: Path, say: Say) -> None:
    """Stop the server in fast mode: clients are disconnected, the data is written.

    If that takes too long, stop the server in immediate mode; the next start recovers.
    """
    for signum, patience in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 10.0)):
        server = living(cluster)
        if server is None:
            return
        with suppress(psutil.Error):
            server.send_signal(signum)
        ended = partial(_has_ended, server)
        if wait(ended, patience, say, "PostgreSQL is stopping"):
            return


def _has_ended(process: Any) -> bool:
    with suppress(
        ChildProcessError
    ):  # a dead child of this process must be reaped; another dead process needs nothing
        os.waitpid(process.pid, os.WNOHANG)
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def living(cluster: Path) -> Any | None:
    """Return the living server of exactly this cluster.

    The process ID file may name a dead process, or a later process with the same ID.
    """
    lines = pid_file(cluster)
    return next(
        (process for process in _processes(cluster) if lines[:1] == [str(process.pid)]), None
    )


def pid_file(cluster: Path) -> list[str]:
    """Read process, folder, start, port, socket folder, address, memory, state; fewer while the
    server starts.
    """
    with suppress(FileNotFoundError):
        return [
            os.fsdecode(line).strip()
            for line in (cluster / "postmaster.pid").read_bytes().splitlines()
        ]
    return []


def _processes(cluster: Path) -> list[Any]:
    """Find the server and backends of this cluster: all of them work in its folder.

    Dead processes that were not reaped do not count.
    """

    def belongs(process: Any) -> bool:
        with suppress(psutil.Error, OSError):
            return process.name() == "postgres" and Path(process.cwd()) == cluster
        return False

    return [process for process in psutil.process_iter() if belongs(process)]


def wait(
    done: Callable[[], bool],
    limit: float,
    say: Say,
    what: str,
) -> bool:
    """Poll until `done`, and report `what` every few seconds. Return False when the time is
    over.
    """
    begun = reported = clock.monotonic()
    while not done():
        now = clock.monotonic()
        if now - begun > limit:
            return False
        if now - reported >= REPORT_SECONDS:
            reported = now
            say(f"{what} ({now - begun:.0f} s)")
        time.sleep(POLL_SECONDS)
    return True
