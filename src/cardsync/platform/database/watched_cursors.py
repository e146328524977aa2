"""Watches the statements of all connections: it counts their times, logs slow statements without
their values, and in a trace makes a span of each statement.

The statements of a pipeline are watched as one statement (`joined_messages.py`), and a COPY as well
(`copy.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Self

import psycopg
import structlog
from prometheus_client import Counter, Histogram
from psycopg.pq import PipelineStatus
from psycopg.rows import TupleRow

from cardsync.platform import clock
from cardsync.platform.database.spread import for_nodes
from cardsync.platform.database.statement_words import described, summary
from cardsync.platform.telemetry import spans

log = structlog.get_logger("cardsync.statement")
SECONDS = Histogram(
    "cardsync_statement_seconds",
    "Time of a message to the database until its first rows",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)
SLOW = Counter("cardsync_slow_statements_total", "Statements slower than SLOW_STATEMENT_MS")


@contextmanager
def watching(connection: psycopg.AsyncConnection[object], statement: object) -> Iterator[None]:
    """Watch the block as one statement."""
    started = clock.monotonic()
    try:
        # Setting a transaction's seller is not worth a span.
        if spans.is_traced() and not (words := described(statement)).startswith("SET "):
            with spans.part(summary(words), kind="client", system="postgresql", statement=words):
                yield
        else:
            yield
    finally:
        took = clock.monotonic() - started
        SECONDS.observe(took)
        if took > getattr(connection, "slow", inf):
            SLOW.inc()
            log.warning("slow_statement", statement=described(statement), ms=round(took * 1000))


def _pipelined(connection: psycopg.AsyncConnection[object]) -> bool:
    return connection.pgconn.pipeline_status != PipelineStatus.OFF


class WatchedCursor(psycopg.AsyncCursor[TupleRow]):
    """A cursor whose parameters the server binds."""

    _conn: Any

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        if isinstance(query, str) and self._conn.spread.over_nodes:
            query = for_nodes(query)
        if _pipelined(self._conn):
            return await super().execute(query, params, **options)
        with watching(self._conn, query):
            return await super().execute(query, params, **options)

    async def executemany(self, query: Any, params_seq: Any, **options: Any) -> None:
        with watching(self._conn, query):
            await super().executemany(query, params_seq, **options)


class WatchedClientCursor(psycopg.AsyncClientCursor[TupleRow]):
    """A cursor whose parameters the client binds, after the statement was described."""

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        with watching(self._conn, query):
            return await super().execute(query, params, **options)
