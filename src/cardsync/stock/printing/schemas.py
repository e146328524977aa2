"""The JSON structs of label sheets. Pure. Millimetres are text, as money is."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cardsync.platform.kit.struct_rows import Column, Reads
from cardsync.stock.printing.sheets import Kind

Length = Annotated[str, Reads(str)]


class LabelSheet(msgspec.Struct):
    """Lengths are in millimetres. `labels` is the number on a page."""

    key: str
    """The name of the sheet in addresses"""
    name: str
    kind: Kind
    """sheet or roll"""
    page_width: Annotated[Length, Column("page.width")]
    """In millimeters"""
    page_height: Annotated[Length, Column("page.height")]
    """In millimeters"""
    label_width: Annotated[Length, Column("label.width")]
    """In millimeters"""
    label_height: Annotated[Length, Column("label.height")]
    """In millimeters"""
    columns: int
    """The labels of a row"""
    rows: int
    """The labels of a column"""
    labels: int
    """The labels of a page"""
    left: Length
    """The left margin, in millimeters"""
    top: Length
    """The top margin, in millimeters"""
    gap_x: Length
    """The gap between columns, in millimeters"""
    gap_y: Length
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
    left: Length
    """Its left edge, in millimeters"""
    top: Length
    """Its top edge, in millimeters"""


class LabelLayout(msgspec.Struct):
    sheet: LabelSheet
    """The sheet"""
    pages: int
    """How many pages"""
    positions: list[LabelPosition]
    """Where each label is printed"""
