"""Reads the shelves: all boxes, and the cards of one box in the order of its slots."""

from __future__ import annotations

from typing import Final

import msgspec

from cardsync.access.caller import Caller
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.shelf_place import BOX, NAMED, WAY, Box, Place
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.shelving.box_numbers import kept_box

_HERE: Final = f"""
      FROM card_location l JOIN card c ON c.seller_id = l.seller_id AND c.id = l.card_id
     WHERE l.seller_id = :seller AND c.seller_id = :seller AND l.box = :box AND {VISIBLE}
"""
_COUNTED: Final = f"SELECT count(*) {_HERE}"
_CARDS: Final = f"""
    SELECT l.slot, l.quantity, c.id, c.marketplace_id, c.product_name, c.set_name, c.number,
           c.condition, c.printing, c.quantity AS on_hand,
           (SELECT sum(e.quantity) FROM card_location e
             WHERE e.seller_id = :seller AND e.card_id = c.id) > c.quantity AS drift
    {_HERE} ORDER BY l.slot, c.product_name, c.id LIMIT :limit OFFSET :offset
"""


class BoxBody(msgspec.Struct):
    """A box. `slots` is the number of slots that are not empty, `cards` the number of different
    cards in the box, and `quantity` the number of copies.
    """

    box: Box
    slots: int
    cards: int
    quantity: int


class CardInSlot(msgspec.Struct):
    """A card in a slot. `drift` is true if all shelves together have more copies of the card than
    the shop has on hand.
    """

    slot: int
    code: str
    """The box and the slot, joined by a hyphen"""
    quantity: int
    card_id: int
    marketplace_id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str
    on_hand: int
    drift: bool


class Shelves(msgspec.Struct):
    boxes: list[BoxBody]


class BoxPage(msgspec.Struct):
    box: Box
    cards: list[CardInSlot]
    """The cards in the box"""
    total: int
    page: int
    per_page: int
    total_pages: int


async def boxes(source: Source, caller: Caller) -> Shelves:
    """Return the boxes with cards that the caller may see."""
    rows = await found(
        source,
        f"""
            SELECT {BOX}, count(DISTINCT l.slot), count(DISTINCT l.card_id),
                   CAST(sum(l.quantity) AS bigint)
              FROM card_location l JOIN card c ON c.seller_id = l.seller_id AND c.id = l.card_id
                   {NAMED}
             WHERE l.seller_id = :seller AND c.seller_id = :seller AND {VISIBLE}
             GROUP BY l.box, b.label, b.way ORDER BY {WAY}
        """,
        {"seller": caller.seller_id, "member": caller.member_id},
    )
    return Shelves([BoxBody(*row) for row in rows])


async def lying_in(source: Source, caller: Caller, box: Box, paging: Paging) -> BoxPage:
    """Return a page of the cards in a box. A number or label that no box has gives an empty
    page.
    """
    kept = await kept_box(source, caller.seller_id, box)
    if kept is None:
        return BoxPage(box, [], *paging.of(0))
    number, box = kept
    here = {
        "seller": caller.seller_id,
        "box": number,
        "member": caller.member_id,
        **paging.values,
    }
    [[total]], rows = await in_one_message(source, [_COUNTED, _CARDS], here)
    cards = [CardInSlot(slot, Place(box, slot).code, *rest) for slot, *rest in rows]
    return BoxPage(box, cards, *paging.of(total))
