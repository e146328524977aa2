"""Puts copies of a card on the shelves, moves and removes them. A card may be in several slots. Its
quantity does not change.

Every write locks the account's row first, so that writes of two members run one after the other.
The shelves may have more copies of a card than the shop has on hand; answers report that as drift.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.plurals import counted
from cardsync.platform.shelf_place import BOX, NAMED, WAY, Place
from cardsync.stock.cards.promoted import refuse_promoted
from cardsync.stock.cards.schemas import Location
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.shelving.box_numbers import kept_box, made_box
from cardsync.stock.shelving.undo_placing import undo_of


class ShelvedCard(msgspec.Struct):
    """A card's places. `locations` are in the order of boxes and slots; `location_code` is the
    first of them.

    `drift` is true if the shelves have more copies of the card than the shop has on hand.
    """

    card_id: int
    locations: list[Location]
    location_code: str | None
    unshelved_quantity: int
    drift: bool


async def put(
    session: AsyncSession,
    caller: Caller,
    card_id: int,
    place: Place,
    quantity: int,
    now: datetime,
) -> ShelvedCard:
    """Add `quantity` copies of the card to the place. Raises NotFound, InvalidPayload."""
    name = await _begin(session, caller, card_id)
    box, place = await _add(session, caller.seller_id, card_id, place, quantity)
    note(
        session,
        caller,
        "shelf.put",
        f"{counted(quantity, 'copy', 'copies')} of {name} put in {place.code}",
        now,
        undo=undo_of([(card_id, box, place.slot, quantity)]),
    )
    return await shelved(session, caller.seller_id, card_id)


async def move(
    session: AsyncSession,
    caller: Caller,
    card_id: int,
    origin: Place,
    target: Place,
    quantity: int | None,
    now: datetime,
) -> ShelvedCard:
    """Move `quantity` copies from `origin` to `target`, or all copies if `quantity` is None. Raises
    NotFound, InvalidPayload.
    """
    name = await _begin(session, caller, card_id)
    left, taken = await _take(session, caller.seller_id, card_id, origin, quantity)
    box, target = await _add(session, caller.seller_id, card_id, target, taken)
    note(
        session,
        caller,
        "shelf.moved",
        f"{counted(taken, 'copy', 'copies')} of {name} moved from {origin.code} to {target.code}",
        now,
        undo=undo_of([(card_id, left, origin.slot, -taken), (card_id, box, target.slot, taken)]),
    )
    return await shelved(session, caller.seller_id, card_id)


async def remove(
    session: AsyncSession,
    caller: Caller,
    card_id: int,
    place: Place,
    quantity: int | None,
    now: datetime,
) -> ShelvedCard:
    """Remove `quantity` copies from the place, or all copies if `quantity` is None. Raises
    NotFound, InvalidPayload.
    """
    name = await _begin(session, caller, card_id)
    box, taken = await _take(session, caller.seller_id, card_id, place, quantity)
    note(
        session,
        caller,
        "shelf.removed",
        f"{counted(taken, 'copy', 'copies')} of {name} removed from {place.code}",
        now,
        undo=undo_of([(card_id, box, place.slot, -taken)]),
    )
    return await shelved(session, caller.seller_id, card_id)


async def assign(
    session: AsyncSession,
    caller: Caller,
    card_id: int,
    origin: Place | None,
    target: Place | None,
    now: datetime,
) -> int:
    """Move all copies of the card from one place to another, and return their number. Without an
    `origin`, all copies that are on no shelf move to `target`; without a `target`, all copies in
    `origin` are removed from the shelves. Raises NotFound, InvalidPayload.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    before = await shelved(session, caller.seller_id, card_id)
    lying = {Place(at.box, at.slot).way: at.quantity for at in before.locations}
    quantity = before.unshelved_quantity if origin is None else lying.get(origin.way, 0)
    if origin is None and target is not None:
        if not quantity:
            raise errors.InvalidPayload("place: every copy is on a shelf already")
        await put(session, caller, card_id, target, quantity, now)
    elif origin is not None and target is None:
        await remove(session, caller, card_id, origin, None, now)
    elif origin is not None and target is not None and origin.way != target.way:
        await move(session, caller, card_id, origin, target, None, now)
    return quantity


async def shelved(session: AsyncSession, seller_id: int, card_id: int) -> ShelvedCard:
    """Return a card's places. Raises NotFound."""
    rows = await session.execute(
        text(f"""
            SELECT c.quantity AS on_hand, {BOX} AS box, l.slot, l.quantity
              FROM card c
                   LEFT JOIN card_location l ON l.seller_id = c.seller_id AND l.card_id = c.id
                   {NAMED}
             WHERE c.seller_id = :seller AND c.id = :card ORDER BY {WAY}, l.slot
        """),
        {"seller": seller_id, "card": card_id},
    )
    places = rows.all()
    if not places:
        raise _unknown(card_id)
    locations = [
        struct_of(Location, row, code=Place(row.box, row.slot).code)
        for row in places
        if row.box is not None
    ]
    more = places[0].on_hand - sum(place.quantity for place in locations)
    first = locations[0].code if locations else None
    return ShelvedCard(card_id, locations, first, max(more, 0), more < 0)


async def places_of_items(
    source: Source,
    seller_id: int,
    session_id: int,
) -> dict[int, Place]:
    """Return the first place of each item of a pull session, in the order of boxes and slots. Items
    without a place are missing.
    """
    rows = await found(
        source,
        f"""
            SELECT DISTINCT ON (i.item_id) i.item_id, {BOX}, l.slot
              FROM pull_session_item i
              JOIN card c ON c.seller_id = i.seller_id
                         AND (c.marketplace_id = i.sku_id OR (c.custom AND c.listing_id = i.sku_id))
              JOIN card_location l ON l.seller_id = c.seller_id AND l.card_id = c.id
                   {NAMED}
             WHERE i.seller_id = :seller AND c.seller_id = :seller AND l.seller_id = :seller
               AND i.session_id = :session
             ORDER BY i.item_id, {WAY}, l.slot
        """,
        {"seller": seller_id, "session": session_id},
    )
    return {item_id: Place(box, slot) for item_id, box, slot in rows}


async def _begin(session: AsyncSession, caller: Caller, card_id: int) -> str:
    """Lock the shop and return the card's name. Raises NotFound, StockPromotedReload."""
    await locked(session, Lock.SHOP, caller.seller_id)
    await refuse_promoted(session, caller.seller_id, [card_id])
    query = text(
        "SELECT c.product_name FROM card c"
        f" WHERE c.seller_id = :seller AND c.id = :card AND {VISIBLE}"
    )
    named = {
        "seller": caller.seller_id,
        "card": card_id,
        "member": caller.member_id,
    }
    name: str | None = await session.scalar(query, named)
    if name is None:
        raise _unknown(card_id)
    return name


def _unknown(card_id: int) -> errors.NotFound:
    return errors.NotFound(f"there is no card {card_id}")


_HERE = "seller_id = :seller AND card_id = :card AND box = :box AND slot = :slot"


async def _add(
    session: AsyncSession,
    seller_id: int,
    card_id: int,
    place: Place,
    quantity: int,
) -> tuple[int, Place]:
    """Add copies to a place. Return the box's number in the tables, and the place in the shop's
    spelling.
    """
    number, box = await made_box(session, seller_id, place.box)
    place = Place(box, place.slot)
    added = await session.execute(
        text("""
            INSERT INTO card_location AS l (seller_id, card_id, box, slot, quantity)
            VALUES (:seller, :card, :box, :slot, :quantity)
            ON CONFLICT (seller_id, card_id, box, slot)
               DO UPDATE SET quantity = l.quantity + excluded.quantity
             WHERE l.quantity + excluded.quantity <= :most RETURNING l.quantity
        """),
        {
            "seller": seller_id,
            "card": card_id,
            "box": number,
            "slot": place.slot,
            "quantity": quantity,
            "most": limits.SHELVED_QUANTITY,
        },
    )
    if added.first() is None:
        raise errors.InvalidPayload(
            f"quantity: a slot holds at most {limits.SHELVED_QUANTITY} of a card,"
            f" {place.code} would have more"
        )
    return number, place


async def _take(
    session: AsyncSession,
    seller_id: int,
    card_id: int,
    place: Place,
    quantity: int | None,
) -> tuple[int, int]:
    """Remove copies from a place. Return the box's number in the tables, and the number of removed
    copies.
    """
    box = await kept_box(session, seller_id, place.box)
    number = box.number if box else 0
    here = {"seller": seller_id, "card": card_id, "box": number, "slot": place.slot}
    lying: int | None = await session.scalar(
        text(f"SELECT quantity FROM card_location WHERE {_HERE}"), here
    )
    if lying is None:
        raise errors.NotFound(f"card {card_id} is not in {place.code}")
    taken = lying if quantity is None else quantity
    if taken > lying:
        raise errors.InvalidPayload(
            f"quantity: {lying} of card {card_id} are in {place.code}, not {taken}"
        )
    if taken == lying:
        await session.execute(text(f"DELETE FROM card_location WHERE {_HERE}"), here)
    else:
        less = text(f"UPDATE card_location SET quantity = quantity - :taken WHERE {_HERE}")
        await session.execute(less, here | {"taken": taken})
    return number, taken
