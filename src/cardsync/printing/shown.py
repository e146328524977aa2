"""The JSON structs of label sheets, and the functions that fill them. Pure. Millimetres are text,
as money is.
"""

from __future__ import annotations

import msgspec

from cardsync.printing.sheets import Kind, Position, Sheet


class LabelSheet(msgspec.Struct):
    """Lengths are in millimetres. `labels` is the number on a page."""

    key: str
    name: str
    kind: Kind
    page_width: str
    page_height: str
    label_width: str
    label_height: str
    columns: int
    rows: int
    labels: int
    left: str
    top: str
    gap_x: str
    gap_y: str


class LabelSheets(msgspec.Struct):
    sheets: list[LabelSheet]


class LabelPosition(msgspec.Struct):
    """`left` and `top` are the label's upper left corner in millimetres."""

    page: int
    column: int
    row: int
    left: str
    top: str


class LabelLayout(msgspec.Struct):
    sheet: LabelSheet
    pages: int
    positions: list[LabelPosition]


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
