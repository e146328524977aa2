"""Computes the amount of a refund from the amounts of the order and the refund, with a pure
function and with an equal SQL expression.

Marketplaces omit the total of many refunds. The amount is computed again whenever one of its inputs
changes, because the order's own upload may arrive later.
"""

from __future__ import annotations

from decimal import Decimal

# Amounts of an order are less than this number.
_MOST = 100_000_000
_NOTHING = Decimal("0.00")


def refund_amount(
    own_total: Decimal | None,
    total: Decimal | None,
    product: Decimal | None,
    shipping: Decimal | None,
    kind: str | None,
) -> Decimal:
    """Return the refund's total; else the sum of its parts; else, for a full refund, the order's
    total; else zero.
    """
    if total is not None:
        return total
    given = [part for part in (product, shipping) if part is not None]
    parts = sum(given[1:], given[0]) if given else None
    if parts is not None and abs(parts) < _MOST:
        return parts
    whole = (kind or "").strip(" ").lower() in ("", "full")
    return own_total if whole and own_total is not None else _NOTHING


def refund_amount_sql(
    own_total: str,
    total: str,
    product: str,
    shipping: str,
    kind: str,
) -> str:
    parts = f"coalesce({product} + {shipping}, {product}, {shipping})"
    return f"""coalesce({total}, CASE WHEN abs({parts}) < {_MOST} THEN {parts} END,
                        CASE WHEN coalesce(lower(btrim({kind})), '') IN ('', 'full')
                             THEN {own_total} END, {_NOTHING})"""
