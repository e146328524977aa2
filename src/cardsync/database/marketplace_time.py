"""The time of an order in the marketplace's zone: columns go in; expressions of SQL come out."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

MARKETPLACE_ZONE = "America/New_York"


def midnight(day: str) -> str:
    """Return the moment when a day begins in the marketplace's zone."""
    return f"timezone('{MARKETPLACE_ZONE}', {day}::timestamp)"


# An order was placed at the moment that an upload gave, else at midnight of its date.
PLACED_AT = f"coalesce(orders.placed_at_given, {midnight('orders.order_date')})"


def marketplace_day(now: datetime) -> date:
    """Return the marketplace's day at this moment."""
    return now.astimezone(ZoneInfo(MARKETPLACE_ZONE)).date()
