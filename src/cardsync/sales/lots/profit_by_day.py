"""Stores sums of profit for each day of orders, game and pricing rule, in the same transaction as
the sums of sales (`platform/derived/sales_by_day.py`). Both share the marks of outdated days, which
a reader computes itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import run
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.derived.sales_by_day import SPLIT, UNDATED
from cardsync.sales.lots.line_profit import NAMED, SETTINGS, SUMMED, lines_of, priced

# The orders of the days, and those without a date if `:undated` is true.
OF_DAYS: Final = """(orders.order_date = ANY (CAST(:days AS date[]))
                    OR CAST(:undated AS boolean) AND orders.order_date IS NULL)"""
# The lines of the days' orders, whose sums by day and by order are stored. The table exists until
# the end of the transaction, so that the lines are read and computed only once.
_LINES: Final = f"""
    CREATE TEMP TABLE refreshed_line ON COMMIT DROP AS
    SELECT order_id, ordered, day, game, rule_id, {NAMED}
      FROM ({priced(lines_of(f"AND {OF_DAYS}"))}) line
"""
_GONE: Final = """
    DELETE FROM profit_sum
     WHERE seller_id = :seller AND ordered = ANY (CAST(:days AS date[]))
"""
_KEEP: Final = f"""
    INSERT INTO profit_sum (seller_id, ordered, day, game, rule_id, {NAMED})
    SELECT CAST(:seller AS bigint), ordered, day, game, rule_id, {SUMMED}
      FROM refreshed_line WHERE ordered IS NOT NULL GROUP BY 2, 3, 4, 5
"""
_ALL: Final = """
    INSERT INTO sales_stale (seller_id, ordered)
    SELECT CAST(:seller AS bigint), k.ordered
      FROM (SELECT ordered FROM sales_kept WHERE seller_id = :seller) k
"""
# `{by}` is `day`, `game` or `rule_id`.
KEPT: Final = f"""
    WITH {SPLIT}
    SELECT p.{{by}}, {SUMMED}
      FROM kept JOIN profit_sum p ON p.seller_id = :seller AND p.ordered = kept.ordered
     WHERE p.day BETWEEN :first AND :last GROUP BY 1
"""
# The outdated days, which a reader computes itself; usually few or none.
LIVE_DAYS: Final = f"""
    WITH {SPLIT}
    SELECT days.ordered FROM days
     WHERE EXISTS (SELECT FROM orders o
                    WHERE o.seller_id = :seller AND o.order_date = days.ordered)
"""
_LIVE: Final = lines_of("AND orders.order_date = ANY (CAST(:live AS date[]))")


def live(by: str) -> str:
    """Return the query that computes the sums of outdated days."""
    lines = priced(_LIVE) if by == "rule_id" else _LIVE
    return f"""
        SELECT {by}, {SUMMED} FROM ({lines}) line
         WHERE day BETWEEN :first AND :last GROUP BY 1
    """


async def keep_profit(session: AsyncSession, seller_id: int, days: Sequence[date]) -> None:
    """Store the profit of `days`, in the transaction that stores their sales. Leave the lines of
    the days' orders in the temp table `refreshed_line`.
    """
    if not days:
        return
    values = await settings_of_shop(session, seller_id) | of_days(days)
    for statement in (_LINES, "ANALYZE refreshed_line", _GONE, _KEEP):
        await run(session, statement, values)


def of_days(days: Sequence[date]) -> dict[str, object]:
    """Return the parameters of the condition `OF_DAYS`."""
    return {"days": list(days), "undated": UNDATED in days}


async def settings_of_shop(session: AsyncSession, seller_id: int) -> dict[str, object]:
    """Return the parameters of a query of lines: the seller, its time zone, fee level and
    postage.
    """
    account = (await session.execute(text(SETTINGS), {"seller": seller_id})).one()
    return {"seller": seller_id, **account._mapping}


async def mark_days(session: AsyncSession, seller_id: int) -> None:
    """Mark all days as outdated, because the postage of orders or the seller's fees changed."""
    await run(session, _ALL, {"seller": seller_id})
    await mark(session, seller_id, Figure.SALES_SUMS)
