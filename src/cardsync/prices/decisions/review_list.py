"""Lists the prices that need review with their cards, the largest moves of money first.

A review whose evidence has expired is omitted, even before the next run deletes it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

from cardsync.access.caller import Caller
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of_values
from cardsync.prices.decisions.schemas import PriceReviewShown, PriceReviewsShown
from cardsync.prices.proposals.decide_proposals import SeenProposal

_PENDING: Final = """
    r.seller_id = :seller AND r.family = 'review' AND r.state = 'pending' AND r.expires_at > :now
"""
_PAGE: Final = Planned(
    "price_reviews",
    f"""
    WITH page AS MATERIALIZED (
        SELECT * FROM proposal r WHERE {_PENDING}
         ORDER BY r.worth DESC, r.marketplace_id LIMIT :limit OFFSET :offset)
    SELECT r.marketplace_id, c.id, c.product_name, c.set_name, c.number, c.condition, c.printing,
           c.quantity, r.kind, r.rule_id, r.current_price, r.proposed_price, r.revision,
           r.created_at, r.expires_at, r.worth
      FROM page r
      LEFT JOIN card c ON c.seller_id = :seller AND c.marketplace_id = r.marketplace_id
                      AND c.contribution IS NULL
     ORDER BY r.worth DESC, r.marketplace_id
    """,
    {
        "seller": "bigint",
        "now": "timestamptz",
        "limit": "bigint",
        "offset": "bigint",
    },
)
_UNDER: Final = f"""
    SELECT r.marketplace_id, r.revision FROM proposal r
     WHERE {_PENDING} AND greatest(r.current_price, r.proposed_price) < :price
     ORDER BY r.worth DESC, r.marketplace_id LIMIT :most
"""
_COUNTED: Final = Planned(
    "price_reviews_counted",
    f"SELECT count(*) FROM proposal r WHERE {_PENDING}",
    {"seller": "bigint", "now": "timestamptz"},
)


async def reviews_of(
    reading: Reading,
    caller: Caller,
    paging: Paging,
    now: datetime,
) -> PriceReviewsShown:
    values = {"seller": caller.seller_id, "now": now, **paging.values}
    rows, [(total,)] = await reading.together([_PAGE, _COUNTED], values, last=True)
    reviews = [struct_of_values(PriceReviewShown, row, caller) for row in rows]
    return PriceReviewsShown(reviews, *paging.of(total))


async def reviews_under(
    reading: Reading,
    caller: Caller,
    price: Decimal,
    most: int,
    now: datetime,
) -> list[SeenProposal]:
    """Return the waiting reviews whose current and proposed prices are below an amount, with their
    present revisions.
    """
    values = {"seller": caller.seller_id, "now": now, "price": price, "most": most}
    return [SeenProposal(*row) for row in await reading.rows(_UNDER, values)]
