"""The time of an order in the marketplace's zone, as expressions of SQL."""

from __future__ import annotations

MARKETPLACE_ZONE = "America/New_York"


def midnight(day: str) -> str:
    """When a day begins where the marketplace is."""
    return f"timezone('{MARKETPLACE_ZONE}', {day}::timestamp)"


# When an order was placed: what an upload said, else at midnight of its date.
PLACED_AT = f"coalesce(orders.placed_at_given, {midnight('orders.order_date')})"
