"""Sales as the seller's orders tell them: a span of days goes in; sums by period or by game, days
to sell, and the cards that sold best and not at all come out.

A day is one of the account's time zone. An order without a time counts on its date. Orders that
were cancelled count nowhere. Sums read the rows that the worker keeps by day and game
(`derived/sold.py`), and count what has changed since; those of cards join the items. Both take
shorter spans than periods.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from cardsync import errors, limits
from cardsync.access.caller import Caller
from cardsync.cards.visible import VISIBLE
from cardsync.database.snapshot_reads import Reading
from cardsync.derived.sold import COUNTED, DAY, GAMES, PERIODS, PIECES, SHARED, SOLD
from cardsync.orders.sales_figures import By, Day, Figures, fee_rate, figures


class Game(NamedTuple):
    """`gross` sums the items, and is None if no price is known; refunds and fees are the orders',
    not the items'. `days_to_sell` is the median between a card's first sight and its sale. Of the
    pieces, `estimated` ones count with a share of their order's products; `unpriced` ones do not
    count.
    """

    game: str
    orders: int
    pieces: int
    gross: Decimal | None
    days_to_sell: float | None
    estimated: int
    unpriced: int


class SoldCard(NamedTuple):
    card_id: int | None
    product_name: str | None
    set_name: str | None
    condition: str | None
    pieces: int
    gross: Decimal | None
    estimated: int
    unpriced: int


class UnsoldCard(NamedTuple):
    """`value` is what lies in stock; `days` have gone by since the card was first seen."""

    card_id: int
    product_name: str
    set_name: str
    condition: str | None
    quantity: int
    value: Decimal
    days: int


class Cards(NamedTuple):
    best: list[SoldCard]
    worst: list[UnsoldCard]


_USUAL: Final = timedelta(days=29)
_SPAN: Final = f"""
    {SOLD} AND orders.order_date BETWEEN :first_read AND :last_read
    AND {DAY} BETWEEN :first AND :last
"""
_REPORTS: Final = """
    SELECT month, gross_sales, total_fees, refunded_fees FROM sales_report
     WHERE seller_id = :seller AND month BETWEEN :first_month AND :last
"""
_BEST: Final = f"""
    WITH summed AS (
        SELECT sku_id, max(product_name) AS product_name, max(set_name) AS set_name,
               max(condition) AS condition, {COUNTED}
          FROM (SELECT i.sku_id, i.product_name, i.set_name, i.condition, {PIECES}
                  FROM orders
                  JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id {SHARED}
                 WHERE {_SPAN} AND i.sku_id IS NOT NULL) sold
         GROUP BY sku_id ORDER BY gross DESC NULLS LAST, sku_id LIMIT :most
    )
    SELECT (SELECT c.id FROM card c WHERE c.seller_id = :seller AND {VISIBLE}
               AND c.marketplace_id = s.sku_id ORDER BY c.gone, c.id LIMIT 1),
           s.product_name, s.set_name, s.condition, s.pieces, s.gross, s.estimated, s.unpriced
      FROM summed s ORDER BY s.gross DESC NULLS LAST, s.sku_id
"""
_WORST: Final = f"""
    WITH sold AS (
        SELECT i.sku_id
          FROM orders JOIN order_item i ON i.seller_id = :seller AND i.order_id = orders.id
         WHERE {_SPAN})
    SELECT c.id, c.product_name, c.set_name, c.condition, c.quantity, c.price * c.quantity,
           CAST(:last AS date) - CAST(c.created_at AS date)
      FROM card c
     WHERE c.seller_id = :seller AND NOT c.gone AND c.contribution IS NULL AND c.price > 0
       AND CAST(c.created_at AS date) <= :first
       AND NOT EXISTS (SELECT FROM sold s WHERE s.sku_id = c.marketplace_id)
     ORDER BY c.price * c.quantity DESC, c.id LIMIT :most
"""


def span_of(
    caller: Caller,
    first: date | None,
    last: date | None,
    now: datetime,
) -> tuple[date, date]:
    """Return the days that were asked for: unless told, until today, and thirty days."""
    until = last or now.astimezone(ZoneInfo(caller.account.time_zone)).date()
    return first or until - _USUAL, until


def need_span(first: date, last: date, most: int = limits.SALES_SUMMARY_DAYS) -> None:
    """Raises InvalidPayload for a span that ends before it begins, or is too long."""
    if first > last:
        raise errors.InvalidPayload("from: is after to")
    if (last - first).days >= most:
        raise errors.InvalidPayload(f"from, to: at most {most} days at once: ask for fewer")


async def by_period(reading: Reading, caller: Caller, by: By, first: date, last: date) -> Figures:
    """Raises OwnerRequired, InvalidPayload."""
    caller.must_see_revenue()
    need_span(first, last)
    values = _values(caller, first, last)
    sums, reports = await reading.together([PERIODS, _REPORTS], values, last=True)
    days = [Day(*row) for row in sums]
    known = {month: fee_rate(gross, fees, back) for month, gross, fees, back in reports}
    rates = {month: rate for month, rate in known.items() if rate is not None}
    return figures(days, rates, by)


async def by_game(reading: Reading, caller: Caller, first: date, last: date) -> list[Game]:
    """Raises OwnerRequired, InvalidPayload."""
    caller.must_see_revenue()
    need_span(first, last, limits.SALES_ITEMS_DAYS)
    found = await reading.rows(GAMES, _values(caller, first, last))
    return [Game(*row) for row in found]


async def best_and_worst(reading: Reading, caller: Caller, first: date, last: date) -> Cards:
    """Return the cards with the most sales of the span, and those of the most value that were there
    at its beginning and did not sell. Raises OwnerRequired, InvalidPayload.
    """
    caller.must_see_revenue()
    need_span(first, last, limits.SALES_ITEMS_DAYS)
    values = _values(caller, first, last)
    best, worst = await reading.together([_BEST, _WORST], values, last=True)
    return Cards([SoldCard(*row) for row in best], [UnsoldCard(*row) for row in worst])


def _values(caller: Caller, first: date, last: date) -> dict[str, Any]:
    return {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "zone": caller.account.time_zone,
        "first": first,
        "last": last,
        "first_read": first - timedelta(days=1),
        "last_read": last + timedelta(days=1),
        "first_month": first.replace(day=1),
        "most": limits.SALES_CARDS,
    }
