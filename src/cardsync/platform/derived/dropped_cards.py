"""Selects the cards that left a seller's stock recently without a sale. Today counts them, and the
search `is:dropped` finds them.
"""

from __future__ import annotations

from typing import Final

DROPPED_DAYS: Final = 7
# A sale up to this many days before the card left the stock explains why it left.
SOLD_DAYS: Final = 14

# A card left the stock at the observation after its newest observation with copies, or else at its
# current state. So a card that files have listed with a quantity of zero for years has left long
# ago. A seller without orders has no dropped cards, because there are no sales to compare with.
DROPPED: Final = f"""
    WITH empty AS MATERIALIZED (
        SELECT c.id, c.marketplace_id, c.price, c.observed_at FROM card c
         WHERE c.seller_id = :seller AND c.gone AND c.contribution IS NULL
           AND c.updated_at >= CAST(:now AS timestamptz) - interval '{DROPPED_DAYS} days'
    ), dropped AS MATERIALIZED (
        SELECT e.id, e.marketplace_id, e.price, had.quantity
          FROM empty e CROSS JOIN LATERAL (
               SELECT o.quantity, o.observed_at FROM price_observation o
                WHERE o.seller_id = :seller AND o.card_id = e.id AND o.quantity > 0
                ORDER BY o.observed_at DESC LIMIT 1) had
         WHERE coalesce((
               SELECT min(o.observed_at) FROM price_observation o
                WHERE o.seller_id = :seller AND o.card_id = e.id
                  AND o.observed_at > had.observed_at), e.observed_at)
               >= CAST(:now AS timestamptz) - interval '{DROPPED_DAYS} days'
    ), sold AS (
        SELECT i.sku_id FROM orders o
          JOIN order_item i ON i.seller_id = :seller AND i.order_id = o.id
         WHERE o.seller_id = :seller AND o.order_date >= CAST(CAST(:now AS timestamptz)
               AT TIME ZONE 'UTC' - interval '{DROPPED_DAYS + SOLD_DAYS} days' AS date)
    )
    SELECT d.id, d.price, d.quantity FROM dropped d
     WHERE EXISTS (SELECT FROM orders o WHERE o.seller_id = :seller)
       AND NOT EXISTS (SELECT FROM sold WHERE sold.sku_id = d.marketplace_id)
"""
