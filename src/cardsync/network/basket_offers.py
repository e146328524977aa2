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

# A line needs only a seller's cheapest offers, until they have enough copies for all lines that may
# share them.
_OFFERS = f"""
WITH asked AS (
    SELECT a.line, a.id, a.any_printing,
           string_to_array(nullif(a.conditions, ''), '|') AS conditions,
           p.game, p.name_key, p.back_key,
           sum(a.wanted) OVER (PARTITION BY p.game, p.name_key) AS most
      FROM unnest(CAST(:lines AS int[]), CAST(:ids AS bigint[]), CAST(:wanted AS int[]),
                  CAST(:conditions AS text[]), CAST(:any AS boolean[]))
           AS a (line, id, wanted, conditions, any_printing)
      JOIN product p ON p.id = a.id),
meant AS (
    SELECT line, conditions, most, id FROM asked WHERE NOT any_printing
    UNION ALL
    SELECT a.line, a.conditions, a.most, p.id
      FROM asked a JOIN product p ON p.game = a.game AND p.name_key = a.name_key
       AND (p.id = a.id OR (p.back_key IS NOT DISTINCT FROM a.back_key AND NOT p.sealed))
     WHERE a.any_printing),
offered AS (
    SELECT m.line, m.most, o.product_id, o.seller_id, o.condition, o.price, o.quantity,
           s.store_name, s.listing_url_template, s.postage_steps,
           sum(o.quantity) OVER (PARTITION BY m.line, o.seller_id
               ORDER BY o.price, o.product_id, o.condition) - o.quantity AS cheaper
      FROM meant m
      JOIN network_offer o ON o.product_id = m.id
      JOIN network_seller s ON s.seller_id = o.seller_id
     WHERE o.price IS NOT NULL AND o.quantity > 0 AND {EXPOSED}
       AND (m.conditions IS NULL OR o.condition = ANY (m.conditions))),
ranked AS (
    SELECT o.*, row_number() OVER (PARTITION BY o.line
               ORDER BY o.price, o.seller_id, o.product_id, o.condition) AS place
      FROM offered o WHERE o.cheaper < o.most)
SELECT r.line, r.product_id, r.seller_id, r.condition, r.price, r.quantity, r.store_name,
       r.listing_url_template, r.postage_steps, p.marketplace_product_id
  FROM ranked r JOIN product p ON p.id = r.product_id
 WHERE r.place <= :weighed
 ORDER BY r.line, r.place
"""


class Offered(NamedTuple):
    """`line` is the position of the reference in the basket."""

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
    """Return the offers of each (line, product), the cheapest of each line first."""
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
