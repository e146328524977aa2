"""Finds the badges of some cards: a buy-out of the last four hours, few fresh listings in the
card's own condition, and why a price is held.

A badge needs fresh evidence. Unknown evidence, stale evidence and evidence from the future give no
badge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.market.stored_evidence import Supplied, recent_supply
from cardsync.catalog.market.verdicts import (
    BUY_OUT_WINDOW,
    LISTINGS_FRESH,
    SUPPLY_SINCE,
    Cell,
    buy_out,
)
from cardsync.platform import errors, limits
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.value_types import Row
from cardsync.prices.engine.holdout_draw import begin_of, window
from cardsync.prices.recommendations.schemas import CardBadges, HeldShown
from cardsync.prices.recommendations.why_held import Held

# A card of a provisional product that a catalog product replaced counts as a card of the catalog
# product.
_CARDS: Final = queries_of(__package__)["badges_of_cards"]
_LOOKED_AT: Final = """
    SELECT product_id, listings_at FROM market_look
     WHERE product_id = ANY (CAST(:products AS bigint[])) AND listings_at BETWEEN :since AND :now
"""
# The first row of a card is its badge: a review is more informative than the cap before it, a
# hold-out excludes both, and a market gate does not change the rule's price.
_HELD: Final = queries_of(__package__)["held_badges"]


async def badges_of(
    session: AsyncSession,
    caller: Caller,
    marketplace_ids: Collection[int],
    card_ids: Collection[int],
    now: datetime,
) -> list[CardBadges]:
    """Return the badges of those requested cards that are the caller's and in stock.

    Raises InvalidPayload.
    """
    if len(marketplace_ids) + len(card_ids) > limits.CARDS_PER_PAGE_MOST:
        raise errors.InvalidPayload(
            f"marketplace_id and card_id name more than {limits.CARDS_PER_PAGE_MOST} cards"
        )
    if not marketplace_ids and not card_ids:
        return []
    asked = {
        "seller": caller.seller_id,
        "marketplace_ids": list(marketplace_ids),
        "card_ids": list(card_ids),
        "now": now,
    }
    cards: Sequence[Row] = (await session.execute(text(_CARDS), asked)).all()
    # No limit holds a pinned price, whatever the last run recorded.
    unpinned = [card.marketplace_id for card in cards if not card.pinned]
    held = await _held(session, caller.seller_id, unpinned, now)
    products = {card.product_id for card in cards if card.product_id is not None}
    looks = await _looks(session, products, now)
    supplied = await recent_supply(session, looks, now, max(SUPPLY_SINCE, LISTINGS_FRESH))
    return [_badges(card, held, looks, supplied, now) for card in cards]


async def _held(
    session: AsyncSession,
    seller_id: int,
    marketplace_ids: list[int],
    now: datetime,
) -> dict[int, HeldShown]:
    part = window(now)
    values = {"seller": seller_id, "ids": marketplace_ids, "now": now, "part": part}
    found: dict[int, HeldShown] = {}
    for row in await session.execute(text(_HELD), values):
        until = begin_of(part + 1) if row.reason == "holdout" else None
        held = Held(row.reason, row.price, until, row.verdict, row.period, row.stays)
        found.setdefault(
            row.marketplace_id,
            struct_of(HeldShown, row, message=held.sentence),
        )
    return found


async def _looks(
    session: AsyncSession,
    products: set[int],
    now: datetime,
) -> dict[int, datetime]:
    if not products:
        return {}
    since = now - max(SUPPLY_SINCE, LISTINGS_FRESH)
    values = {"products": list(products), "since": since, "now": now}
    return {row[0]: row[1] for row in await session.execute(text(_LOOKED_AT), values)}


def _badges(
    card: Row,
    held: dict[int, HeldShown],
    looks: dict[int, datetime],
    supplied: dict[int, Supplied],
    now: datetime,
) -> CardBadges:
    bought = listed = seen = None
    at = looks.get(card.product_id)
    if at is not None and card.condition is not None:
        of = supplied.get(card.product_id, Supplied())
        cell = Cell(card.condition, card.printing, card.language)
        detected = buy_out(of.of(cell), of.sold(cell), now).detected_at
        if detected is not None and now - detected <= BUY_OUT_WINDOW:
            bought = detected
        if now - at <= LISTINGS_FRESH:
            newest = of.cells.get(cell, {}).get(at)
            listed, seen = (newest.listings if newest else 0), at
    return CardBadges(
        card.id,
        card.marketplace_id,
        bought,
        listed,
        seen,
        held.get(card.marketplace_id),
    )
