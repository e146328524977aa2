"""Declares the stored sums of sales, profit and customers. One refresh computes all of them,
because all depend on the same outdated days.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.derived.kept_figures import Figure, KeptFigure, Refresh
from cardsync.platform.derived.sales_by_day import DAYS_AT_ONCE, keep_days
from cardsync.sales.lots.profit_by_day import keep_profit
from cardsync.sales.orders.customer_sums import keep_customers


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    days = await keep_days(session, asked.seller_id, asked.now)
    await keep_profit(session, asked.seller_id, days)
    last = len(days) < DAYS_AT_ONCE
    await keep_customers(session, asked.seller_id, days, last=last)
    return last


SALES_SUMS = KeptFigure[None](
    Figure.SALES_SUMS,
    tables=(
        "sales_kept",
        "sales_sum",
        "sales_game",
        "sales_pace",
        "customer_order",
        "customer_sum",
        "customer_count",
        "profit_sum",
    ),
    source="orders, their items and what those cost, sales reports, the days on which cards were first"
    " seen, and the account's zone, fees and postage",
    marked_by="an upload that changes orders, lots, payments and sales reports, which name days in"
    " `sales_stale`,"
    " and another zone, fee level or postage",
    meanwhile="a reader counts the days in `sales_stale` by itself, of customers all orders; their"
    " profit is that of the last refresh",
    refresh=_refresh,
    is_sent_to_nodes=True,
)
