"""HTTP routes of label sheets: all sheets, and the positions of labels on one sheet."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, get
from litestar.params import Parameter

from cardsync.platform import errors
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.stock.limits import LABELS_AT_ONCE
from cardsync.stock.printing.schemas import (
    LabelLayout,
    LabelPosition,
    LabelSheet,
    LabelSheets,
)
from cardsync.stock.printing.sheets import SHEETS, layout, sheet_of
from cardsync.web.request import BEHIND_A_KEY, problems


@get("/print/sheets", sync_to_thread=False, responses=problems(*BEHIND_A_KEY))
def read_sheets() -> LabelSheets:
    """The label sheets and roll printers that pages can be printed on."""
    return LabelSheets([struct_of(LabelSheet, sheet) for sheet in SHEETS.values()])


@get(
    "/print/sheets/{key:str}",
    sync_to_thread=False,
    responses=problems(*BEHIND_A_KEY, errors.NotFound, errors.InvalidPayload),
)
def read_layout(
    key: str,
    count: Annotated[int, Parameter(ge=0, le=LABELS_AT_ONCE)] = 0,
    start: Annotated[int, Parameter(ge=1)] = 1,
) -> LabelLayout:
    """One sheet, and the positions of `count` labels on it, from the label `start` on."""
    sheet = sheet_of(key)
    places = layout(sheet, count, start)
    return LabelLayout(
        struct_of(LabelSheet, sheet),
        places[-1].page if places else 0,
        [struct_of(LabelPosition, place) for place in places],
    )


router = Router(path="", route_handlers=[read_sheets, read_layout], tags=["print"])
