"""Runs statements in one round trip, each a message of its own: nodes of a spread database would
get a SET LOCAL with the whole text of its message. On one server the joined text is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from psycopg.abc import Params
from psycopg.rows import TupleRow

from cardsync.platform.database.connections import Connection
from cardsync.platform.database.watched_cursors import watching


async def piped(
    connection: Connection,
    statements: Sequence[str],
    asked: Sequence[int],
    values: Params | None = None,
) -> list[list[TupleRow]]:
    """Return the rows of the statements with the numbers `asked`."""
    with watching(connection, "; ".join(statements)):
        async with connection.pipeline():
            cursors = [
                await connection.cursor().execute(cast(Any, one), values) for one in statements
            ]
    return [await cursors[number].fetchall() for number in asked]
