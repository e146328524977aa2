"""Reads the history of the seller's cards that a run needs, as frames by card id.

The price at the beginning of a period is read only for cards that were observed since then and had
other values before: every other card began the period with its current price. History that no rule
of the run needs is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from cardsync.platform.database.copy import read_rows
from cardsync.platform.database.marketplace_time import PLACED_AT
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.transaction_settings import joined_as_planned, joined_by_hash
from cardsync.prices.engine.periods import day_start, week_start
from cardsync.prices.engine.rules import CapPeriod
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.inputs.sampled_cards import Sample

# The newest price stored before the period began, or the first price of a card that was created
# later.
_BEGAN: Final = """
    coalesce(
        (SELECT o.price FROM price_observation o WHERE o.seller_id = {seller_id}
          AND o.card_id = c.id AND o.observed_at < '{moment}'
            AND o.price IS NOT NULL ORDER BY o.observed_at DESC LIMIT 1),
        first.price)"""
# The limit makes PostgreSQL look each card up. A join could read all of a new shop's history for
# each card, as long as the statistics do not include it.
_STARTS: Final = """
    SELECT c.id, ({day} * 10000)::bigint, ({week} * 10000)::bigint
      FROM card c CROSS JOIN LATERAL (
           SELECT o.price FROM price_observation o WHERE o.seller_id = {seller_id}
              AND o.card_id = c.id AND o.price IS NOT NULL ORDER BY o.observed_at LIMIT 1) AS first
     WHERE c.seller_id = {seller_id} AND c.observed_at >= '{since}' AND {only}
"""
# A card is listed since its first observation after it was last out of stock.
_LISTED: Final = queries_of(__package__)["listed_before"]
_SOLD: Final = """
      LEFT JOIN (
    SELECT i.sku_id, max({placed_at}) AS at
      FROM order_item i JOIN orders ON orders.seller_id = i.seller_id AND orders.id = i.order_id
     WHERE i.seller_id = {seller_id} AND i.sku_id IS NOT NULL AND orders.status_group <> 'Cancelled'
       AND {placed} GROUP BY i.sku_id) s ON s.sku_id = c.marketplace_id"""
# A part of the cards reads only its own sales. Without a join, PostgreSQL looks up each card and
# each of its orders, whatever the statistics.
_SOLD_OF_CARD: Final = """
    (SELECT max((SELECT {placed_at} FROM orders
                  WHERE orders.seller_id = {seller_id} AND orders.id = i.order_id
                    AND orders.status_group <> 'Cancelled'))
       FROM order_item i WHERE i.seller_id = {seller_id} AND i.sku_id = c.marketplace_id)"""
_STALE: Final = """
    SELECT c.id, {listed}, {sold}, {moved}, coalesce((c.market * 10000)::bigint, 0)
      FROM card c LEFT JOIN ({past}) l ON l.card_id = c.id {sales}
     WHERE c.seller_id = {seller_id} AND {only}
"""


def begins(run: Run, zone: str) -> dict[CapPeriod, datetime]:
    """Return the beginnings of the cap periods that the run needs."""
    starts: dict[CapPeriod, datetime] = {
        "day": day_start(run.now, zone),
        "week": week_start(run.now, zone),
    }
    return {period: start for period, start in starts.items() if period in run.periods}


async def period_starts(
    session: Source,
    seller_id: int,
    run: Run,
    zone: str,
    card_ids: Sequence[int] | None,
) -> pl.DataFrame:
    """Return (id, day_start_price, week_start_price) of the cards that were observed again within a
    cap period and had a price before.
    """
    schema = {
        "id": pl.Int64,
        "day_start_price": pl.Int64,
        "week_start_price": pl.Int64,
    }
    asked = begins(run, zone)
    if not asked:
        return pl.DataFrame(schema=schema)
    columns = {
        period: _BEGAN.format(seller_id=int(seller_id), moment=_literal(at))
        for period, at in asked.items()
    }
    sql = _STARTS.format(
        seller_id=int(seller_id),
        since=_literal(min(asked.values())),
        only=_only(card_ids),
        day=columns.get("day", "NULL::numeric"),
        week=columns.get("week", "NULL::numeric"),
    )
    return await read_rows(session, sql, schema, few=are_few(card_ids))


async def unsold(
    session: Source,
    seller_id: int,
    run: Run,
    card_ids: Sequence[int] | None,
    until: datetime | None = None,
) -> pl.DataFrame | None:
    """Return (id, listed_since, last_sold_at, last_moved_at, market_before) of every card, or None
    if no rule of the run has a stale reduction.

    With `until`, only the history up to that time is read, also for cards that are out of stock
    now.
    """
    if not run.stale:
        return None
    epoch = "(extract(epoch FROM {}) * 1000000)::bigint"
    then = None if until is None else f"<= '{_literal(until)}'"
    known = None if then is None else f"observed_at {then}"
    only = "true" if known else _only(card_ids)
    sold, sales = "s.at", _SOLD
    if then is None and _are_part(card_ids):
        sold, sales = _SOLD_OF_CARD.format(seller_id=int(seller_id), placed_at=PLACED_AT), ""
    sql = _STALE.format(
        seller_id=int(seller_id),
        listed=epoch.format("coalesce(l.since, c.observed_at)"),
        sold=epoch.format(sold),
        moved=epoch.format("l.moved"),
        past=_LISTED.format(
            seller_id=int(seller_id),
            newest=known or only,
            observed=known or ("true" if card_ids is None else among("card_id", card_ids)),
        ),
        only=only,
        sales=sales.format(
            seller_id=int(seller_id),
            placed_at=PLACED_AT,
            placed=f"{PLACED_AT} {then}" if then else "true",
        ),
    )
    times = ("listed_since", "last_sold_at", "last_moved_at")
    schema = {"id": pl.Int64, **dict.fromkeys(times, pl.Int64), "market_before": pl.Int64}
    few = are_few(card_ids)
    settings = None if few else (joined_by_hash(), joined_as_planned())
    frame = await read_rows(session, sql, schema, few=few, around=settings)
    return frame.with_columns(pl.col(name).cast(TIME) for name in times)


@dataclass(frozen=True)
class Past:
    """The history of a seller's cards, by card id."""

    begins: dict[CapPeriod, datetime]
    starts: pl.DataFrame
    unsold: pl.DataFrame | None

    def columns(self, rows: pl.DataFrame, observed_at: datetime) -> dict[str, pl.Series]:
        """Return the engine's inputs for rows with `id`, `price_old` and `market`, which are an
        upload's rows joined to their stored cards.
        """
        found: dict[str, pl.Series] = {}
        ids = rows.select("id")
        known = (
            ids.join(self.starts, on="id", how="left", maintain_order="left")
            if self.starts.height
            else None
        )
        for period, begun in self.begins.items():
            name = f"{period}_start_price"
            if observed_at < begun:
                continue  # the file is from before the period: its prices are the first
            found[name] = rows["price_old"]
            if known is not None:
                found[name] = known.select(pl.coalesce(name, rows["price_old"])).to_series()
        if self.unsold is None:
            return found
        known = ids.join(self.unsold, on="id", how="left", maintain_order="left").with_columns(
            rows["market"]
        )
        before = pl.col("market_before")
        now = pl.col("market")
        moves = (before > 0) & (now > 0) & ((now - before).abs() * 20 >= before)
        known = known.with_columns(
            listed_since=pl.col("listed_since").fill_null(pl.lit(observed_at, TIME)),
            last_moved_at=pl.when(moves).then(pl.lit(observed_at, TIME)).otherwise("last_moved_at"),
        )
        return found | {
            name: known[name] for name in ("listed_since", "last_sold_at", "last_moved_at")
        }


async def past_of(
    session: Source,
    seller_id: int,
    run: Run,
    zone: str,
    card_ids: Sequence[int] | None = None,
) -> Past:
    """Read the history of every card, or of the cards `card_ids`, a list or a range of ids."""
    starts, unsold_since = await each_of(
        session,
        period_starts(session, seller_id, run, zone, card_ids),
        unsold(session, seller_id, run, card_ids),
    )
    return Past(begins(run, zone), starts, unsold_since)


def are_few(card_ids: Sequence[int] | None) -> bool:
    """Return whether the ids are a list of cards."""
    return card_ids is not None and not isinstance(card_ids, range | Sample)


def _are_part(card_ids: Sequence[int] | None) -> bool:
    """Return whether the ids are a list or a sample of cards."""
    return card_ids is not None and not isinstance(card_ids, range)


def _only(card_ids: Sequence[int] | None) -> str:
    return "NOT c.gone" if card_ids is None else among("c.id", card_ids)


def among(column: str, ids: Sequence[int]) -> str:
    """Return the condition that a column has one of the ids, a list, a sample or a range."""
    if isinstance(ids, range):
        return f"{column} BETWEEN {ids.start} AND {ids.stop - 1}"
    # A constant, which PostgreSQL parses faster than an expression, and hashes.
    return f"{column} = ANY (CAST('{{{','.join(str(int(id)) for id in ids)}}}' AS bigint[]))"


def _literal(moment: datetime) -> str:
    return moment.isoformat()
