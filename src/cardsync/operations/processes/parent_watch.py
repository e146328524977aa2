"""Ends a process of ours with the process that started it, even when that one is killed.

Each process names itself in the environment of those below it: the supervisor, and the web process
whose workers serve.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from cardsync.platform.settings import PREFIX

_PARENT = f"{PREFIX}PARENT"


def be_parent() -> None:
    """Make processes that are started from here on end with this one."""
    os.environ[_PARENT] = str(os.getpid())


def watch_parent(
    *,
    orphaned: Callable[[], None] = lambda: None,
    kill_after: float | None = None,
) -> None:
    """End this process like a SIGTERM, after a call of `orphaned`, when its parent is gone: a dead
    parent's children get another one. `kill_after` adds a SIGKILL if it still runs after that
    number of seconds.

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
