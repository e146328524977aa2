"""Parses the marketplace's order files into the rows of the order uploads, and lists every line
that could not be read. Pure.

The header distinguishes the kinds of files. No name and no street of the shipping export is ever
read. An unreadable cell is omitted and reported. The report names line and column, never the
content, because columns may have shifted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from cardsync_agent import file_kinds
from cardsync_agent.cells import read_amount, read_date, read_whole
from cardsync_agent.csv_records import Lines, Problem, Record, header_of, lines_of, records
from cardsync_agent.file_kinds import column

Row: TypeAlias = dict[str, Any]
Say: TypeAlias = Callable[[str], None]  # called with the problem of the current line

EARLIEST = date(2020, 1, 1)
WINDOW = timedelta(days=90)
# An order number has at most this many characters; the server would refuse an upload with a longer
# number as a whole.
LONGEST_NUMBER = 200


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    `path` is the address for its rows, `needed` are the columns that identify it, and `most` is the
    number of its files that are used.
    """

    name: str
    rows: str
    path: str
    needed: frozenset[str]
    # Rows may lack this many columns at the end.
    optional: int = 0
    most: int = 1


def _needs(*columns: str) -> frozenset[str]:
    return frozenset(map(column, columns))


ORDER_LIST = Kind(
    "order list",
    "orders",
    "orders",
    file_kinds.ORDER_LIST.needed,
    optional=1,
)
# A pull sheet has only the orders that were open when it was printed, so it does not replace
# earlier pull sheets.
PULL_SHEET = Kind(
    "pull sheet",
    "items",
    "order_items",
    _needs("Product Line", "Product Name", "Condition", "Set", "Quantity"),
    most=50,
)
SHIPPING = Kind(
    "shipping export",
    "shipping rows",
    "orders/shipping",
    file_kinds.SHIPPING.needed,
)
REFUNDS = Kind("refund export", "refunds", "order_refunds", _needs("order_number", "refund_type"))
FEEDBACK = Kind(
    "feedback export", "feedback rows", "order_feedbacks", _needs("order_number", "rating")
)
SALES = Kind("sales summary", "months", "sales_report", _needs("date_from", "net_sales"), most=50)
# Recognition follows this order, because a file may have the columns of several kinds.
KINDS = (SALES, FEEDBACK, REFUNDS, SHIPPING, ORDER_LIST, PULL_SHEET)
DEPENDENTS = (PULL_SHEET, SHIPPING, REFUNDS, FEEDBACK)


@dataclass
class Parsed:
    """`taken` counts lines that became rows, `older` lines before the window, `lost` unreadable
    lines. `problems` lists lost lines and omitted cells.
    """

    rows: list[Row] = field(default_factory=list)
    taken: int = 0
    older: int = 0
    lost: int = 0
    problems: list[Problem] = field(default_factory=list)


def kind_of(header: Iterable[str]) -> Kind | None:
    """Return the kind with this header; None for any other header, including a pricing export's."""
    names = set(map(column, header))
    if column("TCGplayer Id") in names:
        return None
    return next((kind for kind in KINDS if kind.needed <= names), None)


def is_known(header: Iterable[str]) -> bool:
    return kind_of(header) is not None


def window_start(*, first_sync: bool, today: date) -> date:
    return EARLIEST if first_sync else today - WINDOW


def parse(kind: Kind, content: bytes, since: date) -> Parsed:
    """Parse any file but a sales summary. Raises Damaged."""
    lines = lines_of(content, is_known)
    if kind is PULL_SHEET:
        return _pull_sheet(lines)
    make = {ORDER_LIST: _order, SHIPPING: _shipping, REFUNDS: _refund, FEEDBACK: _feedback}[kind]
    dated = kind in (ORDER_LIST, SHIPPING)
    parsed = Parsed()
    for record in _records(lines, kind, parsed):
        say = _sayer(parsed, record)
        if dated and (day := read_date(record.get("orderdate"))) is not None and day < since:
            parsed.older += 1
        elif row := _made(make, record, say):
            parsed.rows.append(row)
            parsed.taken += 1
        else:
            parsed.lost += 1
    return parsed


def _records(lines: Lines, kind: Kind, parsed: Parsed) -> Iterator[Record]:
    # A doubtful line of a file with streets is omitted, because a shifted column might send a
    # street.
    for record in records(lines, len(header_of(lines)) - kind.optional, strict=kind is SHIPPING):
        if isinstance(record, Problem):
            parsed.problems.append(record)
            parsed.lost += 1
        else:
            yield record


def _sayer(parsed: Parsed, record: Record) -> Say:
    return lambda text: parsed.problems.append(Problem(record.line, text))


def _made(make: Callable[[Record, Say], Row | None], record: Record, say: Say) -> Row | None:
    number = record.get("ordernumber")
    if problem := _number_problem(number):
        say(problem)
        return None
    row = make(record, say)
    return None if row is None else {"order_number": number, **row}


def _number_problem(number: str) -> str | None:
    if not number:
        return "no order number"
    return "an order number that is too long" if len(number) > LONGEST_NUMBER else None


_AMOUNTS = ("product_amt", "shipping_amt", "total_amt")


def _order(record: Record, say: Say) -> Row | None:
    # The columns have shifted: a row with this status would replace the correct order.
    if read_date(record.get("status")) is not None:
        say("Status is a date; the columns have shifted")
        return None
    return _present(
        {
            **_texts(record, "buyer_name"),
            "order_date": _date(record, say),
            **_texts(record, "status"),
            **{name: _amount(record, name, say) for name in _AMOUNTS},
        }
    )


def _unreadable(record: Record, name: str, read: Callable[[str], object]) -> bool:
    return bool(text := record.get(name)) and read(text) is None


def _refund(record: Record, say: Say) -> Row | None:
    row = _order(record, say)
    if row is None:
        return None
    # Several of the marketplace's files write a refunded amount as a negative number.
    amounts = {name: row[name].removeprefix("-") for name in _AMOUNTS if name in row}
    if amounts and "total_amt" not in amounts:  # without it the order counts as not refunded
        amounts["total_amt"] = str(sum(map(Decimal, amounts.values())))
    if not amounts:
        say("a refund without an amount")
    return {
        **row,
        **amounts,
        **_texts(record, "refund_type", "refund_origin", "refund_reason", "refund_note"),
    }


def _feedback(record: Record, say: Say) -> Row | None:
    rating = record.get("rating")
    if rating not in ("1", "2", "3", "4", "5"):
        say("a rating that is not 1 to 5")
        return None
    return {"rating": int(rating), **_texts(record, "comment")}


_LIKE_A_NUMBER = re.compile(r"(?=.*\d)[\w./#-]+", re.ASCII)
# In a row whose columns have not shifted, these columns of the shipping export contain only
# numbers.
_NUMERIC = ("Product Weight", "Item Count", "Value Of Products", "Shipping Fee Paid")
_WITNESSES = frozenset(map(column, (*_NUMERIC, "Order Date")))
_SENT = ("shipping_method", "city", "state", "postal_code", "tracking_number")
_NOTHING_ELSE = frozenset(map(column, ("order_number", *_SENT)))


def _shipping(record: Record, say: Say) -> Row | None:
    shifted = [name for name in _NUMERIC if _unreadable(record, column(name), read_amount)]
    if _unreadable(record, "orderdate", read_date):
        shifted.append("Order Date")
    # The cell may contain the rest of a name that has a line break.
    if not _LIKE_A_NUMBER.fullmatch(record.get("ordernumber")):
        shifted.append("Order #")
    if shifted:  # the City cell might hold a street: nothing of the row is sent
        say(f"{shifted[0]} is not what it should be; the columns have shifted")
        return None
    if _nothing_speaks_for(record):
        say("nothing in it shows that no columns have shifted")
        return None
    weight = read_amount(record.get("productweight"), record.decimal)
    return _present(
        {
            **_texts(record, *_SENT),
            "item_count": _whole(record, "item_count", say),
            # 0.00 means that the weight is missing.
            "product_weight": weight if weight and Decimal(weight) else None,
        }
    )


def _nothing_speaks_for(record: Record) -> bool:
    """Return whether the row lacks evidence that its columns are in place. A file in which all
    columns are sent needs no evidence.
    """
    return not record.cells.keys() <= _NOTHING_ELSE and not any(map(record.get, _WITNESSES))


_CLOSING = re.compile(
    r'\s*"?\s*orders contained in pull sheet\s*:?\s*"?\s*[,;\t](.*)', re.IGNORECASE
)
_ITEM_TEXTS = {
    "product_name": "productname", "product_line": "productline", "condition": "condition",
    "set_name": "set", "rarity": "rarity", "main_photo_url": "mainphotourl",
}  # fmt: skip


def _pull_sheet(lines: Lines) -> Parsed:
    contained: list[str] = []
    for at, line in enumerate(lines):
        if closing := _CLOSING.match(line):
            contained += [
                part.strip() for part in closing[1].strip().strip('",;').split("|") if part.strip()
            ]
            lines[at] = ""
    only = contained[0] if len(set(contained)) == 1 else None
    parsed = Parsed()
    found: dict[tuple[str, object], Row] = {}
    for record in _records(lines, PULL_SHEET, parsed):
        say = _sayer(parsed, record)
        pairs = list(_pairs(record, only, say))
        # Without its SKU, the line would replace the order's other lines that have none.
        if _unreadable(record, "skuid", read_whole):
            say("sku_id is no whole number")
            pairs = []
        fields = _item(record, say) if pairs else {}
        for number, quantity in pairs:
            # Two lines of one card in one order add up; without a SKU each line counts by itself.
            key = (number, fields.get("sku_id", f"line {record.line}"))
            row = found.setdefault(key, {"order_number": number, **fields, "quantity": 0})
            row["quantity"] += quantity
        parsed.taken, parsed.lost = parsed.taken + bool(pairs), parsed.lost + (not pairs)
    parsed.rows = _by_order(found.values())
    return parsed


def _pairs(record: Record, only: str | None, say: Say) -> Iterator[tuple[str, int]]:
    """Yield the orders of a line with their quantities. The column Order Quantity (`ORDER:6 |
    ORDER:2`) has precedence over Quantity; older sheets have only Quantity, and `only` is the order
    if the sheet has exactly one.
    """
    given = record.get("orderquantity")
    if not given:
        quantity = read_whole(record.get("quantity"), record.decimal)
        if only is None:
            say("no Order Quantity, and the sheet does not hold exactly one order")
        elif quantity is None:
            say("Quantity is no whole number")
        else:
            yield only, quantity
        return
    for pair in given.split("|"):
        number, _, text = (part.strip() for part in pair.rpartition(":"))
        quantity = read_whole(text)
        if quantity is None or _number_problem(number):
            say("a part of Order Quantity is not like ORDER:2")
        else:
            yield number, quantity


def _item(record: Record, say: Say) -> Row:
    texts = {name: record.get(source) for name, source in _ITEM_TEXTS.items()}
    sku = _whole(record, "sku_id", say)
    return {name: value for name, value in texts.items() if value} | (
        {"sku_id": sku} if sku is not None else {}
    )


def _by_order(rows: Iterable[Row]) -> list[Row]:
    """Group the rows by order. An order must not be divided over two uploads, because rows without
    a SKU replace the order's earlier rows without a SKU.
    """
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["order_number"], []).append(row)
    return [row for group in grouped.values() for row in group]


def _present(row: Row) -> Row:
    """Remove blank cells: they mean nothing, and must not clear stored values."""
    return {name: value for name, value in row.items() if value is not None}


def _texts(record: Record, *names: str) -> Row:
    return {name: value for name in names if (value := record.get(column(name)))}


def _date(record: Record, say: Say) -> str | None:
    text = record.get("orderdate")
    day = read_date(text)
    if text and day is None:
        say("Order Date is no date; sent without")
    return None if day is None else f"{day.month:02}/{day.day:02}/{day.year}"


def _amount(record: Record, name: str, say: Say) -> str | None:
    text = record.get(column(name))
    amount = read_amount(text, record.decimal)
    if text and amount is None:
        say(f"{name} is no amount; sent without")
    return amount


def _whole(record: Record, name: str, say: Say) -> int | None:
    text = record.get(column(name))
    number = read_whole(text, record.decimal)
    if text and number is None:
        say(f"{name} is no whole number; sent without")
    return number
