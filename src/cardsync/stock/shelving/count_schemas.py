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
    """A box to count. `dropped` is the number of copies that left the marketplace without a sale.
    `value` and `score` are absent for staff who may not see revenue.
    """

    box: Box
    cards: int
    quantity: int
    value: str | UnsetType = UNSET
    dropped: int
    """Copies that left the marketplace without a sale"""
    counted_at: datetime | None
    """When the box was last counted; null if it never was"""
    score: str | UnsetType = UNSET
    """The urgency of a count, the higher the more urgent"""
    reasons: list[str]


class SuggestedCounts(msgspec.Struct):
    boxes: list[SuggestedCount]


class CountShown(msgspec.Struct):
    """A count. `trust` is the share of correct lines among the counted lines; null until the count
    ends.
    """

    id: int
    box: Annotated[Box, OfRow(box_of)]
    slot: int | None
    state: CountState
    begun_by: str
    begun_at: datetime
    ended_at: datetime | None
    lines: int
    """The number of lines: cards in slots"""
    correct: int
    wrong: int
    moved: int
    unseen: int
    trust: Annotated[float | None, OfRow(trust_of)]
    """The share of correct lines among the counted lines; null until the count ends"""


class CountLineShown(msgspec.Struct):
    """A card in a slot of a count. `drift` is true if all shelves together have more copies of the
    card than the shop has on hand; `unshelved_quantity` copies are on hand, but on no shelf.
    """

    card_id: Annotated[int, Column("id")]
    marketplace_id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    slot: int
    code: str
    """The box and the slot, joined by a hyphen"""
    expected: int
    """The copies that were recorded in the slot when the count began"""
    seen: int | None
    """The counted copies; null if nobody counted the card"""
    outcome: Annotated[str, Like(Literal["correct", "wrong", "moved", "unseen"])] | None
    """The result for this card; null until the count ends"""
    on_hand: Annotated[int, Column("quantity")]
    drift: Annotated[bool, OfRow(lambda line: line.shelved > line.quantity)]
    unshelved_quantity: Annotated[int, OfRow(lambda line: max(line.quantity - line.shelved, 0))]


class CountInFull(CountShown):
    cards: list[CountLineShown]
    """The cards that were counted"""
    page: int
    per_page: int


class CountHistory(msgspec.Struct):
    """A page of counts. `next_before` is the `before` of the next page; null on the last page."""

    counts: list[CountShown]
    """The counts, newest first"""
    next_before: int | None
    """The `before` of the next page; null on the last page"""


def box_of(row: ShelfCount) -> Box:
    return row.box_label or row.box


def trust_of(row: ShelfCount) -> float | None:
    looked = row.correct + row.wrong
    return round(row.correct / looked, 4) if looked else None


def count_history(page: Page[ShelfCount]) -> CountHistory:
    return CountHistory([struct_of(CountShown, row) for row in page.rows], page.next)
