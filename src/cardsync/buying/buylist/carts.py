"""Parses a visitor's cart, which is part of the page's address, and turns it into a draft offer.

An entry of a cart is `product-condition-printing-copies`. The printing is its index in `PRINTINGS`,
or its text if `PRINTINGS` lacks it. No data of a visitor are stored before the cart is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note_by
from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import GRADES
from cardsync.buying.limits import BUYLIST_CART_LINES, BUYLIST_DRAFTS, OFFER_COPIES
from cardsync.buying.offers.offer_drafts import new_offer
from cardsync.buying.offers.price_lines import OfferWant, priced
from cardsync.buying.store_credit.buying_customers import new_customer
from cardsync.catalog.printings import LONGEST, PRINTINGS
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.kit.struct_rows import struct_of

# The name of a cart's sender in the activity feed, and of the author of the draft offer.
VISITOR: Final = "visitor"
_ENTRY: Final = re.compile(rf"([0-9]{{1,18}})-([A-Z]{{2,3}})-(.{{1,{LONGEST}}})-([0-9]{{1,5}})")
_WAITING: Final = """
    SELECT count(*) FROM buying_offer
     WHERE seller_id = :seller AND state = 'draft' AND source = 'buylist'
"""


class CartLine(NamedTuple):
    product_id: int
    condition: str
    printing: str
    copies: int

    @property
    def entry(self) -> str:
        return f"{self.product_id}-{self.condition}-{place_of(self.printing)}-{self.copies}"


def read_cart(entries: Iterable[str]) -> list[CartLine]:
    """Return the lines of a cart, one per card. Invalid entries are skipped, because anybody can
    edit the address.
    """
    copies: dict[tuple[int, str, str], int] = {}
    for entry in entries:
        parts = _ENTRY.fullmatch(entry)
        if parts is None or parts[2] not in GRADES or not (printing := _printing_at(parts[3])):
            continue
        key = (int(parts[1]), parts[2], printing)
        if int(parts[4]) and (key in copies or len(copies) < BUYLIST_CART_LINES):
            copies[key] = min(copies.get(key, 0) + int(parts[4]), OFFER_COPIES)
    return [CartLine(*key, number) for key, number in copies.items()]


def place_of(printing: str) -> str:
    return str(PRINTINGS.index(printing)) if printing in PRINTINGS else printing


def _printing_at(place: str) -> str:
    if not place.isdecimal():
        return place
    return PRINTINGS[int(place)] if int(place) < len(PRINTINGS) else ""


def wants_of(cart: Sequence[CartLine]) -> list[OfferWant]:
    return [struct_of(OfferWant, line) for line in cart]


async def send_cart(
    session: AsyncSession,
    caller: Caller,
    cart: Sequence[CartLine],
    name: str,
    contact: str,
    words: str,
    now: datetime,
) -> int:
    """Make a draft offer of a cart, priced by the current rules, and return its ID. The shop is
    locked after the cards are priced, so that a large cart does not hold the lock for long. Raises
    InvalidPayload, ListFull.
    """
    if not cart:
        raise errors.InvalidPayload("cart: add at least one card")
    if not contact.strip():
        raise errors.InvalidPayload("contact: enter your email or phone")
    lines = await priced(session, caller, wants_of(cart), now)
    await locked(session, Lock.SHOP, caller.seller_id)
    waiting = await session.scalar(text(_WAITING), {"seller": caller.seller_id})
    if (waiting or 0) >= BUYLIST_DRAFTS:
        raise errors.ListFull("this shop has too many carts to review; try again tomorrow")
    customer = await new_customer(session, caller.seller_id, VISITOR, name, contact, now)
    offer = await new_offer(
        session,
        caller,
        lines,
        now,
        by=VISITOR,
        customer_id=customer.id,
        note_text=words,
        source="buylist",
    )
    summary = f"offer {offer.id}: a cart of {len(cart)} cards from the public buylist"
    note_by(session, caller.seller_id, VISITOR, "offer.drafted", summary, now)
    return offer.id
