"""Checks that the API's address and the data folder are free, or raises one sentence if they stay
in use.

A web process has a lock in the data folder while it lives, also shortly after its supervisor was
killed. If the address is in use but the lock is free, another program uses the address, and the
start does not wait.
"""

from __future__ import annotations

import errno
import fcntl
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cardsync.operations.processes.embedded_host import is_root, make_folder
from cardsync.platform import clock
from cardsync.platform.settings import Settings

# Processes of a killed supervisor may use the address for this long; the next supervisor waits.
WAIT_SECONDS = 10


@contextmanager
def held(settings: Settings) -> Iterator[None]:
    """Hold a lock by which the next `cardsync serve` detects that a web process of this data folder
    is running.

    Forked processes have the lock as well.
    """
    run_folder(settings)
    with _lock(settings).open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """Lock the data folder against a second supervisor while the block lasts: both would start
    workers and delete each other's metrics. Raises RuntimeError if there is another supervisor.
    When a supervisor is killed, its lock ends.
    """
    path = run_folder(settings) / "serve.lock"
    with path.open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"another cardsync serves the data folder {settings.data_dir} already; stop it, or choose another folder by --data-dir"
            ) from None
        yield


def run_folder(settings: Settings) -> Path:
    """Return DATA_DIR/run, which only its owner may read; an earlier version left it open to all.

    Raises RuntimeError if its mode cannot be changed.
    """
    folder = settings.data_dir / "run"
    try:
        # Under root, the database's user must be able to reach its own folder.
        make_folder(settings.data_dir, 0o711 if is_root() else 0o700)
        make_folder(folder, 0o700)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as e:
        raise RuntimeError(f"the data folder {settings.data_dir} cannot be used: {e}") from e
    return folder


def find_free(settings: Settings, say: Callable[[str], None]) -> None:
    """Check that no other program listens on the address: another cardsync would answer /readyz
    instead of this installation. Raises RuntimeError.
    """
    deadline = clock.monotonic() + WAIT_SECONDS
    pause = threading.Event()
    reported = False
    while problem := _bind_problem(settings):
        ours = problem.errno == errno.EADDRINUSE and _is_held(_lock(settings))
        # The other process may have ended between the two checks.
        if not ours and not (problem := _bind_problem(settings)):
            return
        why = f"{problem.strerror or problem}"
        if not ours or clock.monotonic() > deadline:
            raise RuntimeError(
                f"cannot serve on {settings.bind}: {why}; --host and --port choose another address"
            )
        if not reported:
            say(
                f"{settings.bind}: {why}, maybe by a cardsync that is ending; waiting at most {WAIT_SECONDS} s"
            )
            reported = True
        pause.wait(0.2)


def _lock(settings: Settings) -> Path:
    return settings.data_dir / "run" / "web.lock"


def _is_held(path: Path) -> bool:
    try:
        with path.open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _bind_problem(settings: Settings) -> OSError | None:
    host = settings.host.strip("[]")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, settings.port))
        except OSError as e:
            return e
    return None
