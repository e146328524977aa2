"""Pending recommendations: a caller and a page come in; price reviews by expected money go out,
with stale stock and advice on rules beside them.

A recommendation whose evidence has expired is not shown, even before the next generation says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import limits
from cardsync.access.caller import Caller

_COLUMNS: Final = """
    r.id, r.family, r.kind, r.state, r.current_price, r.proposed_price, r.expected_value,
    r.confidence, r.evidence, r.revision, r.created_at, r.expires_at, r.rule_id, r.card_id,
    c.marketplace_id, c.product_name, c.set_name, c.number, c.condition, c.printing, c.quantity
"""
_PENDING: Final = """
    r.seller_id = :seller AND r.family = :family AND r.state = 'pending' AND r.expires_at > :now
"""
# The page is found in the index alone; the cards of its rows are joined behind it.
_PAGE: Final = f"""
    WITH page AS MATERIALIZED (
        SELECT * FROM recommendation r WHERE {_PENDING}
         ORDER BY r.worth DESC, r.id LIMIT :limit OFFSET :offset)
    SELECT {_COLUMNS}
      FROM page r LEFT JOIN card c ON c.seller_id = :seller AND c.id = r.card_id
     ORDER BY r.worth DESC, r.id
"""
_COUNTED: Final = f"""
    SELECT count(*) AS total, max(r.revision) AS revision,
           coalesce(sum(r.expected_value), 0) AS expected
      FROM recommendation r WHERE {_PENDING}
"""


class Recommended(NamedTuple):
    """`revision` is that of the newest review; `expected` sums what all of them may bring."""

    reviews: Sequence[Any]
    liquidation: Sequence[Any]
    account: Sequence[Any]
    total: int
    revision: datetime | None
    expected: Any


async def recommendations(
    session: AsyncSession,
    caller: Caller,
    page: int,
    per_page: int,
    now: datetime,
) -> Recommended:
    """Return a page of the pending price reviews, and the other families whole."""
    values = {"seller": caller.seller_id, "now": now}

    async def rows(family: str, limit: int, offset: int = 0) -> Sequence[Any]:
        asked = values | {"family": family, "limit": limit, "offset": offset}
        return (await session.execute(text(_PAGE), asked)).all()

    counted = (await session.execute(text(_COUNTED), values | {"family": "price"})).one()
    return Recommended(
        await rows("price", per_page, (page - 1) * per_page),
        await rows("liquidation", limits.STALE_STOCK),
        await rows("account", limits.STALE_STOCK),
        counted.total,
        counted.revision,
        counted.expected,
    )
