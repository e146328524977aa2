"""The room of kills: a server whose work is cut small, a piece of work that is stopped by rows that
somebody else holds, kill -9 at that moment, and the same result as if nothing had happened.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import psycopg
from tests.system.processes import Seller, Server, assert_same, kill, snapshot, until

SLAB = 20
# Small pieces of work, and leases that end soon after their holder.
SETTINGS = {"SLAB_ROWS": str(SLAB), "LEASE_SECONDS": "1"}
# Somebody else's short wait says nothing of the work.
HOLDER = "holder of the kills"
WAITING = """
    SELECT 1 FROM pg_stat_activity held JOIN pg_stat_activity holder
        ON holder.pid = ANY (pg_blocking_pids(held.pid))
     WHERE held.datname = current_database() AND holder.application_name = %(holder)s
"""
LEASED = "SELECT 1 FROM sync_state WHERE seller_id = %(seller)s AND lease_token IS NOT NULL"


class Work(ABC):
    """A piece of work of a new seller. `moments` name where it can be held; `make test` kills it at
    the first, which is the most dangerous, and `make nightly` at each, and at random ones in so many
    rounds.
    """

    moments: ClassVar[tuple[str, ...]]
    killed: ClassVar[str] = "worker"
    rounds: ClassVar[int] = 30

    def __init__(self, server: Server) -> None:
        self.server = server
        until(lambda: server.children("worker"), "a worker")
        self.seller: Seller = server.seller()

    @abstractmethod
    def start(self) -> None:
        """Ask for the work, and wait for nothing."""

    @abstractmethod
    def held_at(self, moment: str) -> AbstractContextManager[None]:
        """Start the work; in the block it is at that moment and can go no further."""

    @abstractmethod
    def end(self) -> None:
        """Wait until the work is done, in whichever life of the process."""

    @abstractmethod
    def taken(self) -> dict[str, Any]:
        """Return the stored result without ids, so that two sellers' results are equal."""

    @abstractmethod
    def is_right(self, taken: dict[str, Any]) -> None:
        """Hold what an undisturbed piece of work leaves behind against what it should."""

    def kill(self) -> None:
        kill(*self.server.children(self.killed))

    def waits(self, statements: int = 1) -> bool:
        """Whether so many statements wait for the rows that are held."""
        return len(self.server.sql(WAITING, holder=HOLDER)) >= statements


class Room:
    """A server, and what each kind of work comes to when nobody is killed."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._undisturbed: dict[type[Work], Future[tuple[dict[str, Any], float]]] = {}

    def let_be(self, kinds: Collection[type[Work]]) -> None:
        """Run these kinds of work side by side and kill nobody: most of their time they wait. One
        that fails does so where its result is asked for.
        """
        with ThreadPoolExecutor(len(kinds) or 1) as threads:
            self._undisturbed |= {kind: threads.submit(self._run, kind) for kind in kinds}

    def undisturbed(self, kind: type[Work]) -> tuple[dict[str, Any], float]:
        """What the work leaves behind, and the seconds that it takes."""
        if kind not in self._undisturbed:
            self.let_be([kind])
        return self._undisturbed[kind].result()

    def _run(self, kind: type[Work]) -> tuple[dict[str, Any], float]:
        work = kind(self.server)
        began = time.monotonic()
        work.start()
        work.end()
        seconds = time.monotonic() - began
        taken = work.taken()
        work.is_right(taken)
        return taken, seconds

    def is_whole(self, work: Work) -> None:
        work.end()
        assert_same(work.taken(), self.undisturbed(type(work))[0])


@contextmanager
def held(server: Server, query: str, **values: Any) -> Iterator[None]:
    """Make everybody who needs the same rows wait until the block ends."""
    with (
        server.its_database() as database,
        psycopg.connect(database.admin_url(), application_name=HOLDER) as holder,
    ):
        # A statement that locks a table counts no rows: -1.
        assert holder.execute(query, values).rowcount, query
        yield
        holder.rollback()


def unleased(seller: Seller) -> None:
    until(lambda: not seller.sql(LEASED), "the end of the lease")


def everything(seller: Seller) -> dict[str, Any]:
    unleased(seller)
    return snapshot(seller)
