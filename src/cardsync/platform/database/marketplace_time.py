"""Computes the time of an order in the marketplace's zone as SQL expressions."""

from __future__ import annotations

MARKETPLACE_ZONE = "America/New_York"


def midnight(day: str) -> str:
    """Return the moment when a day begins in the marketplace's zone."""
    return f"timezone('{MARKETPLACE_ZONE}', {day}::timestamp)"


# An order's moment is the uploaded moment, or else midnight of its date.
PLACED_AT = f"coalesce(orders.placed_at_given, {midnight('orders.order_date')})"
