"""Decides the shipping type of an order: pwe (plain white envelope), tracked or expedited. A pure
function and an SQL expression give the same result.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

_EXPEDITED = re.compile(r"\bexpedited\b", re.IGNORECASE | re.ASCII)
_TRACKED = re.compile(r"\btrack(?:ed|ing)\b", re.IGNORECASE | re.ASCII)


def shipping_type(
    method: str | None,
    tracking_number: str | None,
    total: Decimal | None,
    threshold: Decimal,
) -> str:
    if _EXPEDITED.search(method or ""):
        return "expedited"
    above = total is not None and total >= threshold
    return (
        "tracked"
        if (tracking_number or "").strip(" ") or _TRACKED.search(method or "") or above
        else "pwe"
    )


def shipping_type_sql(method: str, tracking_number: str, total: str, threshold: str) -> str:
    return rf"""CASE WHEN {method} ~* '\mexpedited\M' THEN 'expedited'
                     WHEN btrim({tracking_number}) <> '' OR {method} ~* '\mtrack(ed|ing)\M'
                       OR {total} >= {threshold}
                     THEN 'tracked' ELSE 'pwe' END"""


async def decide_again(session: AsyncSession, seller_id: int, threshold: Decimal) -> None:
    """Update the shipping type of all orders, because the seller's threshold has changed. Meanwhile
    `hold_still` (work/streams.py) keeps other processes from writing orders.
    """
    decided = shipping_type_sql("shipping_method", "tracking_number", "total_amt", ":threshold")
    await session.execute(
        text(
            f"UPDATE orders SET shipping_type = {decided}"
            f" WHERE seller_id = :seller AND shipping_type <> {decided}"
        ),
        {"seller": seller_id, "threshold": threshold},
    )
