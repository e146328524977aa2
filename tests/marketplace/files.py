"""Writes and reads the CSV files of the simulated marketplace, in the forms of
marketplace-files.md. Pure.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from .goods import OPEN, Card, Order

PRICING = (
    "TCGplayer Id", "Product Line", "Set Name", "Product Name", "Title", "Number", "Rarity",
    "Condition", "TCG Market Price", "TCG Direct Low", "TCG Low Price With Shipping",
    "TCG Low Price", "Total Quantity", "Add to Quantity", "TCG Marketplace Price", "Photo URL",
)  # fmt: skip
ORDERS = (
    "Order #", "Buyer Name", "Order Date", "Status", "Shipping Type", "Product Amt",
    "Shipping Amt", "Total Amt", "Buyer Paid", "Carrier Information",
)  # fmt: skip
PULL_SHEET = (
    "Product Line", "Product Name", "Condition", "Number", "Set", "Rarity", "Quantity",
    "Main Photo URL", "Set Release Date", "SkuId", "Order Quantity",
)  # fmt: skip
SHIPPING = (
    "Order #", "FirstName", "LastName", "Address1", "Address2", "City", "State", "PostalCode",
    "Country", "Order Date", "Product Weight", "Shipping Method", "Item Count",
    "Value Of Products", "Shipping Fee Paid", "Tracking #", "Carrier",
)  # fmt: skip
REFUNDS = (
    "order_number", "buyer_name", "product_amt", "shipping_amt", "total_amt", "order_date",
    "status", "refund_type", "refund_origin", "refund_reason",
)  # fmt: skip
FEEDBACK = ("order_number", "rating", "comment")
SALES = (
    "date_from", "date_to", "gross_sales", "product_amount", "shipping_amount", "order_count",
    "total_fees", "total_refund_amount", "refunded_orders", "refunded_fees", "adjustments",
    "net_sales_minus_fees", "net_sales",
)  # fmt: skip
REPORT = ("Line", "TCGplayer Id", "Reason")
ACCOUNT = ("store_name", "seller_level", "rating_percent", "product_lines")
_NEEDED = ("TCGplayer Id", "Add to Quantity", "TCG Marketplace Price")


class Refused(Exception):
    """The whole file is refused; the message is the seller's."""


@dataclass(frozen=True)
class Line:
    """A line of an import that may be published: `price` in cents, None where it says none."""

    line: int
    id: int
    add: int
    price: int | None


@dataclass(frozen=True)
class Rejected:
    line: int
    id: str
    reason: str


def money(cents: int, decimals: int = 2) -> str:
    return f"{Decimal(cents) / 100:.{decimals}f}"


def pricing(cards: Iterable[Card]) -> bytes:
    """The header bare, every value quoted, CRLF."""
    rows = (
        (
            card.id, card.line, card.set_name, card.name, "", card.number, card.rarity,
            card.condition, money(card.market), "", money(card.market + 131, 4),
            money(card.market, 4), card.quantity, 0,
            money(card.price, 4) if card.price else "", "",
        )
        for card in cards
    )  # fmt: skip
    return _written(PRICING, rows, "\r\n")


def orders(found: Iterable[Order]) -> bytes:
    rows = (
        (
            one.number, one.buyer, f"{one.day:%A, %d %B %Y}", one.status,
            "Expedited" if one.expedited else "Standard", money(one.product),
            money(one.shipping), money(one.total), "True", "",
        )
        for one in found
    )  # fmt: skip
    return _written(ORDERS, rows)


def shipping(found: Iterable[Order]) -> bytes:
    rows = (
        (
            one.number, one.first_name, one.last_name, one.street, "", one.city, one.state,
            one.postal_code, "US", f"{one.day.month}/{one.day.day}/{one.day.year}", "0.00",
            "Expedited" if one.expedited else "Standard (7-10 days)",
            sum(quantity for _, quantity in one.items), money(one.product), money(one.shipping),
            one.tracking, "USPS" if one.tracking else "",
        )
        for one in found
    )  # fmt: skip
    return _written(SHIPPING, rows)


def pull_sheet(found: Iterable[Order], cards: Mapping[int, Card]) -> bytes:
    """The cards of the open orders; the last line lists these."""
    is_open = [one for one in found if one.status in OPEN]
    wanted: dict[int, list[tuple[str, int]]] = {}
    for one in is_open:
        for id_, quantity in one.items:
            wanted.setdefault(id_, []).append((one.number, quantity))
    rows = [
        (
            card.line, card.name, card.condition, card.number, card.set_name, card.rarity,
            sum(quantity for _, quantity in pairs), "", "01/01/2025 00:00:00", id_,
            " | ".join(f"{number}:{quantity}" for number, quantity in pairs),
        )
        for id_, pairs in wanted.items()
        for card in (cards[id_],)
    ]  # fmt: skip
    last = f"Orders Contained in Pull Sheet:,{'|'.join(one.number for one in is_open)}\n"
    return _written(PULL_SHEET, rows) + last.encode()


def refunds(found: Iterable[Order]) -> bytes:
    rows = (
        (
            one.number, one.buyer, money(one.refund.cents), "0.00", money(one.refund.cents),
            one.day.isoformat(), "Refunded", one.refund.kind, one.refund.origin,
            one.refund.reason,
        )
        for one in found
        if one.refund
    )  # fmt: skip
    return _written(REFUNDS, rows)


def feedback(found: Iterable[Order]) -> bytes:
    rows = ((one.number, one.rating, one.comment) for one in found if one.rating)
    return _written(FEEDBACK, rows)


def sales(first: date, last: date, found: Iterable[Order]) -> tuple[dict[str, Any], bytes]:
    """The figures of a month, and its file of one row."""
    paid = list(found)
    product, shipped = sum(one.product for one in paid), sum(one.shipping for one in paid)
    refunded = sum(one.refund.cents for one in paid if one.refund)
    gross, fees = product + shipped, (product + shipped) * 13 // 100
    figures = {
        "date_from": first.isoformat(),
        "date_to": last.isoformat(),
        "gross_sales": money(gross),
        "product_amount": money(product),
        "shipping_amount": money(shipped),
        "order_count": len(paid),
        "total_fees": money(fees),
        "total_refund_amount": money(refunded),
        "refunded_orders": sum(one.refund is not None for one in paid),
        "refunded_fees": "0.00",
        "adjustments": "0.00",
        "net_sales_minus_fees": money(gross - refunded - fees),
        "net_sales": money(gross - refunded),
    }
    return figures, _written(SALES, [[figures[name] for name in SALES]])


def report(rejected: Iterable[Rejected]) -> bytes:
    return _written(REPORT, ((one.line, one.id, one.reason) for one in rejected), "\r\n")


def account(row: Sequence[object]) -> bytes:
    return _written(ACCOUNT, [row])


def _written(header: Sequence[str], rows: Iterable[Sequence[object]], end: str = "\n") -> bytes:
    text = io.StringIO()
    text.write(",".join(header) + end)
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerows(rows)
    return text.getvalue().encode()


def read_import(
    content: bytes, cards: Mapping[int, Card], most_rows: int
) -> tuple[list[Line], list[Rejected]]:
    """Raises Refused for a file with another header, an id twice, no rows or too many."""
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        rows = list(reader)
    except (UnicodeDecodeError, csv.Error):
        raise Refused("The file is not a CSV file in UTF-8.") from None
    if missing := [name for name in _NEEDED if name not in (reader.fieldnames or ())]:
        raise Refused(f"The file has no column {missing[0]}.")
    if not rows:
        raise Refused("The file has no rows.")
    if len(rows) > most_rows:
        raise Refused(f"The file has more than {most_rows:,} rows.")
    lines: list[Line] = []
    rejected: list[Rejected] = []
    seen: set[str] = set()
    for number, row in enumerate(rows, start=2):
        id_ = (row["TCGplayer Id"] or "").strip()
        if id_ in seen:
            raise Refused(f"The file has the TCGplayer Id {id_} twice.")
        seen.add(id_)
        read = _line(number, id_, row, cards)
        if isinstance(read, Line):
            lines.append(read)
        else:
            rejected.append(Rejected(number, id_, read))
    return lines, rejected


def _line(number: int, id_: str, row: Mapping[str, Any], cards: Mapping[int, Card]) -> Line | str:
    """A line, or the reason why there is none."""
    if not id_.isascii() or not id_.isdigit() or int(id_) not in cards:
        return "unknown TCGplayer Id"
    added = (row["Add to Quantity"] or "0").strip()
    try:
        add = int(added)
    except ValueError:
        return "Add to Quantity is no whole number"
    if cards[int(id_)].quantity + add < 0:
        return "the quantity would be less than 0"
    text = (row["TCG Marketplace Price"] or "").strip()
    if not text:
        return Line(number, int(id_), add, None)
    cents = to_cents(text)
    if cents is None:
        return "the price is no amount"
    return Line(number, int(id_), add, cents) if cents >= 1 else "the price is below 0.01"


def to_cents(text: str) -> int | None:
    try:
        cents = Decimal(text.strip()) * 100
    except InvalidOperation:
        return None
    whole = cents.is_finite() and cents == cents.to_integral_value() and abs(cents) < 10**9
    return int(cents) if whole else None
