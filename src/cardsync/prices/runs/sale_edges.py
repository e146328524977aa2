"""Finds when sales start and end, and which start or end has passed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal

from cardsync.prices.engine.rules import Sale

Trigger = Literal["sale_started", "sale_ended"]


def in_force(sales: Iterable[Sale], now: datetime) -> list[int]:
    """The ids of the sales that are on."""
    return sorted(sale.id for sale in sales if sale.active(now))


def passed(
    before: Collection[int],
    asked: Collection[int],
    sales: Iterable[Sale],
    now: datetime,
) -> Trigger | None:
    """The edge that was passed since the sales `before` were on; targets ask for prices of `asked`.

    Where both have passed, the end counts, since prices of an ended sale must be taken back. A sale
    that was switched off or deleted has ended, too.
    """
    current = set(in_force(sales, now))
    if {*before, *asked} - current:
        return "sale_ended"
    return "sale_started" if current - set(before) else None


def next_edge(sales: Sequence[Sale], now: datetime) -> datetime | None:
    """The next moment at which a sale starts or ends."""
    edges = [edge for sale in sales if sale.enabled for edge in (sale.starts_at, sale.ends_at)]
    return min((edge for edge in edges if edge > now), default=None)
