"""Reads the price changes in a price file, for the members who approve it: the cards with the
largest changes of the listed value, and the sums over all cards.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.prices.decisions.on_sale import ended_sales
from cardsync.prices.files.content import served

# The last column counts first prices: cards without a price, and cards that have only a My Store
# Price, if it equals the target.
_SUMS: Final = """
    SELECT count(*),
           count(*) FILTER (WHERE c.target_price > c.price),
           coalesce(sum((c.target_price - c.price) * c.quantity)
               FILTER (WHERE c.target_price > c.price), 0),
           count(*) FILTER (WHERE c.target_price < c.price),
           coalesce(sum((c.price - c.target_price) * c.quantity)
               FILTER (WHERE c.target_price < c.price), 0),
           count(*) FILTER (WHERE c.price IS NULL OR c.price = c.target_price)
      FROM card c WHERE {which}
"""
_LARGEST: Final = """
    SELECT c.id, c.product_name, c.set_name, c.condition_label, c.quantity, c.market, c.price,
           c.target_price
      FROM card c WHERE {which}
     ORDER BY abs(c.target_price - c.price) * c.quantity DESC NULLS FIRST, c.id LIMIT :most
"""


class PriceInFile(NamedTuple):
    """A card in the price file. `price` is the marketplace's price, or None before the card's first
    price.
    """

    card_id: int
    product_name: str
    set_name: str
    condition: str
    quantity: int
    market: Decimal | None
    price: Decimal | None
    target: Decimal


class ChangesInFile(NamedTuple):
    """The sums over a price file. `raised_by` and `lowered_by` are in dollars, for all copies of
    the raised and lowered cards.
    """

    total: int
    raised: int
    raised_by: Decimal
    lowered: int
    lowered_by: Decimal
    first_prices: int
    largest: list[PriceInFile]


async def changes_in_file(
    session: AsyncSession,
    caller: Caller,
    most: int,
    now: datetime,
) -> ChangesInFile:
    """Return the changes of the file that `price_updates.export` writes in the same snapshot."""
    which = served(caller.seller_id, await ended_sales(session, caller.seller_id, now))
    sums = (await session.execute(text(_SUMS.format(which=which)))).one()
    rows = await session.execute(text(_LARGEST.format(which=which)), {"most": most})
    return ChangesInFile._make([*sums, [PriceInFile(*row) for row in rows]])
