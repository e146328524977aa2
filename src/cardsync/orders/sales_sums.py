"""The declaration of the sums of sales and of customers: one refresh keeps both, because both go by
the days of orders that are out of date.
"""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.derived.kept_figures import Asked, Figure, Kept
from cardsync.derived.sales_by_day import DAYS_AT_ONCE, keep_days
from cardsync.orders.customer_sums import keep_customers


async def _refresh(session: AsyncSession, asked: Asked[None]) -> bool:
    days = await keep_days(session, asked.seller_id, asked.now)
    await keep_customers(session, asked.seller_id, days)
    return len(days) < DAYS_AT_ONCE


SALES_SUMS = Kept[None](
    Figure.SALES_SUMS,
    tables=(
        "sales_kept", "sales_sum", "sales_game", "sales_pace",
        "customer_order", "customer_sum", "customer_count",
    ),
    source="orders, their items, the days on which cards were first seen, and the account's zone",
    marked_by="an upload that changes orders, which names their days in `sales_stale`, and another zone",
    meanwhile="a reader counts the days in `sales_stale` by itself, of customers all orders",
    refresh=_refresh,
)  # fmt: skip
