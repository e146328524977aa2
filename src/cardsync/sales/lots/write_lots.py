"""Adds lots by hand and by file, corrects and removes lots, and undoes these actions.

A change of a lot waits for a running refresh (`settle_uses.py`), and blocks the next refresh. If a
lot is removed or restored, or its quantity or day changes, the next refresh assigns all sold copies
of the card to lots again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.database.session import run
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.sales_by_day import mark_changed
from cardsync.sales.lots.add_lots import NewLot, add_lots
from cardsync.sales.lots.lot_csv import LotRows
from cardsync.sales.lots.models import Lot, LotFile
from cardsync.sales.lots.stale_cards import lots_come, mark_cards

KIND: Final = "lots.changed"
FILE: Final = "lots.file"
_IMAGES: Final = RowImages(Lot, *NewLot._fields, unseen=("remaining",))

_USED_BY: Final = """
    FROM lot l JOIN lot_use u ON u.seller_id = :seller AND u.lot_id = l.id
    WHERE l.seller_id = :seller AND l.marketplace_id = ANY (CAST(:cards AS bigint[]))
"""
_DAYS: Final = f"""
    SELECT DISTINCT o.order_date FROM (SELECT DISTINCT u.item_id {_USED_BY}) used
      JOIN order_item i ON i.seller_id = :seller AND i.id = used.item_id
      JOIN orders o ON o.seller_id = :seller AND o.id = i.order_id
"""
_RELEASE: Final = """
    DELETE FROM lot_use WHERE seller_id = :seller AND lot_id IN (
        SELECT l.id FROM lot l WHERE l.seller_id = :seller
           AND l.marketplace_id = ANY (CAST(:cards AS bigint[])))
"""
_WHOLE: Final = """
    UPDATE lot SET remaining = quantity
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:cards AS bigint[]))
       AND remaining <> quantity
"""


async def add_by_hand(
    session: AsyncSession,
    caller: Caller,
    lots: Sequence[NewLot],
    now: datetime,
) -> list[int]:
    """Add lots and note them in the activity. Raises OwnerRequired."""
    caller.must_be_owner()
    ids = await add_lots(session, caller, lots)
    copies = sum(lot.quantity for lot in lots)
    entry = note(session, caller, "lots.added", f"lots: {len(ids)}, copies: {copies}", now)
    own = (Lot.seller_id == caller.seller_id) & Lot.id.in_(ids)
    became = {lot.id: _image(lot) for lot in await session.scalars(select(Lot).where(own))}
    entry.undo = {"kind": KIND, "was": dict.fromkeys(ids), "became": became}
    return ids


async def add_by_file(
    session: AsyncSession,
    caller: Caller,
    body: bytes,
    rows: LotRows,
    now: datetime,
) -> tuple[int, bool]:
    """Add a file's rows as lots. Return the file's number of lots, and whether the file was added
    before; a repeated file adds nothing. Raises OwnerRequired.
    """
    caller.must_be_owner()
    digest = hashlib.sha256(body).digest()
    known = select(LotFile).where(LotFile.seller_id == caller.seller_id, LotFile.sha256 == digest)
    # If two requests send the same file at the same time, the second finds the row of the first.
    await locked(session, Lock.LOT_FILE, caller.seller_id)
    if (former := await session.scalar(known)) is not None:
        return former.lots, True
    if not rows.lots:
        return 0, False
    row = LotFile(seller_id=caller.seller_id, sha256=digest, lots=len(rows.lots))
    session.add(row)
    await session.flush()
    await add_lots(session, caller, [lot._replace(source_id=row.id) for lot in rows.lots])
    note(
        session, caller, "lots.imported", f"file {row.id}: lots: {row.lots}", now,
        undo={"kind": FILE, "file": row.id},
    )  # fmt: skip
    return row.lots, False


async def correct(
    session: AsyncSession,
    caller: Caller,
    lot_id: int,
    changes: Mapping[str, object],
    now: datetime,
) -> Lot:
    """Change a lot's copies, cost or day. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    lot = await _one(session, caller, lot_id)
    was = _image(lot)
    became = was | {name: _plain(value) for name, value in changes.items()}
    if became != was:
        await UNDO(
            Undoing(session, caller, {"became": {lot_id: was}, "was": {lot_id: became}}, now)
        )
        note(
            session, caller, "lots.corrected", f"lot {lot_id}", now, before=was, after=became,
            undo={"kind": KIND, "was": {lot_id: was}, "became": {lot_id: became}},
        )  # fmt: skip
    return await session.get_one(Lot, (caller.seller_id, lot_id), populate_existing=True)


async def remove(session: AsyncSession, caller: Caller, lot_id: int, now: datetime) -> None:
    """Remove a lot that was added by mistake. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    was = _image(await _one(session, caller, lot_id))
    await UNDO(Undoing(session, caller, {"became": {lot_id: was}, "was": {lot_id: None}}, now))
    note(
        session, caller, "lots.removed", f"lot {lot_id}", now, before=was,
        undo={"kind": KIND, "was": {lot_id: was}, "became": {lot_id: None}},
    )  # fmt: skip


async def _one(session: AsyncSession, caller: Caller, lot_id: int) -> Lot:
    """Return a lot with all lots of its card locked. Raises NotFound."""
    own = (Lot.seller_id == caller.seller_id) & (Lot.id == lot_id)
    card = await session.scalar(select(Lot.marketplace_id).where(own))
    lot = None if card is None else (await _locked(session, caller, [card])).get(lot_id)
    if lot is None:
        raise errors.NotFound(f"there is no lot {lot_id}")
    return lot


async def _locked(session: AsyncSession, caller: Caller, cards: Iterable[int]) -> dict[int, Lot]:
    """Return all lots of these cards, locked until the transaction ends. `add_lots` followed by
    `settle_now` takes the same locks in the same order, so that no deadlock is possible.
    """
    await lots_come(session, caller.seller_id)
    # A refresh of `lot_use` takes this lock, too (`platform/derived/kept_figures.py`).
    await locked(session, Lock.LOTS, caller.seller_id)
    statement = (
        select(Lot)
        .where(Lot.seller_id == caller.seller_id, Lot.marketplace_id.in_(sorted(cards)))
        .order_by(Lot.id)
        .with_for_update()
    )
    found = await session.scalars(statement.execution_options(populate_existing=True))
    return {lot.id: lot for lot in found}


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return value.isoformat() if isinstance(value, date) else value


def _image(lot: Lot) -> dict[str, object]:
    return {name: _plain(getattr(lot, name)) for name in _IMAGES.compared}


async def _released(undoing: Undoing) -> Swap:
    """Lock the lots of the images' cards, and mark the cards. If copies or days differ, their sales
    take from the lots anew. Return the images with the copies that are left.
    """
    session, caller = undoing.session, undoing.caller
    became, was = undoing["became"], undoing["was"]
    both = [image for image in (*became.values(), *was.values()) if image]
    cards = sorted({image["marketplace_id"] for image in both})
    stand = await _locked(session, caller, cards)
    remaining = {str(id): lot.remaining for id, lot in stand.items()}
    if any(_taken_from(became[id]) != _taken_from(was[id]) for id in was):
        await _anew(session, caller.seller_id, cards)
        remaining = {}
    else:
        await mark_cards(session, caller.seller_id, cards)
    left = {
        id: image and {**image, "remaining": remaining.get(str(id), image["quantity"])}
        for id, image in was.items()
    }
    return Swap(became, left)


async def _of_file(undoing: Undoing) -> Swap:
    """Remove the lots of a file, which must be as many as it brought."""
    session, file = undoing.session, undoing["file"]
    own = (Lot.seller_id == undoing.seller_id) & (Lot.source == "file") & (Lot.source_id == file)
    cards = list(await session.scalars(select(Lot.marketplace_id).where(own).distinct()))
    await _locked(session, undoing.caller, cards)
    await _anew(session, undoing.seller_id, cards)
    gone = list(await session.scalars(delete(Lot).where(own).returning(Lot.id)))
    return Swap({file: {"lots": len(gone)}}, {file: None})


UNDO: Final = UndoRows(
    _IMAGES,
    "lot {id} changed in the meantime",
    lock=None,
    read=_released,
)
UNDO_FILE: Final = UndoRows(
    RowImages(LotFile, "lots"),
    "lots of this file changed in the meantime",
    lock=None,
    read=_of_file,
)


def _taken_from(image: Mapping[str, object] | None) -> tuple[object, ...] | None:
    """Return the fields of a lot that decide which sales take its copies; the cost does not."""
    return None if image is None else (image["quantity"], image["bought_on"])


async def _anew(session: AsyncSession, seller_id: int, cards: Sequence[int]) -> None:
    """Return all sold copies of these cards to their lots; the next refresh assigns them again."""
    values = {"seller": seller_id, "cards": list(cards)}
    await mark_changed(session, _DAYS, values)
    for statement in (_RELEASE, _WHOLE):
        await run(session, statement, values)
    for row in [one for one in session if isinstance(one, Lot)]:
        session.expire(row)
    await mark(session, seller_id, Figure.SALES_SUMS)
    await mark_cards(session, seller_id, cards)
