"""The columns of the table of cards, and the details of shown cards that are in other tables:
badges, trends, costs, last sales.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.prices.recommendations.badges import BadgedCard, badges_of_cards
from cardsync.prices.recommendations.schemas import CardBadges
from cardsync.stock.cards.columns_beside import COLUMNS as BESIDE
from cardsync.stock.cards.columns_beside import CostAndSale, beside_of
from cardsync.stock.cards.market_trend import Trend, market_trends
from cardsync.stock.cards.schemas import CardRow

NAMES = {
    "set": "Set", "number": "Number", "rarity": "Rarity", "condition": "Condition",
    "printing": "Printing", "language": "Language", "quantity": "Stock", "price": "Price",
    "target": "Target", "change": "Change", "trend": "30 days", "market": "Market", "low": "Low",
    "low_with_shipping": "Low with shipping", "direct_low": "Direct low", "location": "Place",
    "lists": "Lists", "game": "Game", "marketplace_id": "SKU", "updated": "Updated",
    "cost": "Cost", "margin": "Margin", "rule": "Rule", "last_sold": "Last sold",
}  # fmt: skip
# The style sheet hides columns when the table is narrow: first all columns that are not named here,
# then `w2`, then `w1`. Columns with an empty weight always stay.
WEIGHTS = {
    "market": "w1", "trend": "w1", "condition": "w2", "target": "w2", "quantity": "", "price": "",
    "change": "",
}  # fmt: skip
# Columns with amounts that only callers who may see revenue get.
OWNERS_COLUMNS = frozenset({"cost", "margin"})


def shown_to(caller: Caller, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that the caller may see. Pure."""
    if caller.sees_revenue:
        return columns
    return tuple(name for name in columns if name not in OWNERS_COLUMNS)


class Choice(NamedTuple):
    """A column, and the lists of columns after it was moved earlier, moved later or hidden; a list
    is empty if that is impossible.
    """

    name: str
    earlier: str
    later: str
    away: str


def choices_of(columns: tuple[str, ...]) -> list[Choice]:
    """Return the possible changes of each column. Pure."""
    last = len(columns) - 1
    return [
        Choice(
            name,
            _moved(columns, place, place - 1) if place else "",
            _moved(columns, place, place + 1) if place < last else "",
            ",".join(one for one in columns if one != name),
        )
        for place, name in enumerate(columns)
    ]


def _moved(columns: tuple[str, ...], place: int, to: int) -> str:
    moved = list(columns)
    moved.insert(to, moved.pop(place))
    return ",".join(moved)


class Details(NamedTuple):
    """The values of the table's columns that are in other tables, by card id."""

    marks: dict[int, CardBadges]
    trends: dict[int, Trend]
    beside: dict[int, CostAndSale]


async def details_of(
    reads: Reading, caller: Caller, columns: Sequence[str], rows: Sequence[CardRow]
) -> Details:
    """Read the details of the shown cards in one message."""
    ids, now = [row.id for row in rows], clock.now()
    return Details(
        *await at_once(
            marks_of(reads, caller, rows),
            market_trends(reads, caller, ids if "trend" in columns else [], now),
            beside_of(reads, caller, ids if BESIDE.intersection(columns) else []),
        )
    )


async def marks_of(
    reads: Reading,
    caller: Caller,
    rows: Sequence[CardRow],
) -> dict[int, CardBadges]:
    """Return the badges of the shown cards, by card id."""
    cards = [
        BadgedCard(
            row.id,
            row.marketplace_id,
            row.condition,
            row.printing,
            row.language,
            row.evidence_product_id,
            row.pinned_price is not None,
        )
        for row in rows
        if not row.gone and row.contribution is None
    ]
    badges = await badges_of_cards(reads, caller, cards, clock.now())
    return {one.card_id: one for one in badges}
