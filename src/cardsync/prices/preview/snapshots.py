"""Reads a seller's stored snapshots of a span, one at a time. A snapshot holds the changes of one
inventory upload.

The module gathers the observations of the span once, in the order of time, into a temporary table
of this transaction. Each snapshot reads its own part of the table, and the same query finds the
rule and the sale that select each card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.catalog.market.of_cards import KEYS, NO_MARKET, Market
from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.inputs.cards_to_price import Choices, first_of, guards_of, integer_frame
from cardsync.prices.inputs.price_history import begins
from cardsync.stock.cards.models import Card

_AMOUNTS: Final = ("price", "market", "low", "low_with_shipping", "direct_low")
_PRICES: Final = (*_AMOUNTS, "day_start_price", "week_start_price")
_VALUES: Final = ("observed_at", "quantity", *_AMOUNTS)


def _list(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(prefix + name for name in names)


# The table holds each card's newest observation up to the first snapshot, with its prices when the
# first periods began, and then every later observation. `seen` is true if an upload had the
# observation. Otherwise an import of prices moved the card, and the observation's time is no time
# of market data.
_GATHER: Final = queries_of(__package__)["gather"].format(
    began=_list(_VALUES, "began."),
    kept=_list(_VALUES, "k."),
    of_other=_list(_VALUES, "o."),
    values=_list(_VALUES),
)
_BEFORE: Final = """coalesce(
        (SELECT o.price FROM price_observation o
          WHERE o.seller_id = :seller AND o.card_id = k.id AND o.observed_at < :{name}
            AND o.price IS NOT NULL ORDER BY o.observed_at DESC LIMIT 1),
        CASE WHEN k.observed_at < :{name} THEN k.price END)"""
_INDEX: Final = ("CREATE INDEX ON gathered (observed_at)", "ANALYZE gathered")

_OF_THEN: Final = frozenset({*_VALUES, "gone", "target_price"})
_OF_NOW: Final = [column.name for column in Card.__table__.columns if column.name not in _OF_THEN]
# The source has the cards in the form that searches read, with their values at that time. The
# target prices of that time are not stored and count as absent.
_SNAPSHOT: Final = queries_of(__package__)["snapshot"].format(
    prices=_list([f"coalesce((c.{name} * 10000)::bigint, 0) AS {name}" for name in _PRICES]),
    of_now=_list(_OF_NOW, "k."),
    values=_list(_VALUES, "g."),
)
_COLUMNS: Final = (
    "id",
    "marketplace_id",
    "rule_id",
    "sale_id",
    "guards",
    "quantity",
    "custom",
    *_PRICES,
    "observed_at",
    "seen",
    "line",
)
# An upload covered the product lines that occurred in it. Older reports do not name these lines:
# such an upload counts for its own product line, or for all lines if it had none.
_UPLOADS: Final = """
    FROM upload u LEFT JOIN LATERAL jsonb_array_elements_text(coalesce(
         u.report -> 'product_lines', to_jsonb(array_remove(ARRAY[u.product_line], NULL)))
         ) AS lines (covered) ON true
   WHERE u.seller_id = :seller AND u.stream = 'inventory' AND u.state = 'done'
"""
_EVERY: Final = "u.product_line IS NULL AND u.report -> 'product_lines' IS NULL"
_STORED: Final = f"""
    SELECT u.exported_at, bool_or({_EVERY}) AS every, array_remove(array_agg(lines.covered), NULL)
    {_UPLOADS} AND u.exported_at >= :since AND u.exported_at <= :until
     GROUP BY u.exported_at ORDER BY u.exported_at LIMIT :most
"""
_COVERED: Final = f"""
    SELECT max(u.exported_at), {_EVERY} AS every, array_remove(ARRAY[lines.covered], NULL)
    {_UPLOADS} AND u.exported_at < :first GROUP BY every, lines.covered
"""
_SOLD: Final = f"""
    SELECT i.sku_id, (extract(epoch FROM {PLACED_AT}) * 1000000)::bigint,
           coalesce(i.quantity, 1), (i.unit_price * 10000)::bigint
      FROM order_item i JOIN orders ON orders.seller_id = i.seller_id AND orders.id = i.order_id
     WHERE i.seller_id = :seller AND i.sku_id IS NOT NULL AND orders.status_group <> 'Cancelled'
       AND {PLACED_AT} >= :since AND {PLACED_AT} <= :until ORDER BY 2, i.id
"""
_SOLD_SCHEMA: Final[dict[str, pl.DataType | type[pl.DataType]]] = dict.fromkeys(
    ("marketplace_id", "sold_at", "quantity", "sold_price"),
    pl.Int64,
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The snapshot that an upload made: the time of the file's export, and the product lines that
    it covered; None means all lines.
    """

    at: datetime
    lines: Sequence[str] | None


async def stored(
    session: AsyncSession,
    seller_id: int,
    since: datetime,
    until: datetime,
    most: int,
) -> list[Snapshot]:
    """Return the applied uploads of the span, oldest first, and at most `most` of them."""
    bound = {"seller": seller_id, "since": since, "until": until, "most": most}
    rows = await session.execute(text(_STORED), bound)
    return [Snapshot(at, None if every else covered) for at, every, covered in rows]


async def covered_before(
    session: AsyncSession,
    seller_id: int,
    first: datetime,
) -> list[Snapshot]:
    """Return for each product line the newest upload before the time `first` that covered
    the line.
    """
    rows = await session.execute(text(_COVERED), {"seller": seller_id, "first": first})
    return [Snapshot(at, None if every else covered) for at, every, covered in rows]


async def gather(session: AsyncSession, account: Account, first: Run, last: datetime) -> None:
    """Gather the rows that `changed` reads, from the first snapshot (the run's moment) up to the
    last.
    """
    starts = begins(first, account.time_zone)
    columns = {
        period: _BEFORE.format(name=period) if period in starts else "NULL::numeric"
        for period in ("day", "week")
    }
    moments = {
        "first": first.now,
        "last": last,
        "day": starts.get("day"),
        "week": starts.get("week"),
    }
    bound = {"seller": account.seller_id, **moments}
    for statement in (_GATHER.format(**columns), *_INDEX):
        await run(session, statement, bound)


async def changed(
    session: AsyncSession,
    account: Account,
    chosen: Choices,
    after: datetime | None,
    market: Market = NO_MARKET,
) -> pl.DataFrame:
    """Return the cards with changes that were observed after the time `after` and up to the run's
    time; without `after`, return every card of the run's time. If `market` has columns, the cards
    have its KEYS.
    """
    bound: dict[str, object] = {
        "seller": account.seller_id,
        "lines": account.product_lines,
        "now": chosen.run.now,
        "after": after or "-infinity",
    }
    if not market.is_empty:
        bound |= market.values
    sql = _SNAPSHOT.format(
        rule=first_of(chosen.rules, bound, "r"),
        sale=first_of(chosen.sales, bound, "s"),
        guards=guards_of(chosen, bound),
        market="" if market.is_empty else f", {market.columns}",
        joins="" if market.is_empty else market.joins,
    )
    frame = await integer_frame(
        session,
        _COLUMNS if market.is_empty else (*_COLUMNS, *KEYS),
        sql,
        bound,
        ("rule_id", "sale_id", *_PRICES),
    )
    flags = (pl.col(name).cast(pl.Boolean) for name in ("custom", "seen"))
    return frame.with_columns(*flags, pl.col("observed_at").cast(TIME))


async def sold_lines(
    session: AsyncSession,
    seller_id: int,
    since: datetime,
    until: datetime,
) -> pl.DataFrame:
    """Return (marketplace_id, sold_at, quantity, sold_price) of the sales in the span, by time."""
    span = {"seller": seller_id, "since": since, "until": until}
    frame = await read_rows(session, _SOLD, _SOLD_SCHEMA, span)
    return frame.with_columns(pl.col("sold_at").cast(TIME))
