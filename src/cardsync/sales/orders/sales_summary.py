"""Sums a seller's sales over a range of days by period or by game, with days to sell, and finds the
cards that sold best and the cards that did not sell.

Days are in the account's time zone. An order without a time counts on its date. Cancelled orders do
not count. Sums come from the stored rows by day and game (`platform/derived/sales_by_day.py`);
outdated days are computed while reading. Sums of cards are always computed from the items. Sums by
game or card allow a shorter range of days than sums by period.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final

from cardsync.access.caller import Caller
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.sales_by_day import COUNTED, DAY, GAMES, PERIODS, PIECES, SOLD
from cardsync.platform.kit.struct_rows import struct_of, struct_of_values
from cardsync.sales.limits import SALES_CARDS, SALES_ITEMS_DAYS, SALES_SUMMARY_DAYS
from cardsync.sales.lots import profit
from cardsync.sales.lots.line_profit import COLUMNS, RATE
from cardsync.sales.lots.schemas import profit_of
from cardsync.sales.orders.sales_figures import figures
from cardsync.sales.orders.sales_summary_schemas import (
    SalesCards,
    SalesOfGame,
    SalesPeriod,
    SalesSummary,
    SoldCardShown,
    SummaryBy,
    UnsoldCardShown,
)
from cardsync.sales.orders.schemas import money
from cardsync.sales.reports import span_values, summed, total
from cardsync.stock.cards.visible import VISIBLE

_SPAN: Final = f"""
    {SOLD} AND orders.order_date BETWEEN :first_read AND :last_read
    AND {DAY} BETWEEN :first AND :last
"""
_REPORTED: Final = f"""
    SELECT r.month FROM sales_report r
     WHERE r.seller_id = :seller AND r.month BETWEEN :first_month AND :last
       AND {RATE} IS NOT NULL
"""
_BEST: Final = queries_of(__package__)["best"].format(
    counted=COUNTED, pieces=PIECES, span=_SPAN, visible=VISIBLE
)
_WORST: Final = queries_of(__package__)["worst"].format(span=_SPAN)


async def summary(
    reading: Reading,
    caller: Caller,
    first: date,
    last: date,
    by: SummaryBy = "day",
) -> SalesSummary:
    """Return the sums by period or by game, and their total. Raises OwnerRequired, InvalidPayload."""
    most = SALES_ITEMS_DAYS if by == "game" else SALES_SUMMARY_DAYS
    values = _values(caller, first, last, most) | await profit.settings(reading, caller)
    games = await _games(reading, values) if by == "game" else []
    sums, reports = await reading.together([PERIODS, _REPORTED], values)
    earned = await profit.sums_by(reading, "day", values)
    earnings = {start: profit_of(*one) for start, one in summed(earned, by).items()}
    fees = {one[0]: one[1 + COLUMNS.index("fees")] for one in earned}
    days = [(*row, fees.get(row[0], Decimal(0))) for row in sums]
    found = figures(days, {month for (month,) in reports}, by)
    return SalesSummary(
        by=by,
        first=first,
        last=last,
        time_zone=caller.account.time_zone,
        periods=[]
        if by == "game"
        else [struct_of(SalesPeriod, one, profit=earnings.get(one.start)) for one in found.periods],
        games=games,
        total=struct_of(
            SalesPeriod,
            found.total,
            profit=profit_of(*total([one[1:] for one in earned])) if earned else None,
        )
        if found.total
        else None,
        fee_rate=None if found.fee_rate is None else str(found.fee_rate),
        gaps=[f"{month:%Y-%m}" for month in found.gaps],
    )


async def _games(reading: Reading, values: Mapping[str, object]) -> list[SalesOfGame]:
    rows = await reading.rows(GAMES, values)
    earned = await profit.sums_by(reading, "game", values)
    of = {game: profit_of(*sums) for game, *sums in earned}
    return [
        SalesOfGame(game, orders, pieces, money(gross), days, shared, unpriced, of.get(game))
        for game, orders, pieces, gross, days, shared, unpriced in rows
    ]


async def best_and_worst(
    reading: Reading,
    caller: Caller,
    first: date,
    last: date,
) -> SalesCards:
    """Return the cards with the highest sales from `first` to `last`, and the cards with the
    highest value that were in stock on `first` and did not sell. Raises OwnerRequired,
    InvalidPayload.
    """
    values = _values(caller, first, last, SALES_ITEMS_DAYS)
    best, worst = await reading.together([_BEST, _WORST], values, last=True)
    return SalesCards(
        [struct_of_values(SoldCardShown, row) for row in best], [_unsold(*row) for row in worst]
    )


def _unsold(
    card_id: int,
    name: str,
    set_name: str,
    condition: str | None,
    quantity: int,
    value: Decimal,
    days: int,
) -> UnsoldCardShown:
    return UnsoldCardShown(card_id, name, set_name, condition, quantity, money(value) or "", days)


def _values(caller: Caller, first: date, last: date, most: int) -> dict[str, object]:
    return span_values(caller, first, last, most) | {
        "member": caller.member_id,
        "first_month": first.replace(day=1),
        "most": SALES_CARDS,
    }
