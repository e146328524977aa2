"""Finds the number by which tables refer to a box, and assigns a number to a new label.

A numbered box has its own number; a labeled box has a number above the range that members can
enter. Labels are created under the shop's lock, so two members who enter the same new label at the
same time get the same box, in the spelling of the member who was first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.shelf_place import Box, way_of
from cardsync.stock.limits import LABELED_BOXES


class KeptBox(NamedTuple):
    """A box: its number in the tables, and its number or label in the shop's spelling."""

    number: int
    box: Box


_FOUND: Final = "SELECT box, label FROM shelf_box WHERE seller_id = :seller AND way = :way"
_LABELED: Final = "SELECT count(*), max(box) FROM shelf_box WHERE seller_id = :seller"
_MADE: Final = """
    INSERT INTO shelf_box (seller_id, box, label, way) VALUES (:seller, :number, :label, :way)
"""


async def kept_box(source: Source, seller_id: int, box: Box) -> KeptBox | None:
    """Return a box with its number in the tables; None if the shop has no box with that label."""
    if isinstance(box, int):
        return KeptBox(box, box)
    named = {"seller": seller_id, "way": way_of(box)}
    rows = await found(source, _FOUND, named)
    return KeptBox(*rows[0]) if rows else None


async def made_box(session: AsyncSession, seller_id: int, box: Box) -> KeptBox:
    """Return a box with its number in the tables. A new label gets a number. Raises
    InvalidPayload.
    """
    if kept := await kept_box(session, seller_id, box):
        return kept
    await locked(session, Lock.SHOP, seller_id)
    if kept := await kept_box(session, seller_id, box):
        return kept
    [(labels, most)] = await session.execute(text(_LABELED), {"seller": seller_id})
    if labels >= LABELED_BOXES:
        raise errors.InvalidPayload(
            f"box: a shop has at most {LABELED_BOXES:,} boxes with a label of their own"
        )
    number = (most or limits.SHELF_NUMBER) + 1
    named: dict[str, object] = {"seller": seller_id, "number": number, "label": box}
    await session.execute(text(_MADE), named | {"way": way_of(box)})
    return KeptBox(number, box)


async def columns_of_box(
    session: AsyncSession, seller_id: int, box: Box | None
) -> dict[str, int | str | None]:
    """Return the values of `box` and `box_label` for tables that store both."""
    if box is None:
        return {"box": None, "box_label": None}
    number, called = await made_box(session, seller_id, box)
    return {"box": number, "box_label": called if isinstance(called, str) else None}
