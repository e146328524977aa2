"""Undoes entries of the activity feed that changed rows. The entry has images of the rows before
and after it. Under a lock, the rows get their earlier images back if they still equal the later
ones.

An entry has the images `was` and `became`, and the row's key in the field that `UndoRows.key`
names. If `key` is None, `was` and `became` are maps from keys to images. An image is a map of a
row's columns, or the list of its compared columns' values, or the value of the only compared
column. An empty text means that there is no row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import CursorResult, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.row_images import SHOP, ChangedRow, Image, Images, RowImages
from cardsync.platform.value_types import JsonMapping, Row


@dataclass(frozen=True)
class Undoing:
    """An entry that a caller undoes, with its stored values by their names."""

    session: AsyncSession
    caller: Caller
    entry: JsonMapping
    now: datetime

    def __getitem__(self, name: str) -> Any:
        return self.entry[name]

    @property
    def seller_id(self) -> int:
        return self.caller.seller_id

    async def run(self, *statements: str, **more: object) -> Sequence[Row]:
        """Run statements, which may use the entry's values, `seller`, `actor` and `now`. Return the
        rows of the last.
        """
        by = {"seller": self.seller_id, "actor": self.caller.actor, "now": self.now}
        values = {**self.entry, **by, **more}
        rows: Sequence[Row] = ()
        for statement in statements:
            bound = {name: values[name] for name in values if f":{name}" in statement}
            found = await self.session.execute(text(statement), bound)
            assert isinstance(found, CursorResult)
            rows = found.all() if found.returns_rows else ()
        return rows


# An undo: it raises ChangedSince if something has changed since the entry.
Undo = Callable[[Undoing], Awaitable[object]]


class Swap(NamedTuple):
    """The images of rows after an entry and before it, and further values for the sentences."""

    became: Images
    was: Images
    more: Mapping[str, Any] = {}


@dataclass(frozen=True)
class UndoRows:
    """Declares how to undo the entries of one kind.

    `changed`, `gone` and `again` are sentences for an undo that is refused: the row has changed, it
    was deleted, or it exists again. They are format strings with the entry's fields, `id`, the
    images `standing` and `became` of the first changed row, its `columns`, and the number `many` of
    changed rows.

    `room` is the largest number of rows, and the word for these rows. `free` is a column whose
    value must be unique, and the sentence about the `holder` of the value. `read` returns the
    images if the entry does not have them. `then` writes what follows from the undo.
    """

    rows: RowImages
    changed: str
    lock: Lock | None = Lock.SHOP
    key: str | None = None
    gone: str | None = None
    again: str | None = None
    room: tuple[int, str] | None = None
    free: tuple[str, str] | None = None
    read: Callable[[Undoing], Awaitable[Swap]] | None = None
    then: Undo | None = None

    async def __call__(self, undoing: Undoing) -> None:
        session, seller_id, entry = undoing.session, undoing.seller_id, undoing.entry
        if self.lock is not None:
            await locked(session, self.lock, seller_id)
        swap = self.stored(entry) if self.read is None else await self.read(undoing)
        await self._need_room(session, seller_id, swap)
        other = await self.rows.swap(session, seller_id, swap.became, swap.was, undoing.now)
        if other is not None:
            raise errors.ChangedSince(self._sentence({**entry, **swap.more}, other))
        if self.then is not None:
            await self.then(undoing)

    def stored(self, entry: JsonMapping) -> Swap:
        """Return the images that an entry has. Pure."""
        became, was = (
            entry.get(name, entry.get(or_name))
            for name, or_name in (("became", "after"), ("was", "before"))
        )
        if self.key is None and self.rows.keys != SHOP:
            return Swap(became or {}, was or {})
        id = entry.get(self.key or "")
        return Swap({id: self._image(became)}, {id: self._image(was)})

    def _image(self, stored: object) -> Image | None:
        match stored:
            case None | "":
                return None
            case Mapping():
                return stored
            case list():
                return dict(zip(self.rows.compared, stored, strict=True))
        return {self.rows.compared[0]: stored}

    async def _need_room(self, session: AsyncSession, seller_id: int, swap: Swap) -> None:
        restored = {id: image for id, image in swap.was.items() if image is not None}
        if not restored or not (self.room or self.free):
            return
        table: Any = self.rows.table
        mine = select(table).where(
            table.seller_id == seller_id, table.id.not_in([int(id) for id in swap.became])
        )
        if hasattr(table, "deleted_at"):
            mine = mine.where(table.deleted_at.is_(None))
        others = list(await session.scalars(mine))
        if self.room is not None and len(restored) + len(others) > self.room[0]:
            raise errors.ChangedSince("there are now {} {}".format(*self.room))
        column, sentence = self.free or ("id", "")
        holders = {getattr(row, column): row for row in others}
        for id, image in restored.items():
            if (holder := holders.get(image.get(column))) is not None:
                said = {**image, "id": id, "holder": holder}
                raise errors.ChangedSince(sentence.format(**said))

    def _sentence(self, entry: JsonMapping, other: ChangedRow) -> str:
        standing, became, columns, many = other
        form = self.gone if standing is None else self.changed if became else self.again
        id = (standing or became or {})[self.rows.keys[-1]]
        if standing and became:
            columns = [name for of in columns for name in _differing(of, standing, became)]
        values = {"standing": standing, "became": became, "columns": ", ".join(columns)}
        return (form or self.changed).format(**{**entry, **values, "id": id, "many": many})


def _differing(column: str, standing: Image, became: Image) -> list[str]:
    """Return the differing keys of a column that is a map, or the column itself. Pure."""
    stored, meant = standing[column], became[column]
    if not isinstance(stored, Mapping) or not isinstance(meant, Mapping):
        return [column]
    return [name for name in {**stored, **meant} if stored.get(name) != meant.get(name)]
