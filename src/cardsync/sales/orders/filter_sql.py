"""Converts a filter of orders to SQL conditions and their bound values. Pure."""

from __future__ import annotations

from cardsync.platform import errors
from cardsync.sales.orders.order_filter import OrderFilter, blocks
from cardsync.sales.orders.pullable import (
    IN_OPEN_SESSION,
    INCOMPLETE,
    MARKED_SHIPPED_PENDING,
    PULLABLE,
    READY,
    STATES,
)

Conditions = tuple[list[str], dict[str, object]]

# Separates the order number and the buyer's name in `search_text`. A searched text that contains
# this character finds nothing, because its match would extend over number and name.
SEPARATOR = "\x01"

_NUMBER = "split_part(orders.search_text, chr(1), 1)"
_IN_SESSION = """EXISTS (SELECT FROM pull_session_order p
 WHERE p.seller_id = :seller AND p.seller_id = orders.seller_id
   AND p.order_id = orders.id AND p.session_id = :pull_session)"""
_PULLS = {
    "active": IN_OPEN_SESSION,
    "none": PULLABLE,
    "dismissed": "orders.pull_dismissed_at IS NOT NULL",
    "pulled": READY,
    "missing": INCOMPLETE,
}


# Returns a row if the pull session of the filter belongs to the seller.
KNOWN_SESSION = "SELECT 1 FROM pull_session WHERE seller_id = :seller AND id = :pull_session"


def unknown_session(session_id: int) -> errors.InvalidPayload:
    return errors.InvalidPayload(f"pull_session: there is no session {session_id}")


def all_of(*conditions: str) -> str:
    return " AND ".join(["orders.seller_id = :seller", *conditions])


def tallied_conditions(wanted: OrderFilter) -> Conditions:
    """Return the conditions that `order_tally` can count, except the status."""
    conditions: list[str] = []
    values: dict[str, object] = {}
    for name, sign in (("date_from", ">="), ("date_to", "<=")):
        if (day := getattr(wanted, name)) is not None:
            conditions.append(f"orders.order_date {sign} :{name}")
            values[name] = day
    if wanted.refunded:
        conditions.append("orders.refund_amt IS NOT NULL")
    if wanted.shipping_type:
        conditions.append("orders.shipping_type = :shipping_type")
        values["shipping_type"] = wanted.shipping_type
    return conditions, values


def other_conditions(wanted: OrderFilter) -> Conditions:
    conditions: list[str] = []
    values: dict[str, object] = {}
    if SEPARATOR in wanted.search:
        conditions.append("false")
    elif wanted.search:
        texts = "orders.search_text" if wanted.by_buyer else _NUMBER
        conditions.append(f"{texts} LIKE '%' || public.folded(:search) || '%'")
        values["search"] = _escaped(wanted.search)
    if wanted.product_line:
        conditions.append(":product_line = ANY (orders.product_lines)")
        values["product_line"] = wanted.product_line
    if wanted.unfeedbacked:
        conditions.append("orders.feedback_rating IS NULL")
    if wanted.ship_pending:
        conditions.append(MARKED_SHIPPED_PENDING)
    if isinstance(wanted.pull_session, int):
        conditions.append(_IN_SESSION)
        values["pull_session"] = wanted.pull_session
    elif wanted.pull_session:
        conditions.append(_PULLS[wanted.pull_session])
    if wanted.state:
        conditions.append(STATES[wanted.state])
    return conditions, values


def _escaped(word: str) -> str:
    for sign in ("\\", "%", "_"):
        word = word.replace(sign, f"\\{sign}")
    return word


def of_status(wanted: OrderFilter) -> Conditions:
    match wanted.statuses:
        case []:
            return [], {}
        case [status]:
            return ["orders.status_group = :status"], {"status": status}
    return ["orders.status_group = ANY (:statuses)"], {"statuses": list(wanted.statuses)}


def all_conditions(wanted: OrderFilter) -> Conditions:
    """Return all conditions of the filter, for statements that read every matching order."""
    parts = (of_status(wanted), tallied_conditions(wanted), other_conditions(wanted))
    return [condition for conditions, _ in parts for condition in conditions], {
        name: value for _, values in parts for name, value in values.items()
    }


def tally_conditions(wanted: OrderFilter) -> tuple[str, str, dict[str, object]]:
    """Return SQL that counts the orders of `tallied_conditions` in `order_tally`: the expression
    for the orders of a row, the conditions on rows, and the bound values.
    """
    orders = "orders"
    conditions = ["period = 'ever'"]
    values: dict[str, object] = {}
    if wanted.date_from is not None or wanted.date_to is not None:
        window = blocks(wanted.date_from, wanted.date_to)
        conditions = ["period = 'days'", "block BETWEEN :first_block AND :last_block"]
        values = {"first_block": window.first, "last_block": window.last}
        # A block at an edge of the dates counts only with its days inside the dates. The numbers
        # are computed here, so the SQL contains no user input.
        edges = [
            f"WHEN block = {block} THEN (SELECT sum(n) FROM unnest(days[{begin}:{end}]) AS n)"
            for block, (begin, end) in window.edges.items()
        ]
        orders = f"CASE {' '.join(edges)} ELSE orders END" if edges else orders
    if wanted.refunded:
        conditions.append("refunded")
    if wanted.shipping_type:
        conditions.append("shipping_type = :shipping_type")
        values["shipping_type"] = wanted.shipping_type
    return orders, " AND ".join(conditions), values
