"""Reads a file of lots, a CSV with a header. A row that can't be read is told with its line, field
and reason. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from cardsync.catalog.app_files import app_of
from cardsync.platform import errors, limits
from cardsync.platform.file_kinds import kind_of
from cardsync.platform.money import read_amount
from cardsync.platform.table_text import (
    NotATable,
    Table,
    column_name,
    read_table,
    typed_day,
    typed_number,
    typed_whole,
)
from cardsync.sales.limits import LOT_ROWS
from cardsync.sales.lots.add_lots import COST_MOST, NewLot

COLUMNS: Final = ("marketplace_id", "quantity", "cost", "bought_on")
_NAMES: Final = {
    "marketplace id": "marketplace_id", "tcgplayer id": "marketplace_id", "sku": "marketplace_id",
    "sku id": "marketplace_id", "quantity": "quantity", "qty": "quantity", "copies": "quantity",
    "cost": "cost", "cost each": "cost", "purchase price": "cost", "price bought": "cost",
    "bought on": "bought_on", "date": "bought_on",
    "date bought": "bought_on", "purchase date": "bought_on",
}  # fmt: skip


class RejectedLotRow(msgspec.Struct):
    """`row` is the line in the file; the header is line 1."""

    row: int
    field: str
    reason: str


class LotRows(NamedTuple):
    """`read_as` says how the file is written, where that is not the usual way."""

    lots: list[NewLot]
    rejected: list[RejectedLotRow]
    read_as: str = ""


class _Unreadable(Exception):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


def read_lots(body: bytes, today: date) -> LotRows:
    """Read a file; a row without a day was bought today. Raises InvalidPayload for a file without
    the columns, or with too many rows.
    """
    table = table_of(body, _NAMES, ("marketplace_id", "quantity"))
    places = places_of(table, _NAMES, ("marketplace_id", "quantity"))
    rows = LotRows([], [], table.form.said())
    for line, cells, fault in table.rows:
        if len(rows.lots) + len(rows.rejected) == LOT_ROWS:
            raise errors.InvalidPayload(f"csv: at most {LOT_ROWS:,} rows in a file")
        given = {name: cells[at].strip().lstrip("'") for name, at in places.items() if not fault}
        try:
            if fault:
                raise _Unreadable("row", fault)
            if any(given.values()):
                rows.lots.append(_lot(given, today, table.form.decimal))
        except _Unreadable as e:
            rows.rejected.append(RejectedLotRow(line, e.field, e.reason))
    return rows


def table_of(body: bytes, names: Mapping[str, str], needed: Sequence[str]) -> Table:
    """Return the table whose header has the needed columns. Raises InvalidPayload for a file of
    another kind.
    """
    try:
        table = read_table(body, lambda cells: set(needed) <= _places(cells, names).keys())
    except NotATable as e:
        raise errors.InvalidPayload(f"csv: {e}") from e
    if not set(needed) <= _places(table.header, names).keys():
        kind = kind_of(table.header) or app_of(table.header)
        if kind is not None:
            raise errors.InvalidPayload(f"csv: {kind.told()}")
    return table


def places_of(table: Table, names: Mapping[str, str], needed: Sequence[str]) -> dict[str, int]:
    """Return where each known column is. Raises InvalidPayload naming the missing ones."""
    places = _places(table.header, names)
    if missing := [name for name in needed if name not in places]:
        lacks = f"csv: line {table.form.before + 1} lacks {' and '.join(missing)}"
        raise errors.InvalidPayload(lacks + as_read(table))
    return places


def as_read(table: Table) -> str:
    """Return what a sentence about a table's header adds where the table is not written as usual."""
    said = table.form.said()
    return f" (read as {said})" if said else ""


def _places(header: Sequence[str], names: Mapping[str, str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for at, cell in enumerate(header):
        if known := names.get(column_name(cell)):
            places.setdefault(known, at)
    return places


def _lot(given: Mapping[str, str], today: date, decimal: str) -> NewLot:
    card = _whole("marketplace_id", given, limits.LARGEST_ID, decimal)
    quantity = _whole("quantity", given, limits.SHELVED_QUANTITY, decimal)
    bought_on = _day(given.get("bought_on", ""), today)
    return NewLot(card, quantity, _cost(given.get("cost", ""), decimal), bought_on, "file")


def _whole(field: str, given: Mapping[str, str], most: int, decimal: str) -> int:
    digits = given.get(field, "")
    try:
        number = typed_whole(digits, decimal)
    except ValueError:
        number = 0
    if not 1 <= number <= most:
        raise _Unreadable(field, f"{digits[:40]!r} is not a whole number from 1 to {most:,}")
    return number


def _cost(given: str, decimal: str) -> Decimal | None:
    if not given:
        return None
    cost = amount_of(given, decimal)
    if cost is None or not 0 <= cost <= COST_MOST:
        raise _Unreadable("cost", f"{given[:40]!r} is not an amount like 1.50")
    return cost


def amount_of(given: str, decimal: str = ".") -> Decimal | None:
    """Read an amount like $1,234.50, 1.234,50 or (1.50), which is below zero; None if it is none."""
    try:
        return read_amount(typed_number(given, decimal))
    except ValueError:
        return None


def _day(given: str, today: date) -> date:
    day = typed_day(given) if given else today
    if day is None:
        raise _Unreadable("bought_on", f"{given[:40]!r} is not a day like 2026-07-31")
    if day > today:
        raise _Unreadable("bought_on", f"{given[:40]!r} is later than today")
    return day
