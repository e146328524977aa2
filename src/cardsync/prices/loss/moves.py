"""Stores and reads the price moves that no member clicked, for each card within the last hour, day
and week.

Moves of a card in the same five minutes share a row, so that many writes in a day make few rows. A
span includes the whole five minutes in which it began.

A move counts while its source is in effect: a promotion until it ends or is disabled, a rollback or
a new listing until it fails or the next run prices the card. Rollbacks and new listings set targets
that the rules do not produce, so they do not count as moves of rules.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import polars as pl
import polars.selectors as cs
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.each_seller import all_sellers
from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database, run
from cardsync.prices.loss.loss_limits import PAST, SIDES

_TOGETHER: Final = timedelta(minutes=5)
_SPANS: Final = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
Counted = Literal["rules", "targets"]
# A run by the rules replaces the targets that rollbacks and new listings set.
_RUN_SINCE: Final = """
    EXISTS (SELECT FROM price_run r
             WHERE r.seller_id = :seller AND r.state = 'completed'
               AND r.trigger NOT IN ('recommendation', 'review') AND r.started_at > {moment})
"""
_STANDS: Final = queries_of(__package__)["still_counts"].format(
    run_since_rollback=_RUN_SINCE.format(moment="b.requested_at"),
    run_since_listing=_RUN_SINCE.format(moment="q.published_at"),
)
_SUMS: Final = ", ".join(
    f"coalesce(sum(m.{side}_moved) FILTER (WHERE m.began_at > :{span}), 0)::bigint"
    for span in _SPANS
    for side in SIDES
)
_PAST: Final = f"""
    SELECT m.card_id, CASE WHEN c.gone THEN 0 ELSE c.quantity END, {_SUMS}
      FROM automated_move m JOIN card c ON c.seller_id = :seller AND c.id = m.card_id
     WHERE m.seller_id = :seller AND m.began_at > :week AND {_STANDS}
     GROUP BY m.card_id, c.gone, c.quantity
"""
_RECORD: Final = """
    INSERT INTO automated_move AS m
           (seller_id, card_id, began_at, source, today_moved, worst_moved)
    SELECT :seller, w.id, :began_at, w.source, w.today, w.worst
      FROM unnest(CAST(:ids AS bigint[]), CAST(:today AS bigint[]), CAST(:worst AS bigint[]),
                  CAST(:sources AS text[])) AS w (id, today, worst, source)
    ON CONFLICT (seller_id, card_id, began_at, source)
       DO UPDATE SET today_moved = m.today_moved + excluded.today_moved,
                     worst_moved = m.worst_moved + excluded.worst_moved
"""
_ANY: Final = """
    SELECT EXISTS (SELECT FROM automated_move WHERE seller_id = :seller AND began_at > :week)
"""
# A member's opposite change reduces each of the card's moves by the same share.
_TAKE_BACK: Final = queries_of(__package__)["take_back"].format(
    **{
        side: f"CASE WHEN {side} * all_{side} < 0"
        f" THEN 1 - least(1, abs({side}::numeric / all_{side})) ELSE 1 END"
        for side in SIDES
    }
)
_DROP: Final = "DELETE FROM automated_move WHERE seller_id = :seller AND began_at < :before"


async def past_moves(
    source: Source, seller_id: int, now: datetime, counted: Counted = "rules"
) -> pl.DataFrame:
    """Return the columns PAST of every card that moved within the week without a member's click.
    With `counted` "targets", rollbacks and new listings count, too.
    """
    values = {"seller": seller_id, "now": now, "targets": counted == "targets"}
    spans = {span: now - lasts - _TOGETHER for span, lasts in _SPANS.items()}
    return await read_rows(source, _PAST, PAST, values | spans)


async def record(
    session: AsyncSession, seller_id: int, moved: pl.DataFrame, now: datetime, source: str = ""
) -> None:
    """Store the moves of a write that no member clicked; `moved` is a result of `summed`. The moves
    count while `source` is in effect; a column `source` names a source for each card.
    """
    if "source" not in moved.columns:
        moved = moved.with_columns(source=pl.lit(source))
    if values := _steps(seller_id, moved):
        await run(session, _RECORD, values | {"began_at": _began(now)})


async def take_back(session: AsyncSession, seller_id: int, moved: pl.DataFrame) -> None:
    """Reduce the stored moves by a member's opposite moves; `moved` is a result of `summed`."""
    if values := _steps(seller_id, moved):
        await run(session, _TAKE_BACK, values)


async def has_moves(session: AsyncSession, seller_id: int, now: datetime) -> bool:
    """Return whether a stored move exists that a member's change could reduce."""
    values = {"seller": seller_id, "week": now - _SPANS["week"] - _TOGETHER}
    return bool(await session.scalar(text(_ANY), values))


def _steps(seller_id: int, moved: pl.DataFrame) -> dict[str, object]:
    kept = moved.select(
        "id",
        cs.by_name("source", require_all=False),
        *(pl.col(f"{side}_step").alias(side) for side in SIDES),
    )
    steps = kept.filter(pl.any_horizontal(pl.col(side) != 0 for side in SIDES))
    if steps.is_empty():
        return {}
    columns = steps.select(SIDES).to_dict(as_series=False)
    if "source" in steps.columns:
        columns["sources"] = steps["source"].to_list()
    return {"seller": seller_id, "ids": steps["id"].to_list(), **columns}


def _began(now: datetime) -> datetime:
    seconds = int(_TOGETHER.total_seconds())
    return datetime.fromtimestamp(int(now.timestamp()) // seconds * seconds, UTC)


async def drop_old(database: Database, now: datetime) -> int:
    """Delete the moves that are older than a week; return how many."""
    dropped = 0
    for seller_id in await all_sellers(database):
        values = {"seller": seller_id, "before": now - _SPANS["week"] - _TOGETHER}
        async with database.tenant(seller_id) as session:
            dropped += await run(session, _DROP, values)
    return dropped
