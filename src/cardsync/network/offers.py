"""Updates a seller's rows of `network_offer` after a sync. Only changed rows are written.

The stock of sellers who are not exposed is stored, too, because an answer may report that some
unnamed seller has a card. Cards that are gone, custom listings and contributions are not offered.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform import clock
from cardsync.platform.database.session import run
from cardsync.platform.database.transaction_settings import joined_by_hash
from cardsync.platform.derived.kept_figures import PRICING_ENDS, Figure, KeptFigure, Refresh

# The condition that a card is in its product's language: only such copies are offered.
IN_LANGUAGE: Final = """
    language = 'English' OR EXISTS (
        SELECT FROM product p WHERE p.id = card.product_id AND p.language_key <> 'en')
"""
# The seller's offers by product and condition: the cheapest price, and the copies of all cards with
# a price. If no card has a price, the offer only records that the seller has the product.
_HELD: Final = f"""
    SELECT product_id, coalesce(condition, '') AS condition,
           min(price) FILTER (WHERE price > 0) AS price,
           coalesce(sum(quantity) FILTER (WHERE price > 0), sum(quantity)) AS quantity
      FROM card
     WHERE seller_id = :seller AND quantity > 0 AND NOT gone AND NOT custom
       AND contribution IS NULL
       AND ({IN_LANGUAGE})
     GROUP BY product_id, coalesce(condition, '')
"""


async def refresh(session: AsyncSession, seller_id: int) -> int:
    """Update the seller's offers to the seller's cards, and return the number of changed rows."""
    await session.execute(
        text(f"CREATE TEMP TABLE held ON COMMIT DROP AS {_HELD}"), {"seller": seller_id}
    )
    await session.execute(text("ANALYZE held"))
    # While the statistics do not include the seller's offers, the planner would read `held` for
    # each of them.
    await session.execute(text(joined_by_hash()))
    gone = await run(
        session,
        """
            DELETE FROM network_offer o
             WHERE o.seller_id = :seller
               AND NOT EXISTS (SELECT FROM held h WHERE h.product_id = o.product_id
                                  AND h.condition = o.condition)
        """,
        {"seller": seller_id},
    )
    changed = await run(
        session,
        """
            INSERT INTO network_offer AS o (product_id, seller_id, condition, price, quantity)
            SELECT h.product_id, :seller, h.condition, h.price, h.quantity FROM held h
              LEFT JOIN network_offer f ON f.product_id = h.product_id AND f.seller_id = :seller
                                       AND f.condition = h.condition
             WHERE f.product_id IS NULL OR (f.price, f.quantity) IS DISTINCT FROM (h.price,
             h.quantity) ORDER BY h.product_id, h.condition
            ON CONFLICT (product_id, seller_id, condition) DO UPDATE
               SET price = excluded.price, quantity = excluded.quantity
        """,
        {"seller": seller_id},
    )
    await session.execute(
        text("""
            UPDATE network_seller s
               SET refreshed_at = :now, printings = h.printings, copies = h.copies
              FROM (SELECT count(DISTINCT product_id) AS printings,
                           coalesce(sum(quantity), 0) AS copies
                      FROM held WHERE price IS NOT NULL) AS h
             WHERE s.seller_id = :seller
        """),
        {"seller": seller_id, "now": clock.now()},
    )
    return gone + changed


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    await refresh(session, asked.seller_id)
    return True


OFFERS = KeptFigure[None](
    Figure.OFFERS,
    tables=("network_offer",),
    source="the seller's cards with their prices and quantities",
    marked_by=PRICING_ENDS,
    meanwhile="an answer has the offers of the last refresh; `network_seller` says when that was",
    refresh=_refresh,
)
