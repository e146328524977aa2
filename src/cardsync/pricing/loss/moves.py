"""Keeps and reads the moves of prices that no member clicked, by card and within the last hour, day
and week.

Moves of the same five minutes share a row, so that a day has few rows a card however many writes it
has. A span is counted to the beginning of the five minutes in which it began.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.each_seller import all_sellers
from cardsync.database.copy import copy_chunks, frame_of, with_values
from cardsync.database.session import Database, run
from cardsync.pricing.loss.loss_limits import PAST, SIDES

_TOGETHER: Final = timedelta(minutes=5)
_SPANS: Final = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_SUMS: Final = ", ".join(
    f"coalesce(sum(m.{side}_moved) FILTER (WHERE m.began_at > :{span}), 0)::bigint"
    for span in _SPANS
    for side in SIDES
)
_PAST: Final = f"""
    SELECT m.card_id, CASE WHEN c.gone THEN 0 ELSE c.quantity END, {_SUMS}
      FROM automated_move m JOIN card c ON c.seller_id = :seller AND c.id = m.card_id
     WHERE m.seller_id = :seller AND m.began_at > :week
     GROUP BY m.card_id, c.gone, c.quantity
"""
_RECORD: Final = """
    INSERT INTO automated_move AS m (seller_id, card_id, began_at, today_moved, worst_moved)
    SELECT :seller, w.id, :began_at, w.today, w.worst
      FROM unnest(CAST(:ids AS bigint[]), CAST(:today AS bigint[]), CAST(:worst AS bigint[]))
           AS w (id, today, worst)
    ON CONFLICT (seller_id, card_id, began_at)
       DO UPDATE SET today_moved = m.today_moved + excluded.today_moved,
                     worst_moved = m.worst_moved + excluded.worst_moved
"""
_DROP: Final = "DELETE FROM automated_move WHERE seller_id = :seller AND began_at < :before"


async def past_moves(session: AsyncSession, seller_id: int, now: datetime) -> pl.DataFrame:
    """Return `limits.PAST` of every card that such writers moved within the week."""
    values = {"seller": seller_id}
    spans = {span: now - lasts - _TOGETHER for span, lasts in _SPANS.items()}
    data = await copy_chunks(session, await with_values(session, _PAST, values | spans))
    return await asyncio.to_thread(frame_of, data, PAST)


async def record(session: AsyncSession, seller_id: int, moved: pl.DataFrame, now: datetime) -> None:
    """Keep what a write without a click did; `moved` is summed."""
    kept = moved.select("id", *(pl.col(f"{side}_step").alias(side) for side in SIDES))
    steps = kept.filter(pl.any_horizontal(pl.col(side) != 0 for side in SIDES))
    if steps.is_empty():
        return
    values: dict[str, Any] = {
        "seller": seller_id,
        "began_at": _began(now),
        "ids": steps["id"].to_list(),
        **steps.select(SIDES).to_dict(as_series=False),
    }
    await run(session, _RECORD, values)


def _began(now: datetime) -> datetime:
    seconds = int(_TOGETHER.total_seconds())
    return datetime.fromtimestamp(int(now.timestamp()) // seconds * seconds, UTC)


async def drop_old(database: Database, now: datetime) -> int:
    """Delete the moves that no span counts any more; return how many."""
    dropped = 0
    for seller_id in await all_sellers(database):
        values = {"seller": seller_id, "before": now - _SPANS["week"] - _TOGETHER}
        async with database.tenant(seller_id) as session:
            dropped += await run(session, _DROP, values)
    return dropped
