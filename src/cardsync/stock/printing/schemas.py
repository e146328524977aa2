"""The JSON structs of label sheets. Pure. Lengths in millimeters are texts, like money."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cardsync.platform.kit.struct_rows import Column, Reads
from cardsync.stock.printing.sheets import Kind

Length = Annotated[str, Reads(str)]


class LabelSheet(msgspec.Struct):
    """A label sheet. Lengths are in millimeters. `labels` is the number of labels on a page."""

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
    """The number of labels in a row"""
    rows: int
    """The number of labels in a column"""
    labels: int
    """The number of labels on a page"""
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
    """The position of a label. `left` and `top` are its upper left corner, in millimeters."""

    page: int
    column: int
    """The column, from 1"""
    row: int
    """The row, from 1"""
    left: Length
    """The label's left edge, in millimeters"""
    top: Length
    """The label's top edge, in millimeters"""


class LabelLayout(msgspec.Struct):
    sheet: LabelSheet
    """The sheet"""
    pages: int
    """The number of pages"""
    positions: list[LabelPosition]
    """The positions of the labels"""
