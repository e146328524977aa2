"""The statements that a process sends to its database, and the round trips that they take: libpq
itself writes down what passes over each connection.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TextIO

import pytest
from psycopg.pq import Trace

from cardsync.platform.database.session import Database

# A message in libpq's trace; a statement's text goes on over lines.
MESSAGE = re.compile(r"^([FB])\t\d+\t(\w+)(.*?)(?=^[FB]\t\d|\Z)", re.MULTILINE | re.DOTALL)

# Through a pooler nothing can be prepared: there statements are sent whole.
prepared = pytest.mark.skipif(
    "CARDSYNC_TEST_POOLER_URL" in os.environ, reason="a pooler prepares nothing"
)


class Counted:
    """The statements that a block sent, read when it has ended."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.round_trips = 0

    def read(self, file: TextIO) -> None:
        file.seek(0)
        for direction, kind, text in MESSAGE.findall(file.read()):
            # A text goes out by a simple query or is parsed; prepared before, it is only executed.
            if direction == "F" and kind in ("Query", "Parse", "Execute"):
                self.sent.append(f"{kind} {text.strip()}")
            self.round_trips += (direction, kind) == ("B", "ReadyForQuery")

    def statements(self, word: str) -> int:
        return sum(text.count(word) for text in self.sent)


@asynccontextmanager
async def counting(database: Database) -> AsyncIterator[Counted]:
    """Every connection of both pools writes down what passes over it; the block has them all."""
    counted = Counted()
    async with AsyncExitStack() as after:
        async with AsyncExitStack() as held:
            ours = [
                await held.enter_async_context(database.hot.connection())
                for _ in range(database.hot.max_size)
            ]
            for _ in range(database.engine.pool.size()):
                session = await held.enter_async_context(database.engine.connect())
                ours.append((await session.get_raw_connection()).driver_connection)
            for connection in ours:
                file = after.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115
                after.callback(counted.read, file)
                connection.pgconn.trace(file.fileno())
                connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
                after.callback(connection.pgconn.untrace)
        yield counted
