"""Undoes changes of rows by their images: one statement compares the rows with their images after
the change and restores the images before it, or returns a row that differs.

An image contains a row's columns as JSON. None means that the row does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.columns import Base
from cardsync.platform.database.room_sql import queries_of

Image = Mapping[str, Any]
# Images by row IDs; JSON turns the IDs into texts.
Images = Mapping[Any, Image | None]

# All rows are deleted before any is inserted, so that no two rows ever share a unique value.
_SWAP: Final = queries_of(__package__)["swap"]


class ChangedRow(NamedTuple):
    """A row that was changed again after its image was taken: it was deleted or created, or
    `columns` differ.
    """

    id: int
    standing: Image | None
    columns: list[str]


class RowImages:
    """The images of a table's rows: the columns to compare, and those that are only restored. A
    restored row keeps its ID, and its creation time if the image has it.
    """

    def __init__(self, table: type[Base], *compared: str, unseen: tuple[str, ...] = ()) -> None:
        self.table = table
        self.columns = (*compared, *unseen)
        otherwise = {name: f"s.{name} IS DISTINCT FROM b.{name}" for name in compared}
        changes = "updated_at" in table.__table__.columns
        self._swap = text(
            _SWAP.format(
                table=table.__tablename__,
                differs=" OR ".join(otherwise.values()),
                differing=", ".join(
                    f"CASE WHEN {it} THEN '{n}' END" for n, it in otherwise.items()
                ),
                columns=", ".join(self.columns),
                put=", ".join(f"w.{name}" for name in self.columns),
                times="created_at, updated_at" if changes else "created_at",
                updated=", CAST(:now AS timestamptz)" if changes else "",
            )
        )

    def of(self, row: object) -> dict[str, Any]:
        """Return the image of a row."""
        names = ("id", *self.columns, "created_at")
        return {name: _plain(getattr(row, name)) for name in names}

    async def swap(
        self,
        session: AsyncSession,
        seller_id: int,
        became: Images,
        was: Images,
        now: datetime,
    ) -> ChangedRow | None:
        """Restore the rows, or return a row that was changed again."""
        values = {"seller": seller_id, "now": now, "ids": [int(id) for id in became]}
        images = {"became": _records(became), "was": _records(was)}
        found = (await session.execute(self._swap, values | images)).first()
        # The rows are removed from the session, because it has their old values.
        for row in session.identity_map.values():
            if isinstance(row, self.table):
                session.expunge(row)
        return None if found is None else ChangedRow(*found)


def _records(images: Images) -> str:
    return json.dumps([{**image, "id": int(id)} for id, image in images.items() if image])


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
