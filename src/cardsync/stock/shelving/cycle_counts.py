"""Counts the cards of a box or a slot. The beginning of a count stores the expected copies, members
enter the copies that they see, and settling corrects the places. A count never changes a card's
quantity, which only the marketplace decides.

If a card's place changed during the count, settling does not correct that place, because the member
may have counted before or after the change. Every write locks the account's row first, like writes
to the shelves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.shelf_place import Box, Place
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.errors import CountNotOpen, CountOpen
from cardsync.stock.limits import COUNT_LINES
from cardsync.stock.shelving.box_numbers import columns_of_box
from cardsync.stock.shelving.count_reads import read_one
from cardsync.stock.shelving.count_schemas import box_of
from cardsync.stock.shelving.models import ShelfCount
from cardsync.stock.shelving.undo_placing import PLACES, swap_of

SETTLED: Final = "shelf.count"
Unseen = Literal["keep", "missing"]


class Sight(NamedTuple):
    """A member's observation: `quantity` copies of a card in a slot."""

    card_id: int
    slot: int
    quantity: int


_FREEZE: Final = f"""
    INSERT INTO shelf_count_line (seller_id, count_id, card_id, slot, expected)
    SELECT :seller, :count, l.card_id, l.slot, l.quantity
      FROM card_location l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
     WHERE l.seller_id = :seller AND l.box = :box AND {VISIBLE}
       AND (CAST(:slot AS integer) IS NULL OR l.slot = CAST(:slot AS integer))
     ORDER BY l.slot, l.card_id LIMIT :most
"""


async def begin(
    session: AsyncSession,
    caller: Caller,
    box: Box,
    slot: int | None,
    now: datetime,
) -> ShelfCount:
    """Begin a count of a box or of one of its slots. Raises CountOpen, InvalidPayload."""
    await locked(session, Lock.SHOP, caller.seller_id)
    kept = await columns_of_box(session, caller.seller_id, box)
    mine = select(ShelfCount).where(ShelfCount.seller_id == caller.seller_id)
    is_open = mine.where(ShelfCount.box == kept["box"], ShelfCount.state == "open")
    if await session.scalar(is_open) is not None:
        raise CountOpen
    row = ShelfCount(
        seller_id=caller.seller_id,
        **kept,
        slot=slot,
        state="open",
        begun_by=caller.actor,
        begun_at=now,
        lines=0,
    )
    session.add(row)
    await session.flush()
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "count": row.id,
        "box": row.box,
        "slot": slot,
        "most": COUNT_LINES + 1,
    }
    row.lines = await run(session, _FREEZE, values)
    if row.lines > COUNT_LINES:
        raise errors.InvalidPayload(
            f"box: more than {COUNT_LINES} cards are here: count slot by slot"
        )
    await session.flush()
    note(session, caller, "shelf.count_begun", f"count {row.id} of {_where(row)} started", now)
    await session.flush()
    await session.refresh(row)
    return row


_SEEN: Final = """
    INSERT INTO shelf_count_line AS l (seller_id, count_id, card_id, slot, expected, seen)
    SELECT :seller, :count, card_id, slot, 0, quantity
      FROM unnest(CAST(:cards AS bigint[]), CAST(:slots AS integer[]),
                  CAST(:quantities AS integer[])) AS given (card_id, slot, quantity)
    ON CONFLICT (seller_id, count_id, card_id, slot) DO UPDATE SET seen = excluded.seen
"""
_KNOWN: Final = f"""
    SELECT c.id FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:cards AS bigint[])) AND {VISIBLE}
"""


async def see(
    session: AsyncSession,
    caller: Caller,
    count_id: int,
    sights: Sequence[Sight],
    now: datetime,
) -> ShelfCount:
    """Record the copies that a member counted. Recording the same sights again changes nothing.
    Raises NotFound, CountNotOpen, InvalidPayload.
    """
    row = await _locked(session, caller, count_id)
    seen_lines = {(sight.card_id, sight.slot): sight for sight in sights}
    if row.slot is not None and any(sight.slot != row.slot for sight in sights):
        raise errors.InvalidPayload(f"slot: this is a count of {_where(row)}")
    cards = sorted({sight.card_id for sight in sights})
    values = {"seller": caller.seller_id, "member": caller.member_id, "cards": cards}
    known = set(await session.scalars(text(_KNOWN), values))
    unknown = [id for id in cards if id not in known]
    if unknown:
        raise errors.NotFound(f"there is no card {unknown[0]}")
    seen = list(seen_lines.values())
    written = {
        "seller": caller.seller_id,
        "count": count_id,
        "cards": [sight.card_id for sight in seen],
        "slots": [sight.slot for sight in seen],
        "quantities": [sight.quantity for sight in seen],
    }
    await run(session, _SEEN, written)
    # The number of lines grows if a card was counted in a slot where it was not expected.
    row.lines = await _lines(session, caller.seller_id, count_id)
    note(
        session,
        caller,
        "shelf.count_seen",
        f"{len(seen)} places in count {count_id} recorded",
        now,
    )
    await session.flush()
    return row


_MISSING: Final = """
    UPDATE shelf_count_line SET seen = 0
     WHERE seller_id = :seller AND count_id = :count AND seen IS NULL
"""
_JUDGE: Final = queries_of(__package__)["judge_counts"]
_EMPTY: Final = """
    DELETE FROM card_location p USING shelf_count_line l
     WHERE p.seller_id = :seller AND l.seller_id = :seller AND l.count_id = :count
       AND l.outcome = 'wrong' AND p.card_id = l.card_id AND p.box = :box AND p.slot = l.slot
"""
_FILL: Final = """
    INSERT INTO card_location (seller_id, card_id, box, slot, quantity)
    SELECT :seller, card_id, :box, slot, seen FROM shelf_count_line
     WHERE seller_id = :seller AND count_id = :count AND outcome = 'wrong' AND seen > 0
"""
_TALLY: Final = """
    SELECT outcome, count(*) AS lines FROM shelf_count_line
     WHERE seller_id = :seller AND count_id = :count GROUP BY outcome
"""


async def settle(
    session: AsyncSession,
    caller: Caller,
    count_id: int,
    unseen: Unseen,
    now: datetime,
) -> ShelfCount:
    """Correct the places to the counted copies, and end the count. Lines that nobody counted keep
    their copies or, if `unseen` is `missing`, count as 0 copies. Raises NotFound, CountNotOpen.
    """
    row = await _locked(session, caller, count_id)
    values = {"seller": caller.seller_id, "count": count_id, "box": row.box}
    if unseen == "missing":
        await run(session, _MISSING, values)
    await run(session, _JUDGE, values)
    await run(session, _EMPTY, values)
    await run(session, _FILL, values)
    found = await session.execute(text(_TALLY), {"seller": caller.seller_id, "count": count_id})
    tally: dict[str, int] = {row.outcome: row.lines for row in found}
    for name in ("correct", "wrong", "moved", "unseen"):
        setattr(row, name, tally.get(name, 0))
    row.lines = sum(tally.values())
    row.state, row.ended_at = "settled", now
    note(
        session,
        caller,
        "shelf.count_settled",
        f"count {count_id} of {_where(row)} finished: {row.wrong} of {row.lines} places corrected",
        now,
        after={
            name: getattr(row, name) for name in ("lines", "correct", "wrong", "moved", "unseen")
        },
        undo={"kind": SETTLED, "count": count_id},
    )
    await session.flush()
    return row


async def cancel(
    session: AsyncSession,
    caller: Caller,
    count_id: int,
    now: datetime,
) -> ShelfCount:
    """End a count without correcting places. Raises NotFound, CountNotOpen."""
    row = await _locked(session, caller, count_id)
    row.state, row.ended_at = "cancelled", now
    note(session, caller, "shelf.count_cancelled", f"count {count_id} of {_where(row)}", now)
    await session.flush()
    return row


_CORRECTED: Final = """
    SELECT l.card_id, c.box, l.slot, l.seen, l.expected FROM shelf_count_line l
      JOIN shelf_count c ON c.seller_id = :seller AND c.id = l.count_id
     WHERE l.seller_id = :seller AND l.count_id = :count AND l.outcome = 'wrong'
"""


async def _corrected(undoing: Undoing) -> Swap:
    row = await read_one(undoing.session, undoing.caller, undoing["count"])
    row.state = "undone"
    return swap_of(await undoing.run(_CORRECTED), where=_where(row))


UNDO: Final = UndoRows(PLACES, "{many} places of {where} changed in the meantime", read=_corrected)


async def _lines(session: AsyncSession, seller_id: int, count_id: int) -> int:
    counted = """
        SELECT count(*) FROM shelf_count_line WHERE seller_id = :seller AND count_id = :count
    """
    return int(await session.scalar(text(counted), {"seller": seller_id, "count": count_id}) or 0)


async def _locked(session: AsyncSession, caller: Caller, count_id: int) -> ShelfCount:
    await locked(session, Lock.SHOP, caller.seller_id)
    row = await read_one(session, caller, count_id)
    if row.state != "open":
        raise CountNotOpen
    return row


def _where(row: ShelfCount) -> str:
    return f"box {box_of(row)}" if row.slot is None else Place(box_of(row), row.slot).code
