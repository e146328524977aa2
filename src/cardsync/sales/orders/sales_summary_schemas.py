"""The schemas of sales summaries for the API and the page, and their CSV. Pure."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final, Literal

import msgspec

from cardsync.platform.kit.csv_table import CsvTable, encoded
from cardsync.sales.lots.schemas import Profit
from cardsync.sales.orders.schemas import Amount

SummaryBy = Literal["day", "week", "month", "game"]


class SalesPeriod(msgspec.Struct):
    """`start` is the period's first day, or null in the total. `fees` and `net` are null if a month
    of the period has no report. `profit` covers the copies whose cost is known.
    """

    start: date | None
    orders: int
    gross: Amount
    refunded_orders: int
    refunds: Amount
    """The refunded amount, in USD"""
    fees: Amount | None
    """The marketplace's fees, in USD; null: a month has no report"""
    net: Amount | None
    """The sales less refunds and fees, in USD; null: a month has no report"""
    profit: Profit | None
    """The sales, costs and profit of the sold copies; null: no cost is known"""

    @property
    def likely_fees(self) -> str | None:
        """Return the fees, or their estimate if a month has no report yet."""
        if self.fees is not None or self.profit is None:
            return self.fees
        return self.profit.fees

    @property
    def likely_net(self) -> str | None:
        """Return the gross amount less refunds and `likely_fees`."""
        if self.likely_fees is None:
            return None
        return f"{Decimal(self.gross) - Decimal(self.refunds) - Decimal(self.likely_fees):.2f}"


class SalesOfGame(msgspec.Struct):
    """`gross` is the sum of the items; null if no price is known. The price of `estimated` pieces
    is an even share of the rest of their order's product amount; `unpriced` pieces do not count.
    `days_to_sell` is a median; null if no sold card is known.
    """

    game: str
    orders: int
    pieces: int
    gross: str | None
    days_to_sell: float | None
    estimated: int
    unpriced: int
    profit: Profit | None
    """The sales, costs and profit of the sold copies; null: no cost is known"""


class SalesSummary(msgspec.Struct):
    """`periods` is empty by game, and `games` is empty by period. `gaps` lists the months that have
    orders and no report, like 2026-07.
    """

    by: SummaryBy
    """day, week, month or game"""
    first: date
    """The first day"""
    last: date
    """The last day"""
    time_zone: str
    periods: list[SalesPeriod]
    games: list[SalesOfGame]
    total: SalesPeriod | None
    """The sums of all days; null by game"""
    fee_rate: str | None
    """The marketplace's fees divided by the sales"""
    gaps: list[str]
    """The months that have orders and no report, as YYYY-MM"""


class SoldCardShown(msgspec.Struct):
    """`gross`, `estimated` and `unpriced` have the same meaning as in SalesOfGame."""

    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition: str | None
    pieces: int
    gross: Amount | None
    estimated: int
    unpriced: int


class UnsoldCardShown(msgspec.Struct):
    """`days` is the number of days since the card was first seen."""

    card_id: int
    product_name: str
    set_name: str
    condition: str | None
    quantity: int
    value: str
    days: int
    """Days since the card was first seen"""


class SalesCards(msgspec.Struct):
    best: list[SoldCardShown]
    """The cards with the highest sales"""
    worst: list[UnsoldCardShown]
    """The cards that did not sell"""


def as_csv(summary: SalesSummary) -> bytes:
    """Return the periods or the games as a CSV."""
    table = _TABLES["games" if summary.by == "game" else "periods"]
    return table.file(summary.games or summary.periods)


_TABLES: Final = {
    name: CsvTable(
        (*kind.__struct_fields__, "costed"),
        profit=lambda row: row.profit and row.profit.profit,
        costed=lambda row: row.profit.costed if row.profit else 0,
    )
    for name, kind in (("games", SalesOfGame), ("periods", SalesPeriod))
}


def cards_as_csv(cards: SalesCards) -> bytes:
    """Return the best and the unsold cards as one CSV."""
    names = (
        "sold", "card_id", "product_name", "set_name", "condition", "copies", "amount", "days",
        "estimated", "unpriced",
    )  # fmt: skip
    best = [
        ("best", *card[:6], None, *card[6:]) for card in map(msgspec.structs.astuple, cards.best)
    ]
    worst = [("nothing", *msgspec.structs.astuple(card), None, None) for card in cards.worst]
    return encoded([names, *best, *worst])
