"""The statements that a process sends to its database, and the round trips that they take: libpq
itself writes down what passes over each connection.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple, TextIO

import pytest
from psycopg.pq import Trace
from psycopg.pq.abc import PGconn

from cardsync.platform.database.session import Database

# A message in libpq's trace; a statement's text goes on over lines.
MESSAGE = re.compile(r"^([FB])\t\d+\t(\w+)(.*?)(?=^[FB]\t\d|\Z)", re.MULTILINE | re.DOTALL)

# Through a pooler nothing can be prepared: there statements are sent whole.
prepared = pytest.mark.skipif(
    "CARDSYNC_TEST_POOLER_URL" in os.environ, reason="a pooler prepares nothing"
)


class Transaction(NamedTuple):
    """Everything that a committed transaction sent, with its values, and its round trips."""

    sent: str
    round_trips: int


class Counted:
    """The statements that were sent until the last `read`, which the end of the block calls."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.transactions: list[Transaction] = []
        self.round_trips = 0
        self._written: list[tuple[PGconn, TextIO]] = []

    def begin(self, pgconn: PGconn, file: TextIO) -> None:
        pgconn.trace(file.fileno())
        pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        self._written.append((pgconn, file))

    def read(self) -> None:
        """Read what the connections have written down, and let them go on."""
        written, self._written = self._written, []
        for pgconn, file in written:
            pgconn.untrace()
            file.seek(0)
            self._add(file.read())
            file.seek(0)
            file.truncate()
            self.begin(pgconn, file)

    def end(self) -> None:
        self.read()
        for pgconn, _ in self._written:
            pgconn.untrace()

    def _add(self, written: str) -> None:
        sent, trips = "", 0
        for direction, kind, text in MESSAGE.findall(written):
            sent += text if direction == "F" else ""
            trips += (direction, kind) == ("B", "ReadyForQuery")
            if (direction, kind) == ("B", "CommandComplete") and '"COMMIT"' in text:
                self.transactions.append(Transaction(sent, trips + 1))
                sent, trips = "", -1
            # A text goes out by a simple query or is parsed; prepared before, it is only executed.
            if direction == "F" and kind in ("Query", "Parse", "Execute"):
                self.sent.append(f"{kind} {text.strip()}")
            self.round_trips += (direction, kind) == ("B", "ReadyForQuery")

    def statements(self, word: str) -> int:
        return sum(text.count(word) for text in self.sent)


@asynccontextmanager
async def counting(database: Database) -> AsyncIterator[Counted]:
    """Every connection of the pools writes down what passes over it; the block has them all."""
    counted = Counted()
    async with AsyncExitStack() as after:
        async with AsyncExitStack() as held:
            ours = [
                await held.enter_async_context(pool.connection())
                for pool in (database.hot, database.readings.pool)
                for _ in range(pool.max_size)
            ]
            for _ in range(database.engine.pool.size()):
                session = await held.enter_async_context(database.engine.connect())
                ours.append((await session.get_raw_connection()).driver_connection)
            for connection in ours:
                file = after.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115
                counted.begin(connection.pgconn, file)
        # The files are read before they are closed.
        after.callback(counted.end)
        yield counted
