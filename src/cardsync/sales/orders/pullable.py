"""Rules that decide which orders are to be shipped, which of these can be pulled or are pulled, and
whether a seller marked an order as shipped before the synced status says so.

Each rule is a pure function and an SQL condition on the table `orders`; a test compares both.
Statements find orders to ship by their statuses, because a seller has few different statuses.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

# Statuses are the marketplace's words, such as `Completed - Paid`, `Ready to Ship`, `Shipped - In
# Transit`, `Canceled`.
_WAITS = "paid|ready to ship|processing"
_WAITS_NOT = "unpaid|not paid"
_SHIPPED = "shipped|in transit|delivered"
_BEYOND = f"{_SHIPPED}|cancel|refund"

_FLAGS = re.ASCII | re.IGNORECASE


def to_ship(status: str | None, refund_amt: Decimal | None) -> bool:
    """Return whether the synced status is paid, ready to ship or processing, and the order is not
    shipped, cancelled or refunded.
    """
    if status is None or refund_amt is not None:
        return False
    return bool(re.search(_WAITS, status, _FLAGS)) and not re.search(
        f"{_WAITS_NOT}|{_BEYOND}",
        status,
        _FLAGS,
    )


# Patterns for the statuses of orders on the way.
_ON_THE_WAY = "shipped|in transit"
_NOT_ON_THE_WAY = "unshipped|not shipped|delivered|cancel|refund"


def on_the_way(
    status: str | None, refund_amt: Decimal | None, shipped_marked_at: datetime | None
) -> bool:
    """Return whether the order is shipped and not delivered: by its synced status, or by the
    seller's mark on an order to ship. A refunded order is never on the way.
    """
    if refund_amt is not None:
        return False
    shipped = re.search(_ON_THE_WAY, status or "", _FLAGS)
    not_there = re.search(_NOT_ON_THE_WAY, status or "", _FLAGS)
    marked = shipped_marked_at is not None and to_ship(status, refund_amt)
    return bool(shipped and not not_there) or marked


def delivered(status: str | None, refund_amt: Decimal | None) -> bool:
    return refund_amt is None and bool(
        re.search("delivered", status or "", _FLAGS)
        and not re.search("undelivered|not delivered|cancel|refund", status or "", _FLAGS)
    )


_STATUS_WAITS = (
    f"orders.status_group ~* '{_WAITS}' AND orders.status_group !~* '{_WAITS_NOT}|{_BEYOND}'"
)
TO_SHIP = f"(orders.refund_amt IS NULL AND {_STATUS_WAITS})"


# The seller's statuses that mean an order is to be shipped. `PULLABLE` has them as the parameter
# `:to_ship_statuses`, so that the planner can estimate the number of orders with these statuses.
TO_SHIP_STATUSES = f"""
    SELECT DISTINCT orders.status_group FROM order_tally AS orders
     WHERE orders.seller_id = :seller AND orders.period = 'ever'
       AND orders.orders > 0 AND {_STATUS_WAITS}
"""


def can_be_pulled(
    *,
    to_ship: bool,
    shipped_marked_at: datetime | None,
    pull_dismissed_at: datetime | None,
    in_open_session: bool,
    pulled: bool = False,
    missing: bool = False,
) -> bool:
    set_aside = shipped_marked_at is not None or pull_dismissed_at is not None
    return to_ship and not (set_aside or in_open_session or pulled or missing)


IN_OPEN_SESSION = """EXISTS (
    SELECT FROM pull_session s
      JOIN pull_session_order p ON p.seller_id = s.seller_id AND p.session_id = s.id
     WHERE s.seller_id = :seller AND s.state = 'open'
       AND p.seller_id = :seller AND p.order_id = orders.id)"""

# The order was marked as pulled in a session that was not cancelled.
PULLED = """EXISTS (
    SELECT FROM pull_session_order p
      JOIN pull_session s ON s.seller_id = p.seller_id AND s.id = p.session_id
     WHERE p.seller_id = :seller AND p.order_id = orders.id AND p.pulled_at IS NOT NULL
       AND s.seller_id = :seller AND s.state <> 'cancelled')"""
# A card of the order was not found, and the seller has not decided about it.
UNSETTLED = "i.missing_at IS NOT NULL AND i.missing_outcome IS NULL"
MISSING = f"""EXISTS (
    SELECT FROM pull_session_item i
      JOIN pull_session s ON s.seller_id = i.seller_id AND s.id = i.session_id
     WHERE i.seller_id = :seller AND i.order_id = orders.id AND {UNSETTLED}
       AND s.seller_id = :seller AND s.state <> 'cancelled')"""

OF_TO_SHIP_STATUS = "orders.status_group = ANY (CAST(:to_ship_statuses AS text[]))"
UNSHIPPED = f"""{OF_TO_SHIP_STATUS}
 AND orders.refund_amt IS NULL AND orders.shipped_marked_at IS NULL"""
PULLABLE = f"""{UNSHIPPED} AND orders.pull_dismissed_at IS NULL
 AND NOT {IN_OPEN_SESSION} AND NOT {PULLED} AND NOT {MISSING}"""
MARKED_SHIPPED_PENDING = (
    f"(orders.shipped_marked_at IS NOT NULL AND coalesce(orders.status, '') !~* '{_BEYOND}')"
)
STATES = {
    "to_ship": UNSHIPPED,
    "on_the_way": f"""(orders.refund_amt IS NULL AND (
        orders.status_group ~* '{_ON_THE_WAY}' AND orders.status_group !~* '{_NOT_ON_THE_WAY}'
        OR {OF_TO_SHIP_STATUS} AND orders.shipped_marked_at IS NOT NULL))""",
    "delivered": """(orders.refund_amt IS NULL AND orders.status_group ~* 'delivered'
        AND orders.status_group !~* 'undelivered|not delivered|cancel|refund')""",
    "refunded": "orders.refund_amt IS NOT NULL",
}
# Orders to ship that are pulled (`READY`), and orders to ship with an undecided missing card.
READY = f"{UNSHIPPED} AND {PULLED}"
INCOMPLETE = f"{UNSHIPPED} AND {MISSING}"


def is_beyond(status: str | None) -> bool:
    """Return whether the synced status is shipped, delivered, cancelled or refunded."""
    return bool(re.search(_BEYOND, status or "", _FLAGS))


def marked_shipped_pending(status: str | None, shipped_marked_at: datetime | None) -> bool:
    """Return whether the seller marked the order as shipped, and the synced status does not yet
    confirm it.
    """
    return shipped_marked_at is not None and not is_beyond(status)


def needs_review(*, status: str | None, to_ship: bool, shipped_marked_at: datetime | None) -> bool:
    """Return whether an order in an open session needs a review, because an upload changed it so
    that it is no longer to be shipped. An order that the seller marked as shipped needs no review
    when its status confirms that.
    """
    return not to_ship and (
        shipped_marked_at is None or not re.search(_SHIPPED, status or "", _FLAGS)
    )


SHIPPED_AS_MARKED = f"""(orders.shipped_marked_at IS NOT NULL
 AND coalesce(orders.status, '') ~* '{_SHIPPED}')"""
NEEDS_REVIEW = f"(NOT {TO_SHIP} AND NOT {SHIPPED_AS_MARKED})"
