"""Finds the badges of some cards: a buy-out of the last four hours, few fresh listings in the
card's own condition, and why a price is held.

A badge needs fresh evidence. Unknown evidence, stale evidence and evidence from the future give no
badge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.catalog.market.stored_evidence import SUPPLY, Supplied, supply_of
from cardsync.catalog.market.verdicts import (
    BUY_OUT_WINDOW,
    LISTINGS_FRESH,
    SUPPLY_SINCE,
    Cell,
    buy_out,
)
from cardsync.platform import errors, limits
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.kit.struct_rows import struct_of
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
_HELD: Final = Planned(
    "held_badges",
    queries_of(__package__)["held_badges"],
    {"seller": "bigint", "ids": "bigint[]", "now": "timestamptz", "part": "bigint"},
)


class BadgedCard(NamedTuple):
    """A card in stock. `product_id` is the product whose market evidence counts."""

    id: int
    marketplace_id: int
    condition: str | None
    printing: str
    language: str
    product_id: int | None
    pinned: bool


class _HeldRow(NamedTuple):
    marketplace_id: int
    reason: str
    price: int | None
    verdict: str
    period: str | None
    stays: bool


async def badges_of(
    session: AsyncSession | Reading,
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
    [cards] = await in_one_message(session, [_CARDS], asked)
    return await badges_of_cards(session, caller, list(map(BadgedCard._make, cards)), now)


async def badges_of_cards(
    session: AsyncSession | Reading, caller: Caller, cards: Sequence[BadgedCard], now: datetime
) -> list[CardBadges]:
    """Return the badges of the caller's cards in their order, read in one message."""
    if not cards:
        return []
    part = window(now)
    values = {
        "seller": caller.seller_id,
        # No limit holds a pinned price, whatever the last run recorded.
        "ids": [card.marketplace_id for card in cards if not card.pinned],
        "products": list({card.product_id for card in cards if card.product_id is not None}),
        "since": now - max(SUPPLY_SINCE, LISTINGS_FRESH),
        "now": now,
        "part": part,
    }
    rows, looked, *supply = await in_one_message(session, [_HELD, _LOOKED_AT, *SUPPLY], values)
    held = _held(map(_HeldRow._make, rows), begin_of(part + 1))
    looks, supplied = dict(looked), supply_of(*supply)
    return [_badges(card, held, looks, supplied, now) for card in cards]


def _held(rows: Iterable[_HeldRow], next_part: datetime) -> dict[int, HeldShown]:
    found: dict[int, HeldShown] = {}
    for row in rows:
        until = next_part if row.reason == "holdout" else None
        held = Held(row.reason, row.price, until, row.verdict, row.period, row.stays)
        found.setdefault(
            row.marketplace_id,
            struct_of(HeldShown, row, message=held.sentence),
        )
    return found


def _badges(
    card: BadgedCard,
    held: dict[int, HeldShown],
    looks: dict[int, datetime],
    supplied: dict[int, Supplied],
    now: datetime,
) -> CardBadges:
    bought = listed = seen = None
    product_id = card.product_id or 0
    at = looks.get(product_id)
    if at is not None and card.condition is not None:
        of = supplied.get(product_id, Supplied())
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
