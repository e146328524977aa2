"""The JSON structs of cycle counts, and the functions that fill them from rows. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import Page
from cardsync.platform.kit.struct_rows import Column, OfRow, struct_of
from cardsync.platform.shelf_place import Box
from cardsync.stock.shelving.models import CountState, ShelfCount


class SuggestedCount(msgspec.Struct, kw_only=True):
    """`dropped` counts the pieces that are gone from the marketplace without a sale. `value` and
    `score` are absent for staff who may not see revenue.
    """

    box: Box
    cards: int
    quantity: int
    value: str | UnsetType = UNSET
    dropped: int
    """Pieces that left the marketplace without a sale"""
    counted_at: datetime | None
    """When it was counted last; null: never"""
    score: str | UnsetType = UNSET
    """How much the box needs a count"""
    reasons: list[str]


class SuggestedCounts(msgspec.Struct):
    boxes: list[SuggestedCount]


class CountShown(msgspec.Struct):
    """`trust` is the share of the lines that were seen and correct; null before the end."""

    id: int
    box: Annotated[Box, OfRow(box_of)]
    slot: int | None
    state: CountState
    begun_by: str
    begun_at: datetime
    ended_at: datetime | None
    lines: int
    """The number of its lines"""
    correct: int
    wrong: int
    moved: int
    unseen: int
    trust: Annotated[float | None, OfRow(trust_of)]
    """The share of the lines that were seen and correct; null before the end"""


class CountLineShown(msgspec.Struct):
    """`drift`: more pieces are on all shelves together than are on hand; `unshelved_quantity` are
    on hand and on no shelf.
    """

    card_id: Annotated[int, Column("id")]
    marketplace_id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    slot: int
    code: str
    """The slot, as box-slot"""
    expected: int
    """The copies that the shelf should hold"""
    seen: int | None
    """The copies that were seen; null: nobody looked"""
    outcome: Annotated[str, Like(Literal["correct", "wrong", "moved", "unseen"])] | None
    """The finding of the count"""
    on_hand: Annotated[int, Column("quantity")]
    drift: Annotated[bool, OfRow(lambda line: line.shelved > line.quantity)]
    unshelved_quantity: Annotated[int, OfRow(lambda line: max(line.quantity - line.shelved, 0))]


class CountInFull(CountShown):
    cards: list[CountLineShown]
    """The cards that were counted"""
    page: int
    per_page: int


class CountHistory(msgspec.Struct):
    """`next_before` asks for the next page; null on the last one."""

    counts: list[CountShown]
    """The counts, newest first"""
    next_before: int | None
    """Where the next page begins; null on the last one"""


def box_of(row: ShelfCount) -> Box:
    return row.box_label or row.box


def trust_of(row: ShelfCount) -> float | None:
    looked = row.correct + row.wrong
    return round(row.correct / looked, 4) if looked else None


def count_history(page: Page[ShelfCount]) -> CountHistory:
    return CountHistory([struct_of(CountShown, row) for row in page.rows], page.next)
