"""Runs several statements of one transaction in one round trip, and returns the rows of each.

Each statement still sees what was committed before it began, so one that follows a row's lock sees
what the lock's last holder did. The values are named as in all our statements (`:seller`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psycopg.rows import namedtuple_row
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.bound_text import kept_named
from cardsync.platform.database.session import driver
from cardsync.platform.database.watched_cursors import watching


async def in_one_message(
    session: AsyncSession,
    statements: Sequence[str],
    values: Mapping[str, Any],
) -> list[list[Any]]:
    """The rows of each statement; every statement may name any of the values."""
    connection = await driver(session)
    cursors = []
    with watching(connection, "; ".join(statements)):
        async with connection.pipeline():
            for statement in statements:
                cursor = connection.cursor(row_factory=namedtuple_row)
                cursors.append(await cursor.execute(kept_named(statement), values))
    rows: list[list[NamedTuple]] = [
        await cursor.fetchall() if cursor.description else [] for cursor in cursors
    ]
    return rows
