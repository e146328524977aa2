"""Maps the names of flags (`is:`), things (`has:`) and numeric fields to their SQL over `card c` of
`:seller` at `:now`. Pure.

A flag that needs other tables reads them in one subquery for all cards, never in one subquery per
card.
"""

from __future__ import annotations

from cardsync.catalog.printings import PRINTINGS, is_foil
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.derived.dropped_cards import DROPPED

_KNOWN = ", ".join(f"'{name}'" for name in PRINTINGS)
_FOILS = ", ".join(f"'{name}'" for name in PRINTINGS if is_foil(name))


def new_printing(like: str) -> str:
    """Return the condition that a card's printing is not a known one and that its lower-case name
    matches the pattern. Known printings need no pattern, because their exact names are compared.
    """
    return f"(c.printing NOT IN ({_KNOWN}) AND lower(c.printing) LIKE {like})"


_FOIL = f"(c.printing IN ({_FOILS}) OR {new_printing(repr('%foil'))})"
SHELVED = "c.id IN (SELECT l.card_id FROM card_location l WHERE l.seller_id = :seller)"
_UNSHELVED = """greatest(c.quantity - coalesce((
  SELECT sum(l.quantity)
    FROM card_location l
   WHERE l.seller_id = :seller AND l.card_id = c.id), 0), 0)"""
ON_LIST = "SELECT e.card_id FROM card_list_entry e WHERE e.seller_id = :seller"
# The average cost of the card's copies in lots; null if no cost is known (lots/settle_uses.py).
COST = """(SELECT k.cost FROM card_cost k
  WHERE k.seller_id = :seller AND k.marketplace_id = c.marketplace_id)"""
# The days since the oldest copy in a lot was bought or, for a card without lots, since its first
# upload.
_AGE = """floor(extract(epoch FROM (CAST(:now AS timestamptz) - coalesce((
  SELECT CAST(k.oldest AS timestamp) AT TIME ZONE 'UTC' FROM card_cost k
   WHERE k.seller_id = :seller AND k.marketplace_id = c.marketplace_id), c.created_at))) / 86400)"""
_SOLD_ITEMS = """order_item i JOIN orders ON orders.seller_id = i.seller_id
      AND orders.id = i.order_id
    WHERE i.seller_id = :seller AND orders.seller_id = :seller AND i.sku_id IS NOT NULL
      AND orders.status_group <> 'Cancelled' AND (orders.refund_amt >= orders.total_amt) IS NOT TRUE"""
# The last sale of a listing, without canceled and fully refunded orders. An order item has the
# listing's id, also for custom listings.
LAST_SOLD = f"""(SELECT max({PLACED_AT}) FROM {_SOLD_ITEMS} AND i.sku_id = c.listing_id)"""


def not_sold_for(days: str) -> str:
    """Return the condition that a card was not sold for at least this number of days: it has no
    later sale, and its first upload or a sale was at least that long ago. The sales are read once
    for all cards, not once per card.
    """
    until = f"CAST(:now AS timestamptz) - make_interval(days => CAST({days} AS int))"
    sold = f"SELECT i.sku_id FROM {_SOLD_ITEMS} AND {PLACED_AT}"
    return (
        f"((c.listing_id IN ({sold} > {until})) IS NOT TRUE"
        f" AND (c.created_at <= {until} OR (c.listing_id IN ({sold} <= {until})) IS TRUE))"
    )


AMOUNTS = {
    "price": "c.price",
    "target": "c.target_price",
    "market": "c.market",
    "low": "c.low",
    "lowship": "c.low_with_shipping",
    "direct": "c.direct_low",
    "cost": COST,
    "margin": f"(CASE WHEN c.price > 0 THEN (c.price - {COST}) * 100 / c.price END)",
    "qty": "c.quantity",
    "unshelved": _UNSHELVED,
    "change": "(CASE WHEN c.price > 0 THEN (c.target_price - c.price) * 100 / c.price END)",
    "age": _AGE,
    "id": "c.id",
    "sku": "c.marketplace_id",
}
# The observation `before` the newest observation of the card `c`.
_PREVIOUS = """CROSS JOIN LATERAL (
 SELECT o.quantity, o.observed_at FROM price_observation o
  WHERE o.seller_id = :seller AND o.card_id = c.id ORDER BY o.observed_at DESC LIMIT 1) before"""


def previous_agrees(seen_again: str) -> str:
    """Return the query of cards whose newest two observations have the same quantity. Cards that
    the condition `seen_again` selects are omitted.
    """
    return f"""SELECT c.id FROM card c {_PREVIOUS}
  WHERE c.seller_id = :seller AND NOT c.gone
    AND ({seen_again}) IS NOT TRUE AND before.quantity = c.quantity"""


_DRIFTED = """c.id IN (SELECT l.card_id
  FROM card_location l JOIN card d ON d.seller_id = l.seller_id AND d.id = l.card_id
 WHERE l.seller_id = :seller AND d.seller_id = :seller
 GROUP BY l.card_id, d.quantity HAVING sum(l.quantity) > d.quantity)"""
# `is:moved` means, as in pricing, that the market price moved by 5 % or more between two successive
# observations of the last 14 days.
_MOVED = """c.id IN (SELECT moves.card_id FROM (
    SELECT card_id, observed_at, market,
           lag(market) OVER (PARTITION BY card_id ORDER BY observed_at) AS before
      FROM (SELECT o.card_id, o.observed_at, o.market
              FROM price_observation o WHERE o.seller_id = :seller
            UNION ALL
            SELECT d.id, d.observed_at, d.market FROM card d WHERE d.seller_id = :seller) AS seen
  ) AS moves WHERE moves.observed_at >= CAST(:now AS timestamptz) - interval '14 days'
    AND moves.market > 0 AND moves.before > 0
    AND abs(moves.market - moves.before) * 20 >= moves.before)"""
# Up to 20 of the newest observations `other` with another quantity than the card has now. The audit
# compares with all of them, because after a later sale, the newest of them alone may not show the
# loss.
_OTHERS = """CROSS JOIN LATERAL (
  SELECT o.quantity, o.observed_at, row_number() OVER (ORDER BY o.observed_at DESC) AS place
    FROM price_observation o
   WHERE o.seller_id = :seller AND o.card_id = c.id AND o.quantity <> c.quantity
   ORDER BY o.observed_at DESC LIMIT 20) other"""
# A card that was missing in a pull is not selected any more after a later count of its place,
# whatever the result of the count.
_COUNTED_SINCE = """EXISTS (
   SELECT FROM shelf_count s
     JOIN shelf_count_line l ON l.seller_id = :seller AND l.count_id = s.id
     JOIN card k ON k.seller_id = :seller AND k.id = l.card_id
    WHERE s.seller_id = :seller AND s.state = 'settled' AND s.ended_at >= m.received_at
      AND l.outcome IN ('correct', 'wrong') AND k.listing_id = m.sku_id)"""
# `is:audit` selects cards that were missing in a pull, and cards whose quantity fell by more than
# the number of copies sold since the higher quantity was observed. A sale counts even if it is up
# to a day older than that observation.
_AUDIT = queries_of(__package__)["audit"].format(
    counted_since=_COUNTED_SINCE, others=_OTHERS, placed_at=PLACED_AT, sold_items=_SOLD_ITEMS
)
# The product lines whose last full pricing stored explanations. That pricing is the last completed
# run after a sync, if it belongs to the upload that contained the whole line or to no upload.
_REPORTED = """SELECT l.product_line FROM line_snapshot l CROSS JOIN LATERAL (
 SELECT r.summary ->> 'receipts' AS key FROM price_run r
   WHERE r.seller_id = :seller AND r.trigger = 'sync' AND r.state = 'completed'
     AND (r.upload_id IS NULL OR r.upload_id = l.upload_id)
  ORDER BY r.id DESC LIMIT 1) latest
 WHERE l.seller_id = :seller AND latest.key IS NOT NULL"""
# `compile.py` builds the SQL of `stamped`, `confirmed` and `in-flux`.
FLAGS = {
    "gone": "c.gone",
    "active": "NOT c.gone",
    "unshelved": f"(c.quantity > 0 AND ({SHELVED}) IS NOT TRUE)",
    "location-drift": _DRIFTED,
    "custom": "c.custom",
    "priced": "c.price IS NOT NULL",
    "unpriced": "c.price IS NULL",
    "underpriced": "c.price < c.target_price",
    "overpriced": "c.price > c.target_price",
    "pinned": "EXISTS (SELECT FROM price_decision n"
    " WHERE n.seller_id = :seller AND n.kind = 'pin' AND n.marketplace_id = c.marketplace_id"
    " AND (n.until IS NULL OR n.until > CAST(:now AS timestamptz)))",
    "held": "(NOT c.gone AND c.marketplace_id IN (SELECT h.marketplace_id"
    " FROM price_decision h WHERE h.seller_id = :seller AND h.kind = 'cap' UNION ALL SELECT v.marketplace_id FROM proposal v"
    " WHERE v.seller_id = :seller AND v.family = 'review' AND v.state = 'pending'"
    " AND v.expires_at > CAST(:now AS timestamptz)))",
    "capped": "(NOT c.gone AND c.marketplace_id IN (SELECT h.marketplace_id"
    " FROM price_decision h WHERE h.seller_id = :seller AND h.kind = 'cap'))",
    "stuck": "(NOT c.gone AND c.marketplace_id IN (SELECT h.marketplace_id"
    " FROM price_decision h WHERE h.seller_id = :seller AND h.kind = 'cap' AND h.part = 1))",
    "dropped": f"c.id IN (SELECT d.id FROM ({DROPPED}) d)",
    "sealed": "c.condition = 'U'",
    "foil": _FOIL,
    "moved": _MOVED,
    # A member has to decide, because the product is uncertain or the condition label is unknown.
    "review": "(c.match = 'ambiguous' OR c.condition IS NULL)",
    "audit": _AUDIT,
}
THINGS = {
    "photo": "c.photo_url <> ''",
    "list": f"c.id IN ({ON_LIST})",
    "receipt": f"(NOT c.gone AND c.contribution IS NULL AND c.product_line IN ({_REPORTED}))",
    "location": SHELVED,
    "cost": f"({COST} IS NOT NULL)",
}
