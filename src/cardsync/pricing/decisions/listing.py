"""Prices that wait for the seller's word: a caller and a page come in; the rows with their cards go
out, those first that move the most money.

A review whose evidence has expired is not shown, even before the next run deletes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.database.snapshot_reads import Planned, Reading


class Waiting(NamedTuple):
    """A review with its card; the fields are the columns of _PAGE."""

    marketplace_id: int
    reason: str
    rule_id: int | None
    current_price: Decimal | None
    proposed_price: Decimal
    revision: datetime
    created_at: datetime
    expires_at: datetime
    card_id: int | None
    product_name: str | None
    set_name: str | None
    number: str | None
    condition: str | None
    printing: str | None
    quantity: int | None


class Reviews(NamedTuple):
    reviews: Sequence[Waiting]
    total: int
    oldest: datetime | None


_PENDING: Final = """
    r.seller_id = :seller AND r.family = 'review' AND r.state = 'pending' AND r.expires_at > :now
"""
_PAGE: Final = Planned(
    "price_reviews",
    f"""
    WITH page AS MATERIALIZED (
        SELECT * FROM proposal r WHERE {_PENDING}
         ORDER BY r.worth DESC, r.marketplace_id LIMIT :limit OFFSET :offset)
    SELECT r.marketplace_id, r.kind, r.rule_id, r.current_price, r.proposed_price, r.revision,
           r.created_at, r.expires_at, c.id, c.product_name, c.set_name, c.number, c.condition,
           c.printing, c.quantity
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
_COUNTED: Final = Planned(
    "price_reviews_counted",
    f"SELECT count(*), min(r.created_at) FROM proposal r WHERE {_PENDING}",
    {"seller": "bigint", "now": "timestamptz"},
)


async def reviews_of(
    reading: Reading,
    caller: Caller,
    page: int,
    per_page: int,
    now: datetime,
) -> Reviews:
    values = {
        "seller": caller.seller_id,
        "now": now,
        "limit": per_page,
        "offset": (page - 1) * per_page,
    }
    rows, [counted] = await reading.together([_PAGE, _COUNTED], values, last=True)
    return Reviews([Waiting._make(row) for row in rows], *counted)
