"""Reads a file of lots: a CSV with a header, `,`, `;` or tab between its cells. A row that can't be
read is told with its line, field and reason. Pure.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from cardsync import errors, limits
from cardsync.lots.add_lots import COST_MOST, NewLot
from cardsync.money import read_amount

COLUMNS: Final = ("marketplace_id", "quantity", "cost", "bought_on")
_NAMES: Final = {
    "marketplace_id": "marketplace_id", "tcgplayer id": "marketplace_id", "sku": "marketplace_id",
    "sku id": "marketplace_id", "quantity": "quantity", "qty": "quantity", "copies": "quantity",
    "cost": "cost", "cost each": "cost", "purchase price": "cost", "price bought": "cost",
    "bought_on": "bought_on", "bought on": "bought_on", "date": "bought_on",
    "date bought": "bought_on", "purchase date": "bought_on",
}  # fmt: skip
_DAY: Final = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?:[T ].*)?"
    r"|(?P<first>\d{1,2})/(?P<second>\d{1,2})/(?P<last>\d{4}|\d{2})",
    re.ASCII,
)
# A comma before one or two last digits is a decimal one; one before three may be either, unless a
# point or another comma says which.
_WITH_COMMA: Final = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d{1,2}", re.ASCII)
_IN_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,})", re.ASCII)


class RejectedRow(msgspec.Struct):
    """`row` is the line in the file; the header is line 1."""

    row: int
    field: str
    reason: str


class LotRows(NamedTuple):
    lots: list[NewLot]
    rejected: list[RejectedRow]


class _Unreadable(Exception):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


def read_lots(body: bytes, today: date) -> LotRows:
    """Read a file; a row without a day was bought today. Raises InvalidPayload for a file without
    the columns, or with too many rows.
    """
    table = table_of(body)
    places = places_of(table[0] if table else [], _NAMES, ("marketplace_id", "quantity"))
    rows = LotRows([], [])
    if len(table) > limits.LOT_ROWS + 1:
        raise errors.InvalidPayload(f"csv: at most {limits.LOT_ROWS:,} rows in a file")
    for line, cells in enumerate(table[1:], 2):
        given = {
            name: cells[at].strip().lstrip("'") for name, at in places.items() if at < len(cells)
        }
        if not any(given.values()):
            continue
        try:
            rows.lots.append(_lot(given, today))
        except _Unreadable as e:
            rows.rejected.append(RejectedRow(line, e.field, e.reason))
    return rows


def table_of(body: bytes) -> list[list[str]]:
    """Return the cells of a CSV. Raises InvalidPayload."""
    try:
        words = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise errors.InvalidPayload("csv: the file is not UTF-8") from None
    first = words.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        return list(csv.reader(io.StringIO(words, newline=""), delimiter=delimiter))
    except csv.Error as e:
        raise errors.InvalidPayload(f"csv: the file cannot be read: {e}") from e


def places_of(
    header: Sequence[str],
    names: Mapping[str, str],
    needed: Sequence[str],
) -> dict[str, int]:
    """Return where each known column is. Raises InvalidPayload naming the missing ones."""
    places: dict[str, int] = {}
    for at, cell in enumerate(header):
        if known := names.get(cell.strip().casefold()):
            places.setdefault(known, at)
    if missing := [name for name in needed if name not in places]:
        raise errors.InvalidPayload(f"csv: line 1 lacks {' and '.join(missing)}")
    return places


def _lot(given: Mapping[str, str], today: date) -> NewLot:
    card = _whole("marketplace_id", given, limits.LARGEST_ID)
    quantity = _whole("quantity", given, limits.SHELVED_QUANTITY)
    bought_on = _day(given.get("bought_on", ""), today)
    return NewLot(card, quantity, _cost(given.get("cost", "")), bought_on, "file")


def _whole(field: str, given: Mapping[str, str], most: int) -> int:
    digits = given.get(field, "")
    plain = digits.isascii() and digits.isdigit() and len(digits) < 20
    if not (plain and 1 <= int(digits) <= most):
        raise _Unreadable(field, f"{digits[:40]!r} is not a whole number from 1 to {most:,}")
    return int(digits)


def _cost(given: str) -> Decimal | None:
    if not given:
        return None
    cost = amount_of(given)
    if cost is None or not 0 <= cost <= COST_MOST:
        raise _Unreadable("cost", f"{given[:40]!r} is not an amount like 1.50")
    return cost


def amount_of(given: str) -> Decimal | None:
    """Read an amount like $1,234.50, 1.234,50 or (1.50), which is below zero; None if it is none,
    or if its comma may be either sign.
    """
    plain = given.strip().replace("$", "")
    below = plain.startswith("(") and plain.endswith(")")
    plain = plain.strip("()").strip()
    if _WITH_COMMA.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif "," in plain and not _IN_THOUSANDS.fullmatch(plain):
        return None
    try:
        amount = read_amount(plain.replace(",", ""))
    except ValueError:
        return None
    return -amount if below else amount


def day_of(given: str) -> date | None:
    """Read a day like 2026-07-31 or 07/31/2026; None if it is none."""
    found = _DAY.fullmatch(given)
    if found is None:
        return None
    year, month, day = (
        found["year"] or found["last"],
        found["month"] or found["first"],
        found["day"],
    )
    century = 2_000 if len(year) == 2 else 0
    try:
        return date(century + int(year), int(month), int(day or found["second"]))
    except ValueError:
        return None


def _day(given: str, today: date) -> date:
    day = day_of(given) if given else today
    if day is None:
        raise _Unreadable("bought_on", f"{given[:40]!r} is not a day like 2026-07-31")
    if day > today:
        raise _Unreadable("bought_on", f"{given[:40]!r} is later than today")
    return day
