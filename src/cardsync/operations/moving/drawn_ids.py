"""Keeps the sequences of IDs ahead of the rows that another installation numbered."""

from __future__ import annotations

from typing import Final

import polars as pl
from sqlalchemy import Table, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.operations.moving import archive_tables
from cardsync.operations.moving.archive_rows import IDS_AHEAD
from cardsync.platform import errors
from cardsync.stock.cards.models import CARD_ID_BLOCK

_ADVANCED: Final = """
    SELECT count(nextval(CAST(:sequence AS regclass))) FROM generate_series(1, CAST(:gap AS bigint))
"""
_CARD_BLOCKS: Final = "card_id_block"
_DRAWN: Final = "SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {sequence}"
# The most IDs that are drawn one by one. For a larger gap the sequence is set instead, but never
# backwards: no other process draws this many IDs at the same time.
_DRAWN_MOST: Final = 1_000_000
_SET: Final = """
    SELECT setval(CAST(:sequence AS regclass), :newest) FROM {sequence} WHERE last_value < :newest
"""


async def near(session: AsyncSession, table: Table, newest: int) -> None:
    """Raise CommandError for IDs that would use up the numbers of all shops."""
    if newest and (found := await _sequence(session, table)):
        sequence, size = found
        if newest // size > await _drawn(session, sequence) + IDS_AHEAD:
            raise errors.CommandError(
                f"the archive is not as an export writes it: {table.name} has the id {newest}, and"
                " no installation has come so far"
            )


async def advance(session: AsyncSession, table: Table, rows: pl.LazyFrame) -> None:
    """Draw IDs from this installation's sequence up to the archive's newest ID, so that no other
    transaction can get one of them.
    """
    if table.name in archive_tables.COUNTED_ANEW or table.name == "seller":
        return
    if found := await _sequence(session, table):
        sequence, size = found
        column = "id" if table.name == "card" else _counted(table)
        newest = rows.select(pl.col(column).max()).collect().item()
        if newest is not None:
            await _draw(session, sequence, newest // size)


def _counted(table: Table) -> str:
    return next(one.name for one in table.columns if one.identity is not None)


async def _sequence(session: AsyncSession, table: Table) -> tuple[str, int] | None:
    """Return the sequence of the table's IDs, and the number of IDs that each of its numbers
    represents.
    """
    if table.name == "card":
        return _CARD_BLOCKS, CARD_ID_BLOCK
    if all(one.identity is None for one in table.columns):
        return None
    find = f"SELECT pg_get_serial_sequence('{table.name}', '{_counted(table)}')"
    return str(await session.scalar(text(find))), 1


async def _drawn(session: AsyncSession, sequence: str) -> int:
    return int(await session.scalar(text(_DRAWN.format(sequence=sequence))) or 0)


async def _draw(session: AsyncSession, sequence: str, newest: int) -> None:
    gap = newest - await _drawn(session, sequence)
    if gap > _DRAWN_MOST:
        given = {"sequence": sequence, "newest": newest}
        await session.execute(text(_SET.format(sequence=sequence)), given)
    elif gap > 0:
        await session.execute(text(_ADVANCED), {"sequence": sequence, "gap": gap})
