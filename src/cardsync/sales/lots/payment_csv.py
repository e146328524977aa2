"""Reads the fees of each order from the marketplace's payments report. Pure.

Fees are in one column, or in several columns that are added. Rows of one order are added with their
signs; the sign of the sum is dropped. A file with an unknown fee column is rejected, because the
sum would lack that fee. A later report replaces the stored fees of its orders.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from cardsync.platform import errors
from cardsync.platform.kit.csv_columns import CsvColumns
from cardsync.platform.kit.typed_numbers import amount as read_amount
from cardsync.platform.table_text import column_name, typed_day
from cardsync.sales.limits import LOT_ROWS, ORDER_NUMBER_CHARACTERS
from cardsync.sales.lots.lot_csv import RejectedLotRow, as_read, table_of

_FEES: Final = (
    "fees", "total fees", "fee amount", "commission", "commission fee", "commission fees",
    "payment processing fee", "processing fee", "transaction fee", "seller fees", "direct fees",
)  # fmt: skip
_CSV: Final = CsvColumns(
    {
        "order": "order number|order #|order|order id",
        "day": "payment date|paid on|date|order date",
        "amount": "total amount|total|order amount|gross sales|amount",
        "fees": "|".join(_FEES),
    },
    needed=("order", "fees"),
)
_SUMS: Final = ("fees", "total fees", "fee amount")
# `_A_FEE` matches the names of fee columns. `_NO_FEE` excludes names such as Fee Rate or Net Amount
# after Fees, whose cells are no fees.
_A_FEE: Final = re.compile(r"\b(fees?|commissions?|processing|surcharges?|charges?)\b")
_NO_FEE: Final = re.compile(
    r"%|\b(rate|percent\w*|bp|level|type|date|code|name|id|status|currency"
    r"|net|after|before|less|minus|without|excluding)\b"
)


class Paid(NamedTuple):
    order_number: str
    paid_on: date | None
    amount: Decimal | None
    fees: Decimal


class Payments(NamedTuple):
    """The orders of a payments report. `read_as` describes the file's format if it is unusual."""

    paid: list[Paid]
    rejected: list[RejectedLotRow]
    read_as: str = ""


def read_payments(body: bytes) -> Payments:
    """Read a payments report. Raises InvalidPayload for a file with missing columns or too many
    rows.
    """
    table = table_of(body, _CSV)
    names = list(map(column_name, table.header))
    order, day, amount = map(_CSV.places(table.header, best=True).get, ("order", "day", "amount"))
    fees = [at for at, name in enumerate(names) if name in _SUMS][:1]
    fees = fees or _each_fee(table.header)
    if order is None or not fees:
        missing = "an order number" if order is None else "fees"
        where = f"csv: line {table.form.before + 1} has no column with {missing}"
        raise errors.InvalidPayload(where + as_read(table))
    decimal = table.form.decimal
    found: dict[str, Paid] = {}
    rejected: list[RejectedLotRow] = []
    for rows, (line, cells, fault) in enumerate(table.rows):
        if rows == LOT_ROWS:
            raise errors.InvalidPayload(f"csv: at most {LOT_ROWS:,} rows in a file")
        if fault:
            rejected.append(RejectedLotRow(line, "row", fault))
            continue
        number = _cell(cells, order)[:ORDER_NUMBER_CHARACTERS]
        taken = [read_amount(_cell(cells, at) or "0", decimal) for at in fees]
        if not number:
            rejected.append(RejectedLotRow(line, "order_number", "it is missing"))
        elif None in taken:
            rejected.append(RejectedLotRow(line, "fees", "is not an amount like 1.50"))
        else:
            total = sum((one for one in taken if one is not None), Decimal(0))
            whole = read_amount(_cell(cells, amount), decimal)
            paid = Paid(number, typed_day(_cell(cells, day)), whole, total)
            found[number] = _joined(found.get(number), paid)
    paid_once = [one._replace(fees=abs(one.fees)) for one in found.values()]
    return Payments(paid_once, rejected, table.form.said())


def _each_fee(header: Sequence[str]) -> list[int]:
    """Return the indexes of the fee columns to add. Raises InvalidPayload for an unknown fee
    column.
    """
    names = [re.sub(r"[\s_-]+", " ", cell.strip().casefold()) for cell in header]
    found = [at for at, name in enumerate(names) if name in _FEES]
    for at, name in enumerate(names):
        if at not in found and _A_FEE.search(name) and not _NO_FEE.search(name):
            said = header[at].strip()[:40]
            raise errors.InvalidPayload(
                f"csv: line 1 has an unknown fee column, {said!r}, so the fees would be"
                " too low; add a column Total Fees, or call it Fees, Commission Fees, Processing"
                " Fee, Transaction Fee, Seller Fees or Direct Fees"
            )
    return found


def _cell(cells: list[str], at: int | None) -> str:
    return cells[at].strip().lstrip("'") if at is not None else ""


def _joined(former: Paid | None, paid: Paid) -> Paid:
    if former is None:
        return paid
    amounts = [one.amount for one in (former, paid) if one.amount is not None]
    amount = sum(amounts, Decimal(0)) if amounts else None
    return Paid(paid.order_number, paid.paid_on, amount, former.fees + paid.fees)
