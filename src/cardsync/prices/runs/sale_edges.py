"""Finds the edges of sales, which are their starts and ends, and the edges that have
passed. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal

from cardsync.prices.engine.rules import Sale

Trigger = Literal["sale_started", "sale_ended"]


def in_force(sales: Iterable[Sale], now: datetime) -> list[int]:
    """Return the ids of the active sales."""
    return sorted(sale.id for sale in sales if sale.active(now))


def passed(
    before: Collection[int],
    asked: Collection[int],
    sales: Iterable[Sale],
    now: datetime,
) -> Trigger | None:
    """Return the kind of edge that has passed since the sales `before` were active, or None.
    `asked` are ended sales whose prices are still targets.

    If both kinds have passed, return the end, because prices of an ended sale must be replaced. A
    sale that was disabled or deleted has ended, too.
    """
    current = set(in_force(sales, now))
    if {*before, *asked} - current:
        return "sale_ended"
    return "sale_started" if current - set(before) else None


def next_edge(sales: Sequence[Sale], now: datetime) -> datetime | None:
    """Return the next time at which a sale starts or ends."""
    edges = [edge for sale in sales if sale.enabled for edge in (sale.starts_at, sale.ends_at)]
    return min((edge for edge in edges if edge > now), default=None)
