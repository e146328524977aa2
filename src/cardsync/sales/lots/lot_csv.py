"""Reads lots from a CSV with a header, and lists each unreadable row with its line, field and
reason. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from cardsync.catalog.app_files import app_of
from cardsync.platform import errors, limits
from cardsync.platform.file_kinds import kind_of
from cardsync.platform.kit.csv_columns import CsvColumns
from cardsync.platform.kit.typed_numbers import amount
from cardsync.platform.table_text import (
    NotATable,
    Table,
    typed_day,
    typed_whole,
)
from cardsync.sales.limits import LOT_ROWS
from cardsync.sales.lots.add_lots import COST_MOST, NewLot

COLUMNS: Final = ("marketplace_id", "quantity", "cost", "bought_on")
_CSV: Final = CsvColumns(
    {
        "marketplace_id": "marketplace id|tcgplayer id|sku|sku id",
        "quantity": "quantity|qty|copies",
        "cost": "cost|cost each|purchase price|price bought",
        "bought_on": "bought on|date|date bought|purchase date",
    },
    needed=("marketplace_id", "quantity"),
)


class RejectedLotRow(msgspec.Struct):
    """`row` is the line in the file; the header is line 1."""

    row: int
    field: str
    reason: str


class LotRows(NamedTuple):
    """The rows of a file. `read_as` describes the file's format if it is unusual."""

    lots: list[NewLot]
    rejected: list[RejectedLotRow]
    read_as: str = ""


class _Unreadable(Exception):
    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


def read_lots(body: bytes, today: date) -> LotRows:
    """Read a file of lots. A row without a day gets `today`. Raises InvalidPayload for a file with
    missing columns or too many rows.
    """
    table = table_of(body, _CSV)
    if missing := _CSV.missing(table.header):
        lacks = f"csv: line {table.form.before + 1} lacks {' and '.join(missing)}"
        raise errors.InvalidPayload(lacks + as_read(table))
    places = _CSV.places(table.header)
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


def table_of(body: bytes, columns: CsvColumns) -> Table:
    """Return the table of a file. Raises InvalidPayload for a file that is no table, or whose
    header is that of another known kind of file.
    """
    try:
        table = columns.table(body)
    except NotATable as e:
        raise errors.InvalidPayload(f"csv: {e}") from e
    if not columns.fit(table.header):
        kind = kind_of(table.header) or app_of(table.header)
        if kind is not None:
            raise errors.InvalidPayload(f"csv: {kind.told()}")
    return table


def as_read(table: Table) -> str:
    """Return the end of an error message, which names the table's format if it is unusual."""
    said = table.form.said()
    return f" (read as {said})" if said else ""


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
    cost = amount(given, decimal)
    if cost is None or not 0 <= cost <= COST_MOST:
        raise _Unreadable("cost", f"{given[:40]!r} is not an amount like 1.50")
    return cost


def _day(given: str, today: date) -> date:
    day = typed_day(given) if given else today
    if day is None:
        raise _Unreadable("bought_on", f"{given[:40]!r} is not a day like 2026-07-31")
    if day > today:
        raise _Unreadable("bought_on", f"{given[:40]!r} is later than today")
    return day
