"""Undoes changes of rows. A change stores images of the rows before and after it. One statement
locks the rows, compares them with the later images, and returns a row that differs. If there is
none, another statement restores the earlier images.

An image contains a row's columns as JSON. An image of None means that the row does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.columns import Base
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.value_types import JsonMapping, JsonObject

Image = JsonMapping
# Images by row IDs, or by the values of several keys; JSON turns the IDs into texts.
Images = Mapping[Any, Image | None]
# The key of a table with one row per shop.
SHOP: Final = ("seller_id",)

# With the insertion among its parts, the first statement fails on a cluster (ADR 49).
_CHANGED_ROWS: Final = queries_of(__package__)["changed_rows"]
_RESTORE: Final = queries_of(__package__)["restore"]
_NOW: Final = "CAST(:now AS timestamptz)"


class ChangedRow(NamedTuple):
    """A row that was changed again after its image was taken: it was deleted or created, or
    `columns` differ. `many` rows were changed.
    """

    standing: Image | None
    became: Image | None
    columns: list[str]
    many: int


class RowImages:
    """The images of a table's rows: the columns to compare, and the columns that are only restored.
    If the table has neither, each image names its columns. A restored row keeps its keys, and its
    creation time if the image has it.

    Rows are changed in place. With `anew`, all rows are deleted before any is inserted, so that no
    two rows ever share a unique value.
    """

    def __init__(
        self,
        table: type[Base],
        *compared: str,
        unseen: tuple[str, ...] = (),
        keys: tuple[str, ...] = ("id",),
        anew: bool = False,
    ) -> None:
        self.table, self.compared, self.keys = table, compared, keys
        self.columns = (*compared, *unseen)
        self._anew = anew

    def of(self, row: object) -> JsonObject:
        """Return the image of a row."""
        names = (*self.keys, *self.columns, "created_at")
        return {name: _plain(getattr(row, name)) for name in names}

    async def swap(
        self,
        session: AsyncSession,
        seller_id: int,
        became: Images,
        was: Images,
        now: datetime,
    ) -> ChangedRow | None:
        """Restore the rows, or return the first row that was changed again."""
        names = self.columns or tuple(next(filter(None, became.values())))
        compared = self.compared if self.columns else names
        changed_rows, restore = _statements(self.table, self.keys, compared, names, self._anew)
        records = {
            "became": self._records(seller_id, became),
            "was": self._records(seller_id, was),
            "named": self._records(seller_id, {key: {} for key in became}),
        }
        await session.flush()
        values = {"seller": seller_id, "now": now} | records
        found = (await session.execute(changed_rows, values)).first()
        if found is not None:
            return ChangedRow(*found)
        await session.execute(restore, values)
        # The session has the old values of the rows.
        for row in [row for row in session.identity_map.values() if isinstance(row, self.table)]:
            if self.keys == SHOP:
                await session.refresh(row)
            else:
                session.expunge(row)
        return None

    def _records(self, seller_id: int, images: Images) -> str:
        keyed = [
            (key if isinstance(key, tuple) else (key,), image)
            for key, image in images.items()
            if image is not None
        ]
        own = {"seller_id": seller_id}
        return json.dumps(
            [{**image, **dict(zip(self.keys, key, strict=True)), **own} for key, image in keyed]
        )


@cache
def _statements(
    table: type[Base],
    keys: tuple[str, ...],
    compared: tuple[str, ...],
    names: tuple[str, ...],
    anew: bool,
) -> tuple[TextClause, TextClause]:
    known = table.__table__.columns
    # An entry may name the columns, so each is looked up.
    put = {known[name].name: f"w.{name}" for name in names}
    times = {"created_at": f"coalesce(s.created_at, w.created_at, {_NOW})", "updated_at": _NOW}
    put |= {name: value for name, value in times.items() if name in known}
    inserted = {key: f"w.{key}" for key in keys if key not in SHOP} | put
    differs = {name: f"s.{name} IS DISTINCT FROM b.{name}" for name in compared}
    changed_rows = _CHANGED_ROWS.format(
        table=table.__tablename__,
        keys=", ".join(keys),
        differs=" OR ".join(["false", *differs.values()]),
        differing=", ".join(f"CASE WHEN {it} THEN '{n}' END" for n, it in differs.items()),
    )
    restore = _RESTORE.format(
        table=table.__tablename__,
        keys=", ".join(keys),
        anew=anew,
        same=" AND ".join(f"t.{key} = w.{key}" for key in keys),
        change=", ".join(f"{name} = {v}" for name, v in put.items() if name != "created_at"),
        columns=", ".join(inserted),
        put=", ".join(inserted.values()),
    )
    return text(changed_rows), text(restore)


def _plain(value: object) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
