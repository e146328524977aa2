"""Reads the offers of exposed sellers for each line of a basket, cheapest first, in one
statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.network.limits import BASKET_OFFERS
from cardsync.network.resolve import EXPOSED
from cardsync.network.wishes import WishLine
from cardsync.platform.database.room_sql import queries_of

# The statement reads only the cheapest offers of each seller for a line, as many as have enough
# copies for all lines with that card.
_OFFERS = queries_of(__package__)["basket_offers_offers"].format(exposed=EXPOSED)


class Offered(NamedTuple):
    """An offer for a line. `line` is the position of the reference in the basket."""

    line: int
    product_id: int
    seller_id: int
    condition: str
    price: Decimal
    quantity: int
    store_name: str | None
    listing_url_template: str | None
    postage_steps: str | None
    marketplace_product_id: int | None


async def offers_for(
    session: AsyncSession,
    meant: Sequence[tuple[int, int]],
    cards: Sequence[WishLine],
    now: datetime,
) -> list[Offered]:
    """Return the offers for each (line, product), in the order of lines and prices."""
    if not meant:
        return []
    rows = await session.execute(
        text(_OFFERS),
        {
            "lines": [line for line, _ in meant],
            "ids": [id for _, id in meant],
            "wanted": [cards[line].quantity for line, _ in meant],
            "conditions": ["|".join(cards[line].conditions) for line, _ in meant],
            "any": [cards[line].any_printing for line, _ in meant],
            "weighed": BASKET_OFFERS // len(meant),
            "now": now,
        },
    )
    return [Offered(*row) for row in rows]
