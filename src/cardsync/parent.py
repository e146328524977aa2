"""A process of ours that ends with the supervisor that started it, even when that one is killed."""

from __future__ import annotations

import os
import signal
import threading

from cardsync.settings import PREFIX


def watch_parent() -> None:
    """End this process like a SIGTERM when the one that started it is gone: a dead parent's children get another one.

    Only below a supervisor, which names itself in the environment.
    """
    supervisor = int(os.environ.get(f"{PREFIX}PARENT", "0"))
    if not supervisor:
        return
    parent = os.getppid()

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent and _alive(supervisor):
            pause.wait(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
