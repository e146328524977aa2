"""Shares the threads of a web process among sellers, so that one seller's calls of
`asyncio.to_thread` never occupy all threads.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, TypeVar

from cardsync.platform.database.seller_slots import asks

T = TypeVar("T")

# Seconds after which a computing thread yields to the event loop. With Python's default of five
# milliseconds, two such threads delay some answers by fifty milliseconds.
TURN_SECONDS = 0.0005
USUAL_TURN_SECONDS = sys.getswitchinterval()
_Work = tuple[Future[Any], Callable[[], Any]]


class _ShortTurns:
    """Lets the event loop run soon while threads compute in such blocks. Without one, turns are
    long: the server's own threads interrupt the event loop at each turn, and with short turns a
    heartbeat takes a third more CPU.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._computing = 0

    def __enter__(self) -> None:
        self._count(1)

    def __exit__(self, *_: object) -> None:
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            self._computing += more
            sys.setswitchinterval(TURN_SECONDS if self._computing else USUAL_TURN_SECONDS)


SHORT_TURNS: Final = _ShortTurns()


class FairThreads(ThreadPoolExecutor):
    """The event loop's threads. One seller uses at most a third of them; further work of the seller
    waits in the seller's own queue. Work outside a request is not limited.
    """

    def __init__(self, threads: int = 0) -> None:
        count = threads or min(32, (os.cpu_count() or 1) + 4)
        super().__init__(count, thread_name_prefix="fair")
        self._most = max(1, count // 3)
        self._lock = Lock()
        self._running: dict[int, int] = {}
        self._waiting: dict[int, deque[_Work]] = {}

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> Future[T]:
        def do() -> T:
            with SHORT_TURNS:
                return fn(*args, **kwargs)

        seller_id = asks()
        if seller_id is None:
            return super().submit(do)
        done: Future[T] = Future()
        work: _Work = (done, do)
        with self._lock:
            running = self._running.get(seller_id, 0)
            if running == self._most:
                self._waiting.setdefault(seller_id, deque()).append(work)
                return done
            self._running[seller_id] = running + 1
        super().submit(self._work_off, seller_id, work)
        return done

    def _work_off(self, seller_id: int, work: _Work) -> None:
        """Do one piece of work. Then return the thread to the pool, because other sellers may be
        waiting.
        """
        done, do = work
        try:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(do())
                except BaseException as e:
                    done.set_exception(e)
        finally:
            self._next_of(seller_id)

    def _next_of(self, seller_id: int) -> None:
        with self._lock:
            waiting = self._waiting.get(seller_id)
            following = waiting.popleft() if waiting else None
            if not waiting:
                self._waiting.pop(seller_id, None)
            if following is None:
                self._running[seller_id] -= 1
                if not self._running[seller_id]:
                    del self._running[seller_id]
        if following is not None:
            super().submit(self._work_off, seller_id, following)
