"""Reads cycle counts: which boxes are most worth counting, the counts of a shop, and one count with
its lines.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.kit.row_pages import Page, Paging, newest
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

# A sale explains a drop until the card is pulled and its place corrected.
_EXPLAINS: Final = timedelta(days=30)
_FACTS: Final = f"""
    WITH lying AS (
        SELECT l.box, l.card_id, sum(l.quantity) AS quantity
          FROM card_location l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
         WHERE l.seller_id = :seller AND {VISIBLE} GROUP BY l.box, l.card_id
    ), shelved AS (
        SELECT card_id, sum(quantity) AS quantity FROM lying GROUP BY card_id
    ), drifting AS (
        SELECT c.id, s.quantity - c.quantity AS pieces,
               CASE WHEN c.custom THEN c.listing_id ELSE c.marketplace_id END AS sku_id
          FROM shelved s JOIN card c ON c.seller_id = :seller AND c.id = s.card_id
         WHERE s.quantity > c.quantity
    ), sold AS (
        SELECT d.id, sum(coalesce(i.quantity, 1)) AS pieces
          FROM drifting d
          JOIN order_item i ON i.seller_id = :seller AND i.sku_id = d.sku_id
          JOIN orders o ON o.seller_id = :seller AND o.id = i.order_id
         WHERE o.status_group <> 'Cancelled' AND o.order_date >= :since GROUP BY d.id
    ), dropped AS (
        SELECT d.id, greatest(d.pieces - coalesce(sold.pieces, 0), 0) AS pieces
          FROM drifting d LEFT JOIN sold ON sold.id = d.id
    ), counted AS (
        SELECT box, max(ended_at) AS ended_at FROM shelf_count
         WHERE seller_id = :seller AND state = 'settled' AND slot IS NULL GROUP BY box
    )
    SELECT {BOX}, count(*), CAST(sum(l.quantity) AS bigint),
           CAST(coalesce(sum(coalesce(c.price, c.market, 0) * l.quantity), 0) * 10000 AS bigint),
           CAST(sum(least(coalesce(dropped.pieces, 0), l.quantity)) AS bigint), max(k.ended_at)
      FROM lying l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
      LEFT JOIN dropped ON dropped.id = l.card_id LEFT JOIN counted k ON k.box = l.box
      {NAMED}
     GROUP BY l.box, b.label
"""


async def suggested(
    session: AsyncSession,
    caller: Caller,
    now: datetime,
    most: int,
) -> SuggestedCounts:
    """Return the boxes that are most worth counting, the first of them first. The value of a box
    is a part of the listed value, so staff may not see it, either.
    """
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "since": (now - _EXPLAINS).date(),
    }
    found = await session.execute(text(_FACTS), values)
    boxes = [BoxFacts(*row) for row in found]
    return SuggestedCounts(suggestions(boxes, now, with_value=caller.sees_revenue)[:most])


async def read_one(session: AsyncSession, caller: Caller, count_id: int) -> ShelfCount:
    """Raises NotFound."""
    mine = select(ShelfCount).where(ShelfCount.seller_id == caller.seller_id)
    row = await session.scalar(mine.where(ShelfCount.id == count_id))
    if row is None:
        raise errors.NotFound(f"there is no count {count_id}")
    return row


async def history(
    session: AsyncSession,
    caller: Caller,
    before: int | None,
    box: Box | None,
) -> Page[ShelfCount]:
    """Return the newest counts, or those before the one that has the id `before`."""
    mine = select(ShelfCount).where(ShelfCount.seller_id == caller.seller_id)
    if box is not None:
        kept = await kept_box(session, caller.seller_id, box)
        mine = mine.where(ShelfCount.box == (kept.number if kept else 0))
    return await newest(session, mine, ShelfCount.id, before, limits.COUNTS_PER_PAGE)


_READ: Final = f"""
    SELECT c.id, c.marketplace_id, c.product_name, c.set_name, c.number, c.condition, l.slot,
           l.expected, l.seen, l.outcome, c.quantity,
           coalesce((SELECT CAST(sum(e.quantity) AS bigint) FROM card_location e
                      WHERE e.seller_id = :seller AND e.card_id = c.id), 0) AS shelved
      FROM shelf_count_line l JOIN card c ON c.seller_id = :seller AND c.id = l.card_id
     WHERE l.seller_id = :seller AND l.count_id = :count AND {VISIBLE}
     ORDER BY l.slot, c.product_name, c.id LIMIT :limit OFFSET :offset
"""


async def in_full(
    session: AsyncSession,
    caller: Caller,
    count_id: int,
    paging: Paging,
) -> CountInFull:
    """Return a count with a page of its lines in the order of the way. Raises NotFound."""
    row = await read_one(session, caller, count_id)
    values = {
        "seller": caller.seller_id,
        "member": caller.member_id,
        "count": count_id,
        **paging.values,
    }
    cards = [
        struct_of(CountLineShown, line, code=Place(box_of(row), line.slot).code)
        for line in await session.execute(text(_READ), values)
    ]
    return struct_of(CountInFull, row, cards=cards, page=paging.page, per_page=paging.per_page)
