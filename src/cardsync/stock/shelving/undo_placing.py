"""Undoes putting, moving and removing cards: reverses the changes that one entry of the activity
feed made in each place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.session import run
from cardsync.stock.limits import PLACES_UNDONE

KIND: Final = "shelf.places"

_COUNTED: Final = """
    unnest(CAST(:cards AS bigint[]), CAST(:boxes AS int[]), CAST(:slots AS int[]),
           CAST(:more AS int[])) AS given (card_id, box, slot, more)
"""
_PLACE: Final = "l.card_id = given.card_id AND l.box = given.box AND l.slot = given.slot"
_OTHERWISE: Final = f"""
    SELECT count(*) FROM {_COUNTED}
      LEFT JOIN card_location l ON l.seller_id = :seller AND {_PLACE}
     WHERE coalesce(l.quantity, 0) - given.more NOT BETWEEN 0 AND :most
"""
_EMPTY: Final = f"""
    DELETE FROM card_location l USING {_COUNTED}
     WHERE l.seller_id = :seller AND {_PLACE} AND l.quantity = given.more
"""
_REST: Final = f"""
    UPDATE card_location l SET quantity = l.quantity - given.more FROM {_COUNTED}
     WHERE l.seller_id = :seller AND {_PLACE}
"""
_NEW: Final = f"""
    INSERT INTO card_location (seller_id, card_id, box, slot, quantity)
    SELECT CAST(:seller AS bigint), given.card_id, given.box, given.slot, -given.more
      FROM {_COUNTED}
     WHERE given.more < 0
       AND NOT EXISTS (SELECT FROM card_location l WHERE l.seller_id = :seller AND {_PLACE})
"""


def undo_of(changes: Sequence[tuple[int, int, int, int]]) -> dict[str, object] | None:
    """Return the undo record of changes (card, box, slot, added copies); None if there are too many
    changes to store.
    """
    more: Counter[tuple[int, int, int]] = Counter()
    for card_id, box, slot, pieces in changes:
        more[card_id, box, slot] += pieces
    places = [place for place, pieces in more.items() if pieces]
    if not 0 < len(places) <= PLACES_UNDONE:
        return None
    cards, boxes, slots = (list(column) for column in zip(*places, strict=True))
    counted = {"cards": cards, "boxes": boxes, "slots": slots}
    return {"kind": KIND, **counted, "more": [more[place] for place in places]}


async def undo_placing(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, object],
    now: datetime,
) -> None:
    """Reverse the changes. Raises ChangedSince if a place no longer has the copies to remove, or
    would have too many copies.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    changes = {name: undo[name] for name in ("cards", "boxes", "slots", "more")}
    values = {"seller": caller.seller_id, "most": limits.SHELVED_QUANTITY} | changes
    changed = await session.scalar(text(_OTHERWISE), values)
    if changed:
        places = "place has" if changed == 1 else "places have"
        raise errors.ChangedSince(f"{changed} {places} different copies now")
    # `_NEW` is last, because the other two statements must not change the places that it inserts.
    for statement in (_EMPTY, _REST, _NEW):
        await run(session, statement, values)
