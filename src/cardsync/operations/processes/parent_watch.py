"""Ends each process together with its parent, even if the parent is killed.

Each process puts its ID into its children's environment: the supervisor, and the web process whose
workers serve.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from cardsync.platform.settings import PREFIX

_PARENT = f"{PREFIX}PARENT"


def be_parent() -> None:
    """Make processes that are started from now on end together with this process."""
    os.environ[_PARENT] = str(os.getpid())


def watch_parent(
    *,
    orphaned: Callable[[], None] = lambda: None,
    kill_after: float | None = None,
) -> None:
    """When this process's parent has died, call `orphaned` and end this process as by a SIGTERM:
    the system gives an orphan another parent. `kill_after` adds a SIGKILL if the process still runs
    after that number of seconds.

    A process that was started by hand has no parent to watch.
    """
    parent = int(os.environ.get(_PARENT, "0"))
    if not parent:
        return

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(0.5)
        orphaned()
        os.kill(os.getpid(), signal.SIGTERM)
        if kill_after is not None:
            pause.wait(kill_after)
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()
