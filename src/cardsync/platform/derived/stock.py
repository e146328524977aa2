"""Writes the figures of a seller's stock into `listed_value` and `shop_figures` after each import
and pricing run. The table of cards is analyzed first if it has grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database
from cardsync.platform.derived.dropped_cards import DROPPED
from cardsync.platform.derived.kept_figures import PRICING_ENDS, Figure, KeptFigure, Refresh
from cardsync.platform.value_types import Values

PERIODS: Final = (7, 30)
MOVERS: Final = 20
# The largest moves over weeks change little within an hour, and take the longest to find.
MOVERS_EVERY: Final = timedelta(hours=1)

_ON_SALE = "c.seller_id = :seller AND NOT c.gone AND c.quantity > 0 AND c.contribution IS NULL"
_TODAY = """
    SELECT (CAST(:now AS timestamptz) AT TIME ZONE a.time_zone)::date
      FROM account a WHERE a.seller_id = :seller
"""
_STOCK = f"""
    SELECT c.product_line, count(*) AS cards, sum(c.quantity) AS copies,
           coalesce(sum(c.price * c.quantity), 0) AS listed,
           coalesce(sum(coalesce(c.market, c.price) * c.quantity), 0) AS market,
           count(*) FILTER (WHERE c.target_price IS NOT NULL
               AND (c.target_price IS DISTINCT FROM c.price OR c.my_store_priced)) AS asked,
           coalesce(sum((c.target_price - coalesce(c.price, 0)) * c.quantity), 0) AS asked_value
      FROM card c WHERE {_ON_SALE} GROUP BY c.product_line
"""
_LINES = "SELECT DISTINCT product_line FROM listed_value WHERE seller_id = :seller"
_LIST = """
    INSERT INTO listed_value AS kept
           (seller_id, product_line, day, cards, copies, listed, market, seen_at)
    VALUES (:seller, :product_line, :day, :cards, :copies, :listed, :market, :now)
    ON CONFLICT (seller_id, product_line, day) DO UPDATE
       SET cards = excluded.cards, copies = excluded.copies, listed = excluded.listed,
           market = excluded.market, seen_at = excluded.seen_at
"""
_HELD = f"""
    SELECT count(*) AS held, coalesce(sum(c.price * c.quantity), 0) AS held_value
      FROM price_decision h JOIN card c ON c.seller_id = :seller
       AND c.marketplace_id = h.marketplace_id
     WHERE h.seller_id = :seller AND h.kind = 'cap' AND h.part = 1 AND {_ON_SALE}
"""
_DROPPED = f"""
    SELECT count(*) AS dropped, coalesce(sum(d.price * d.quantity), 0) AS dropped_value
      FROM ({DROPPED}) d
"""
_RUN = """
    SELECT r.id FROM price_run r WHERE r.seller_id = :seller AND r.state = 'completed'
       AND r.trigger NOT IN ('recommendation', 'review')
     ORDER BY r.id DESC LIMIT 1
"""
_MOVES = """
    SELECT coalesce(max(CAST(r.summary->>'up' AS integer)), 0) AS rises,
           coalesce(max(CAST(r.summary->>'up_value' AS numeric)), 0) / 10000 AS rises_value,
           coalesce(max(CAST(r.summary->>'down' AS integer)), 0) AS falls,
           coalesce(max(CAST(r.summary->>'down_value' AS numeric)), 0) / 10000 AS falls_value
      FROM price_run r WHERE r.seller_id = :seller AND r.id = :run_id
"""
# The price at the beginning of a period is that of the newest observation before it. A card without
# an observation in the period still has that price.
_MOVED = queries_of(__package__)["moved"].format(on_sale=_ON_SALE)
_MOVERS_AT = "SELECT movers_at FROM shop_figures WHERE seller_id = :seller"
_COUNTED = (
    "held", "held_value", "dropped", "dropped_value", "asked", "asked_value", "run_id",
    "rises", "rises_value", "falls", "falls_value",
)  # fmt: skip
_SINCE = ("held", "dropped", "asked")
_SET = ", ".join(
    [
        *(f"{name} = excluded.{name}" for name in ("seen_at", *_COUNTED)),
        *(
            f"{name}_since = CASE WHEN excluded.{name} = 0 THEN NULL"
            f" ELSE coalesce(kept.{name}_since, excluded.seen_at) END"
            for name in _SINCE
        ),
        "movers = coalesce(excluded.movers, kept.movers)",
        "movers_at = coalesce(excluded.movers_at, kept.movers_at)",
    ]
)
_KEEP = f"""
    INSERT INTO shop_figures AS kept
           (seller_id, seen_at, {", ".join(_COUNTED)},
            {", ".join(f"{name}_since" for name in _SINCE)}, movers, movers_at)
    VALUES (:seller, :now, {", ".join(f":{name}" for name in _COUNTED)},
            {", ".join(f"CASE WHEN :{name} > 0 THEN CAST(:now AS timestamptz) END" for name in _SINCE)},
            CAST(:movers AS jsonb), :movers_at)
    ON CONFLICT (seller_id) DO UPDATE SET {_SET}
"""


async def _analyzed(database: Database, seller_id: int, now: datetime) -> None:
    """Analyze the table of cards if an import has enlarged it or the statistics lack the seller, in
    a transaction of its own. Until autovacuum analyzes it, the planner expects few cards of a new
    shop (ADR 56).
    """
    async with database.tenant(seller_id) as session:
        await session.execute(text("SELECT analyze_grown_cards(:seller)"), {"seller": seller_id})


async def _refresh(session: AsyncSession, asked: Refresh[None]) -> bool:
    """Read the stock once and store its figures, as of the end of the import or run."""
    now = asked.marked_at
    values: dict[str, object] = {
        "seller": asked.seller_id,
        "now": now,
    }
    values |= await _listed(session, values)
    for statement in (_HELD, _DROPPED):
        values |= await _one(session, statement, values)
    values["run_id"] = await session.scalar(text(_RUN), values)
    values |= await _one(session, _MOVES, values)
    values |= await _movers(session, values)
    await session.execute(text(_KEEP), values)
    return True


STOCK = KeptFigure[None](
    Figure.STOCK,
    tables=("listed_value", "shop_figures"),
    source="cards with their targets, held prices and history, and the last pricing run",
    marked_by=PRICING_ENDS,
    meanwhile="Today shows the figures of the last refresh with their time",
    refresh=_refresh,
    read=_analyzed,
)


async def _one(
    session: AsyncSession,
    statement: str,
    values: dict[str, object],
) -> dict[str, object]:
    row = (await session.execute(text(statement), values)).one()
    return dict(row._mapping)


async def _listed(session: AsyncSession, values: dict[str, object]) -> dict[str, object]:
    """Store the listed value of each product line, zero without stock; return the sums of changed
    targets.
    """
    day = await session.scalar(text(_TODAY), values)
    stock = (await session.execute(text(_STOCK), values)).all()
    known = await session.scalars(text(_LINES), values)
    nothing = {"cards": 0, "copies": 0, "listed": 0, "market": 0}
    lines = dict.fromkeys(known, nothing) | {
        row.product_line: {name: getattr(row, name) for name in nothing} for row in stock
    }
    rows = [
        {"seller": values["seller"], "now": values["now"], "day": day, "product_line": line}
        | figures
        for line, figures in sorted(lines.items())
    ]
    if rows:
        await session.execute(text(_LIST), rows)
    return {
        "asked": sum(row.asked for row in stock),
        "asked_value": sum(row.asked_value for row in stock),
    }


async def _movers(session: AsyncSession, values: Values) -> dict[str, object]:
    """Find the cards that moved most in each period, unless they were found within the last hour."""
    now: datetime = values["now"]
    found_at: datetime | None = await session.scalar(text(_MOVERS_AT), values)
    if found_at is not None and found_at > now - MOVERS_EVERY:
        return {"movers": None, "movers_at": None}
    movers: dict[str, Sequence[Sequence[int]]] = {}
    for days in PERIODS:
        period = {"seller": values["seller"], "since": now - timedelta(days=days), "most": MOVERS}
        found = await session.execute(text(_MOVED), period)
        movers[str(days)] = [list(row) for row in found]
    return {"movers": orjson.dumps(movers).decode(), "movers_at": now}
