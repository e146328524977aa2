"""Runs reads that may be long, in a snapshot. The statements of one message cost one round trip.

These reads have their own connections, so that waiting reads take no connection from other work. A
reading is one snapshot of one seller's tables; it writes nothing and limits the time of each
statement. A recurring statement is planned once per connection (`Planned`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import NamedTuple

import psycopg
from psycopg.rows import TupleRow

from cardsync.platform.database.bound_text import kept_named, named, numbered
from cardsync.platform.database.connections import (
    CONNECT_SECONDS,
    RECONNECT_SECONDS,
    BoundedConnection,
    Connection,
    still_there,
)
from cardsync.platform.database.joined_messages import (
    NAMES_LOST,
    Messages,
    Prepared,
    execute,
    prepare,
)
from cardsync.platform.database.seller_slots import Slots, Work
from cardsync.platform.database.spread import Spread
from cardsync.platform.database.transaction_settings import of_readings, of_seller
from cardsync.platform.database.watched_cursors import WatchedClientCursor
from cardsync.platform.database.watched_pools import WatchedConnectionPool

_KEPT_CHARACTERS = 6_000
# A reading that gets no connection in this time answers 503.
_WAIT_SECONDS = 10
# The turns of the event loop until concurrent reads have added their statements to a message. The
# answers of a shared message take more turns to reach the reads that ask for more.
_TURNS, _TURNS_AFTER_SHARED = 4, 24


class Planned(NamedTuple):
    """A statement that is planned once, whatever its values, until its tables are analyzed.
    `values` are the names in the statement, each with its type.
    """

    name: str
    statement: str
    values: Mapping[str, str]

    def prepare(self) -> str:
        asked, names = numbered(self.statement)
        return prepare(self.name, asked, [self.values[one] for one in names])

    def execute(self) -> str:
        return kept_named(execute(self.name, [f":{one}" for one in numbered(self.statement)[1]]))

    def whole(self) -> str:
        return kept_named(self.statement)


@dataclass(eq=False)
class _Read:
    """Statements that wait for the next message of their reading, and then their rows."""

    statements: Sequence[str | Planned]
    values: Mapping[str, object]
    last: bool
    named: bool
    # The place of the statement whose rows have the bytes of their values.
    binary: int | None
    rows: list[list[TupleRow]] = field(default_factory=list)
    failure: BaseException | None = None


class Asked(NamedTuple):
    """The statements of a message, each with its values; rows of the `named` have their columns'
    names, and rows of the `binary` the bytes of their values.
    """

    parts: list[str | Prepared]
    values: list[Mapping[str, object] | None]
    named: set[int]
    binary: set[int]


@dataclass(eq=False)
class _Message:
    """The reads of the next message. One of them waits for the others and sends the message; if it
    is canceled before, `changed` makes another one do that.
    """

    reads: list[_Read] = field(default_factory=list)
    sender: bool = False
    sent: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Reading(ABC):
    """Reads of one transaction. The client binds their values, because a message of several
    statements takes no parameters.
    """

    def __init__(self) -> None:
        self._next = _Message()
        self._shared = False
        self._turn = asyncio.Lock()
        self._known: dict[str, list[TupleRow]] = {}

    async def rows(self, statement: str | Planned, values: Mapping[str, object]) -> list[TupleRow]:
        """Return the rows of a statement, whose values are named `:name`."""
        [rows] = await self.together([statement], values)
        return rows

    async def once(self, statement: str, values: Mapping[str, object]) -> list[TupleRow]:
        """Return the rows of a statement whose values are the same in the whole reading, which
        reads them only once.
        """
        if statement not in self._known:
            self._known[statement] = await self.rows(statement, values)
        return self._known[statement]

    async def together(
        self,
        statements: Sequence[str | Planned],
        values: Mapping[str, object],
        *,
        last: bool = False,
        long: bool = False,
        named: bool = False,
        binary: int | None = None,
    ) -> list[list[TupleRow]]:
        """Return the rows of each statement, with its columns' names if `named`. Rows of the
        statement at the place `binary` have the bytes of their values. Coroutines that run
        concurrently (`at_once`) share a message, unless it may be `long`: its time-out would also
        fail the other reads. With `last` the message ends the reading; a further message begins
        another snapshot of the same seller.
        """
        read = _Read(statements, values, last, named, binary)
        if long:
            async with self._turn:
                await self._send([read])
        else:
            message = self._next
            message.reads.append(read)
            while not message.sent:
                if message.sender:
                    await message.changed.wait()
                else:
                    await self._send_next(message)
        if read.failure is not None:
            raise read.failure
        return read.rows

    async def _send_next(self, message: _Message) -> None:
        """Send the message after other coroutines, and those that they begin, have added reads."""
        message.sender = True
        try:
            for _ in range(_TURNS_AFTER_SHARED if self._shared else _TURNS):
                await asyncio.sleep(0)
            async with self._turn:
                self._next, message.sent = _Message(), True
                await self._send(message.reads)
        finally:
            message.sender = False
            changed, message.changed = message.changed, asyncio.Event()
            changed.set()

    async def _send(self, reads: Sequence[_Read]) -> None:
        """Send one message, and give each read its rows, or the failure of the message."""
        self._shared = len(reads) > 1
        try:
            asked = Asked([], [], set(), set())
            for read in reads:
                if read.binary is not None:
                    asked.binary.add(len(asked.parts) + read.binary)
                if read.named:
                    first = len(asked.parts)
                    asked.named.update(range(first, first + len(read.statements)))
                for one in read.statements:
                    asked.parts.append(one if isinstance(one, Planned) else await _bindable(one))
                    asked.values.append(read.values)
            found = await self._answers(asked, last=any(read.last for read in reads))
        except BaseException as e:
            for read in reads:
                read.failure = e
            if isinstance(e, Exception):
                # The transaction has failed, so the next message begins another one.
                await self.end()
            return
        rows = iter(found)
        for read in reads:
            read.rows = list(islice(rows, len(read.statements)))

    @abstractmethod
    async def _answers(self, asked: Asked, *, last: bool) -> list[list[TupleRow]]:
        """Send one message, and return the rows of each of its statements."""

    @abstractmethod
    async def end(self) -> None:
        """End the transaction, if it is the reading's own."""


class Snapshot(Reading):
    """Reads of a transaction of their own, which the first message begins."""

    def __init__(
        self,
        connection: Connection,
        messages: Messages,
        seller_id: int,
        seconds: float,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._messages = messages
        # These values are literals that this module formats.
        self._beginning = [
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            of_seller(seller_id),
            f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}",
        ]
        self._open = self._begun = False

    async def _answers(self, asked: Asked, *, last: bool) -> list[list[TupleRow]]:
        try:
            return await self._message(asked, last)
        except NAMES_LOST:
            await self._messages.forget(self._connection)
            self._begun = False
            return await self._message(asked, last)

    async def _message(self, asked: Asked, last: bool) -> list[list[TupleRow]]:
        beginning: list[str] = []
        if not self._begun:
            beginning = self._beginning
            self._known.clear()
        ahead, end = len(beginning), ["COMMIT"] if last else []
        none: list[Mapping[str, object] | None] = [None]
        self._open = self._begun = True
        rows = await self._messages.send(
            self._connection,
            [*beginning, *asked.parts, *end],
            range(ahead, ahead + len(asked.parts)),
            none * ahead + asked.values + none * len(end),
            {ahead + number for number in asked.named},
            {ahead + number for number in asked.binary},
        )
        self._open = self._begun = not last
        return rows

    async def end(self) -> None:
        if self._open:
            # A lost connection has no transaction to end.
            with suppress(psycopg.OperationalError):
                await self._connection.execute("ROLLBACK")
            self._open = self._begun = False


async def _bindable(statement: str) -> str:
    """Return the statement with bindable values. A statement too long for the cache takes long to
    parse, so a thread parses it.
    """
    if len(statement) > _KEPT_CHARACTERS:
        return await asyncio.to_thread(named, statement)
    return kept_named(statement)


class Readings:
    """Gives out readings; the pool's size limits the number of simultaneous readings. Each process
    has one object.
    """

    def __init__(
        self,
        url: str,
        connections: int,
        slots: Slots,
        spread: Spread,
        seconds: float = inf,
        slow: float = inf,
        *,
        planned: bool = True,
    ) -> None:
        self._slots = slots
        self._spread = spread
        self._messages = Messages(spread, planned=planned)
        options = {
            "autocommit": True,
            "cursor_factory": WatchedClientCursor,
            "connect_timeout": CONNECT_SECONDS,
        }
        if not planned:
            options["prepare_threshold"] = None
        self.pool = WatchedConnectionPool(
            url,
            connection_class=BoundedConnection.within(seconds, slow, spread),
            min_size=0,
            max_size=max(1, connections),
            reconnect_timeout=RECONNECT_SECONDS,
            kwargs=options,
            check=still_there,
            configure=self._configure if planned else None,
            open=False,
            name="readings",
        )

    @asynccontextmanager
    async def of(self, seller_id: int, seconds: float) -> AsyncIterator[Snapshot]:
        async with (
            self._slots.of(seller_id, Work.LONG),
            self.pool.connection(timeout=_WAIT_SECONDS) as connection,
        ):
            reading = Snapshot(connection, self._messages, seller_id, seconds)
            try:
                yield reading
            finally:
                await reading.end()

    async def _configure(self, connection: Connection) -> None:
        # Nodes use no generic plans, because such a plan cannot choose the seller's node.
        if not self._spread.over_nodes:
            await connection.execute(of_readings().encode())
