"""Counts the observed market sales of each of the caller's cards in the last thirty days."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.market.stored_evidence import latest_sales
from cardsync.catalog.market.verdicts import SALES_FETCHED, Cell, age_of, clearing
from cardsync.platform import errors, limits
from cardsync.platform.value_types import Row

# An adopted provisional product has the marketplace_product_id of the product that adopted it.
_CARDS: Final = """
    SELECT c.id, c.marketplace_id, c.condition, c.printing, c.language,
           coalesce(p.marketplace_product_id, q.marketplace_product_id) AS product_id
      FROM card c
      LEFT JOIN product p ON p.id = c.product_id
      LEFT JOIN product q ON q.id = p.adopted_by
     WHERE c.seller_id = :seller AND c.contribution IS NULL
       AND (c.marketplace_id = ANY (CAST(:marketplace_ids AS bigint[]))
            OR c.id = ANY (CAST(:card_ids AS bigint[])))
     ORDER BY c.id
"""


class CoveredCard(msgspec.Struct):
    """`sales_30d` is null if sales are unknown or older than a day; zero does not prove that there
    is no demand. `fetched_at` is when the sales were observed.
    """

    marketplace_id: int
    card_id: int
    sales_30d: int | None
    fetched_at: datetime | None


class ClearingCoverage(msgspec.Struct):
    cards: list[CoveredCard]
    """The requested cards"""


async def clearing_coverage(
    session: AsyncSession,
    caller: Caller,
    marketplace_ids: Collection[int],
    card_ids: Collection[int],
    now: datetime,
) -> ClearingCoverage:
    """Return the sales of those requested cards that are the caller's. Raises InvalidPayload."""
    if len(marketplace_ids) + len(card_ids) > limits.CARDS_PER_PAGE_MOST:
        raise errors.InvalidPayload(
            f"marketplace_id and card_id name more than {limits.CARDS_PER_PAGE_MOST} cards"
        )
    found = await session.execute(
        text(_CARDS),
        {
            "seller": caller.seller_id,
            "marketplace_ids": list(marketplace_ids),
            "card_ids": list(card_ids),
        },
    )
    cards: Sequence[Row] = found.all()
    products = {card.product_id for card in cards if card.product_id is not None}
    sold = await latest_sales(session, products, now)
    return ClearingCoverage([_covered(card, sold, now) for card in cards])


def _covered(card: Row, sold: dict[int, Any], now: datetime) -> CoveredCard:
    of = sold.get(card.product_id)
    fetched_at = of.fetched_at if of else None
    if age_of(fetched_at, now, SALES_FETCHED) == "future":
        fetched_at = None
    units = None
    if of is not None and card.condition is not None:
        cell = Cell(card.condition, card.printing, card.language)
        units = clearing(of.sales, cell, fetched_at, now).units
    return CoveredCard(card.marketplace_id, card.id, units, fetched_at)
