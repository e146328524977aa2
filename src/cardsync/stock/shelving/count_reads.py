"""Reads cycle counts: suggestions of boxes to count, the counts of a shop, and one count with its
lines.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.database.read_sources import Source, each_of, found, newest, row_as
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.row_pages import Page, Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.shelf_place import BOX, NAMED, Box, Place
from cardsync.stock.cards.visible import VISIBLE
from cardsync.stock.shelving.box_numbers import kept_box
from cardsync.stock.shelving.count_schemas import (
    CountInFull,
    CountLineShown,
    SuggestedCounts,
    box_of,
)
from cardsync.stock.shelving.count_scores import BoxFacts, suggestions
from cardsync.stock.shelving.models import ShelfCount

# Sales of this time explain missing copies: the sold copies may still be recorded at their places.
_EXPLAINS: Final = timedelta(days=30)
_FACTS: Final = queries_of(__package__)["facts"].format(visible=VISIBLE, box=BOX, named=NAMED)


async def suggested(
    source: Source,
    caller: Caller,
    now: datetime,
    most: int,
) -> SuggestedCounts:
    """Return up to `most` boxes to count, the most urgent first. Only callers who see revenue get
    the value of a box.
    """
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "since": (now - _EXPLAINS).date(),
    }
    boxes = [BoxFacts(*row) for row in await found(source, _FACTS, values)]
    return SuggestedCounts(suggestions(boxes, now, with_value=caller.sees_revenue)[:most])


async def read_one(source: Source, caller: Caller, count_id: int) -> ShelfCount:
    """Return a count. Raises NotFound."""
    row = await row_as(source, ShelfCount, caller.seller_id, "AND id = :id", id=count_id)
    if row is None:
        raise errors.NotFound(f"there is no count {count_id}")
    return row


async def history(
    source: Source, caller: Caller, before: int | None, box: Box | None
) -> Page[ShelfCount]:
    """Return a page of counts, newest first; with `before`, the counts before the count with that
    id.
    """
    most, of_box, number = limits.COUNTS_PER_PAGE, "", 0
    if box is not None:
        kept = await kept_box(source, caller.seller_id, box)
        of_box, number = "AND box = :box", kept.number if kept else 0
    return await newest(source, ShelfCount, caller.seller_id, before, most, of_box, box=number)


_READ: Final = f"""
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.number, c.condition, l.slot,
           l.expected, l.seen, l.outcome, c.quantity,
           coalesce((SELECT CAST(sum(e.quantity) AS bigint) FROM card_location e
                      WHERE e.seller_id = :seller AND e.card_id = c.id), 0) AS shelved
      FROM shelf_count_line l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
     WHERE l.seller_id = :seller AND l.count_id = :count AND {VISIBLE}
     ORDER BY l.slot, c.product_name, c.id LIMIT :limit OFFSET :offset
"""


async def in_full(source: Source, caller: Caller, count_id: int, paging: Paging) -> CountInFull:
    """Return a count with a page of its lines, in the order of slots. Raises NotFound."""
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "count": count_id,
        **paging.values,
    }
    row, [lines] = await each_of(
        source,
        read_one(source, caller, count_id),
        in_one_message(source, [_READ], values),
    )
    cards = [
        struct_of(CountLineShown, line, code=Place(box_of(row), line.slot).code) for line in lines
    ]
    return struct_of(CountInFull, row, cards=cards, page=paging.page, per_page=paging.per_page)
