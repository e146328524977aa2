"""Describes label sheets and roll printers in millimeters, and places labels on them. Pure.

A roll is a sheet of one label, whose page is as large as the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from cardsync.platform import errors
from cardsync.stock.limits import LABELS_AT_ONCE

Kind = Literal["sheet", "roll"]


class Size(NamedTuple):
    width: Decimal
    height: Decimal


class Sheet(NamedTuple):
    """A label sheet. `left` and `top` are the margins before the first label; a gap is the space
    between two labels.
    """

    key: str
    name: str
    kind: Kind
    page: Size
    label: Size
    columns: int
    rows: int
    left: Decimal
    top: Decimal
    gap_x: Decimal
    gap_y: Decimal

    @property
    def labels(self) -> int:
        return self.columns * self.rows


class Position(NamedTuple):
    """The position of a label. `page`, `column` and `row` count from 1; `left` and `top` are the
    label's upper left corner in millimeters.
    """

    page: int
    column: int
    row: int
    left: Decimal
    top: Decimal


def _size(text: str) -> Size:
    width, _, height = text.partition("x")
    return Size(Decimal(width), Decimal(height))


_A4: Final = "210x297"
_LETTER: Final = "215.9x279.4"


def _sheet(
    key: str,
    name: str,
    page: str,
    label: str,
    grid: str,
    corner: str,
    gaps: str = "0x0",
) -> Sheet:
    columns, _, rows = grid.partition("x")
    left, top = _size(corner)
    gap_x, gap_y = _size(gaps)
    return Sheet(
        key,
        name,
        "sheet",
        _size(page),
        _size(label),
        int(columns),
        int(rows),
        left,
        top,
        gap_x,
        gap_y,
    )


def _roll(key: str, name: str, label: str) -> Sheet:
    nothing = Decimal(0)
    size = _size(label)
    return Sheet(
        key,
        name,
        "roll",
        size,
        size,
        1,
        1,
        nothing,
        nothing,
        nothing,
        nothing,
    )


_ALL: Final = (
    _sheet("avery-5160", "Avery 5160", _LETTER, "66.675x25.4", "3x10", "4.7625x12.7", "3.175x0"),
    _sheet("avery-5163", "Avery 5163", _LETTER, "101.6x50.8", "2x5", "3.96875x12.7", "4.7625x0"),
    _sheet("avery-5167", "Avery 5167", _LETTER, "44.45x12.7", "4x20", "7.62x12.7", "7.62x0"),
    _sheet("avery-l7159", "Avery L7159", _A4, "63.5x33.9", "3x8", "7.25x12.9", "2.5x0"),
    _sheet("avery-l7160", "Avery L7160", _A4, "63.5x38.1", "3x7", "7.25x15.15", "2.5x0"),
    _sheet("avery-l7163", "Avery L7163", _A4, "99.1x38.1", "2x7", "4.65x15.15", "2.5x0"),
    _sheet("avery-l7651", "Avery L7651", _A4, "38.1x21.2", "5x13", "4.75x10.7", "2.5x0"),
    _sheet("herma-4200", "Herma 4200", _A4, "25.4x10", "7x27", "8.6x13.5", "2.5x0"),
    _sheet("herma-4346", "Herma 4346", _A4, "48.3x25.4", "4x11", "8.4x8.8"),
    _sheet("herma-4360", "Herma 4360", _A4, "70x36", "3x8", "0x4.5"),
    _sheet("herma-4464", "Herma 4464", _A4, "70x37", "3x8", "0x0.5"),
    _roll("brother-dk-11201", "Brother DK-11201", "90x29"),
    _roll("brother-dk-11209", "Brother DK-11209", "62x29"),
    _roll("dymo-11354", "Dymo 11354", "57x32"),
    _roll("dymo-30252", "Dymo 30252, address", "88.9x28.575"),
    _roll("dymo-30330", "Dymo 30330, return address", "50.8x19.05"),
    _roll("dymo-30336", "Dymo 30336, small", "53.975x25.4"),
    _roll("dymo-99010", "Dymo 99010", "89x28"),
    _roll("dymo-99012", "Dymo 99012", "89x36"),
    _roll("rollo-4x6", "Rollo 4 × 6 in", "101.6x152.4"),
    _roll("zebra-2x1", "Zebra 2 x 1 in", "50.8x25.4"),
    _roll("zebra-4x6", "Zebra 4 x 6 in", "101.6x152.4"),
)
SHEETS: Final[Mapping[str, Sheet]] = {sheet.key: sheet for sheet in _ALL}


def sheet_of(key: str) -> Sheet:
    """Return the sheet named `key`. Raises NotFound."""
    found = SHEETS.get(key)
    if found is None:
        raise errors.NotFound(f"there is no label sheet {key!r}")
    return found


def position(sheet: Sheet, place: int) -> Position:
    """Return the position of the label number `place`. Labels count from 1, row by row, and
    continue on the next page.
    """
    page, on_page = divmod(place - 1, sheet.labels)
    row, column = divmod(on_page, sheet.columns)
    return Position(
        page + 1,
        column + 1,
        row + 1,
        sheet.left + column * (sheet.label.width + sheet.gap_x),
        sheet.top + row * (sheet.label.height + sheet.gap_y),
    )


def layout(sheet: Sheet, count: int, start: int = 1) -> list[Position]:
    """Return the positions of `count` labels. The first label has the number `start`, so that a
    partly used sheet can be used up. Raises InvalidPayload.
    """
    if not 1 <= start <= sheet.labels:
        raise errors.InvalidPayload(f"start: {sheet.name} has labels 1 to {sheet.labels}")
    if not 0 <= count <= LABELS_AT_ONCE:
        raise errors.InvalidPayload(f"count: at most {LABELS_AT_ONCE} labels at once")
    return [position(sheet, start + number) for number in range(count)]
