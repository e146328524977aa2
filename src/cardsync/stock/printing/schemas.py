"""The JSON structs of label sheets, and the functions that fill them. Pure. Millimetres are text,
as money is.
"""

from __future__ import annotations

import msgspec

from cardsync.stock.printing.sheets import Kind, Position, Sheet


class LabelSheet(msgspec.Struct):
    """Lengths are in millimetres. `labels` is the number on a page."""

    key: str
    """The name of the sheet in addresses"""
    name: str
    kind: Kind
    """sheet or roll"""
    page_width: str
    """In millimeters"""
    page_height: str
    """In millimeters"""
    label_width: str
    """In millimeters"""
    label_height: str
    """In millimeters"""
    columns: int
    """The labels of a row"""
    rows: int
    """The labels of a column"""
    labels: int
    """The labels of a page"""
    left: str
    """The left margin, in millimeters"""
    top: str
    """The top margin, in millimeters"""
    gap_x: str
    """The gap between columns, in millimeters"""
    gap_y: str
    """The gap between rows, in millimeters"""


class LabelSheets(msgspec.Struct):
    sheets: list[LabelSheet]


class LabelPosition(msgspec.Struct):
    """`left` and `top` are the label's upper left corner in millimetres."""

    page: int
    column: int
    """The column of labels"""
    row: int
    """The row of labels"""
    left: str
    """Its left edge, in millimeters"""
    top: str
    """Its top edge, in millimeters"""


class LabelLayout(msgspec.Struct):
    sheet: LabelSheet
    """The sheet"""
    pages: int
    """How many pages"""
    positions: list[LabelPosition]
    """Where each label is printed"""


def label_sheet(sheet: Sheet) -> LabelSheet:
    return LabelSheet(
        key=sheet.key,
        name=sheet.name,
        kind=sheet.kind,
        page_width=str(sheet.page.width),
        page_height=str(sheet.page.height),
        label_width=str(sheet.label.width),
        label_height=str(sheet.label.height),
        columns=sheet.columns,
        rows=sheet.rows,
        labels=sheet.labels,
        left=str(sheet.left),
        top=str(sheet.top),
        gap_x=str(sheet.gap_x),
        gap_y=str(sheet.gap_y),
    )


def label_layout(sheet: Sheet, positions: list[Position]) -> LabelLayout:
    shown = [
        LabelPosition(place.page, place.column, place.row, str(place.left), str(place.top))
        for place in positions
    ]
    return LabelLayout(label_sheet(sheet), positions[-1].page if positions else 0, shown)
