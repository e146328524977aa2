"""Renames a box. Its cards, counts and drafts stay in it under the new label or number."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Undoing
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.session import run
from cardsync.platform.shelf_place import Box, box_in, way_of
from cardsync.stock.shelving.box_numbers import KeptBox, kept_box, made_box

KIND: Final = "shelf.box_renamed"
# A box is in use if it has cards or an open count, or if it is the place of an unfinished draft.
_IN_USE: Final = """
    SELECT EXISTS (SELECT FROM card_location WHERE seller_id = :seller AND box = :box)
        OR EXISTS (SELECT FROM shelf_count
                    WHERE seller_id = :seller AND box = :box AND state = 'open')
        OR EXISTS (SELECT FROM quick_add
                    WHERE seller_id = :seller AND box = :box
                      AND status IN ('draft', 'published', 'pending'))
"""
_CALL: Final = """
    UPDATE shelf_box SET label = :label, way = :way WHERE seller_id = :seller AND box = :box
"""
_MOVE: Final = """
    UPDATE card_location SET box = :box WHERE seller_id = :seller AND box = :was AND :box <> :was
"""
# These tables store the label along with the number.
_MOVE_LABELED: Final = """
    UPDATE {} SET box = :box, box_label = :label WHERE seller_id = :seller AND box = :was
"""
_LABELED: Final = ("shelf_count", "quick_add")


class RenamedBox(msgspec.Struct):
    was: Box
    """The former name of the box"""
    box: Box
    """The new name of the box"""


async def rename(
    session: AsyncSession, caller: Caller, box: Box, target: Box, now: datetime
) -> RenamedBox:
    """Rename a box. Raises NotFound if the shop has no box with the old name, InvalidPayload if the
    new name is in use.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    was = await kept_box(session, caller.seller_id, box)
    if was is None or not await _in_use(session, caller.seller_id, was):
        raise errors.NotFound(f"there is no box {box}")
    if was.box == target:
        return RenamedBox(was.box, target)
    await _rename(session, caller.seller_id, was, target)
    note(
        session,
        caller,
        KIND,
        f"box {was.box} is now box {target}",
        now,
        before={"box": was.box},
        after={"box": target},
        undo={"kind": KIND, "was": was.box, "became": target},
    )
    return RenamedBox(was.box, target)


async def _rename(session: AsyncSession, seller_id: int, was: KeptBox, target: Box) -> None:
    """Rename a box in all tables. No row of `shelf_box` is deleted, because undo records may refer
    to it. Raises InvalidPayload if the name is in use.
    """
    known = await kept_box(session, seller_id, target)
    same = known is not None and known.number == was.number
    if known and not same and await _in_use(session, seller_id, known):
        raise errors.InvalidPayload(
            f"to: box {known.box} is in use; move the cards there, or choose another name"
        )
    number, label = was.number, target if isinstance(target, str) else None
    if not same and (known or label is None or isinstance(was.box, int)):
        number = (await made_box(session, seller_id, target)).number
    named: dict[str, object] = {
        "seller": seller_id, "was": was.number, "box": number, "label": label,
    }  # fmt: skip
    if label is not None:
        await run(session, _CALL, named | {"way": way_of(label)})
    await run(session, _MOVE, named)
    for table in _LABELED:
        await run(session, _MOVE_LABELED.format(table), named)


async def _in_use(session: AsyncSession, seller_id: int, box: KeptBox) -> bool:
    used = await session.scalar(text(_IN_USE), {"seller": seller_id, "box": box.number})
    return bool(used)


async def unrename(undoing: Undoing) -> None:
    """Restore a box's former name. Raises ChangedSince if the shop no longer has the box, or if
    another box uses the former name.
    """
    session, seller_id = undoing.session, undoing.seller_id
    await locked(session, Lock.SHOP, seller_id)
    was, became = box_in(str(undoing["was"])), box_in(str(undoing["became"]))
    kept = await kept_box(session, seller_id, became)
    if kept is None or kept.box != became or not await _in_use(session, seller_id, kept):
        raise errors.ChangedSince(f"there is no box {became} now")
    try:
        await _rename(session, seller_id, kept, was)
    except errors.InvalidPayload:
        raise errors.ChangedSince(f"box {was} is in use now") from None
