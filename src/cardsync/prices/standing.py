"""Reads and writes `price_decision`, the decisions about single cards' prices that are in force. No
other module writes this table, except an undo of pins.

Every read ignores decisions that have ended, even if their rows still exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.session import Statement, in_one_message, run
from cardsync.prices.models import DecisionKind

# Selects the pins of accepted recommendations, which have an end. A pin that a person set has no
# end, so a recommendation's pin does not replace it.
APPLIED: Final = "d.until IS NOT NULL"
_PUT: Final = """
    INSERT INTO price_decision AS d (seller_id, kind, marketplace_id, source_id, part, price, asked,
                                     since, until, decided_by)
    SELECT :seller, :kind, g.id, coalesce(g.source, 0), :part, g.price / 10000.0, g.asked / 10000.0,
           coalesce(g.since, :now), coalesce(g.until, :until), :by
      FROM unnest(CAST(:ids AS bigint[]), CAST(:sources AS bigint[]), CAST(:prices AS bigint[]),
                  CAST(:asked AS bigint[]), CAST(:sinces AS timestamptz[]),
                  CAST(:ends AS timestamptz[])) AS g (id, source, price, asked, since, until)
    ON CONFLICT (seller_id, kind, marketplace_id, source_id, part)
"""
_REPLACE: Final = """
       DO UPDATE SET price = excluded.price, asked = excluded.asked, since = excluded.since,
                     until = excluded.until,
                     decided_by = excluded.decided_by
     WHERE {where}
"""
_DROP: Final = """
    DELETE FROM price_decision d
     WHERE d.seller_id = :seller AND d.kind = :kind
       AND d.marketplace_id = ANY (CAST(:ids AS bigint[])) AND {where}
"""
_END: Final = """
    DELETE FROM price_decision WHERE seller_id = :seller AND kind = :kind AND until <= :now
"""


def put(
    seller_id: int,
    kind: DecisionKind,
    ids: Sequence[int],
    now: datetime,
    *,
    sources: Sequence[int] = (),
    part: int = 0,
    prices: Sequence[int] = (),
    asked: Sequence[int] = (),
    sinces: Sequence[datetime | None] = (),
    ends: Sequence[datetime | None] = (),
    until: datetime | None = None,
    by: str | None = None,
    replaces: str | None = None,
) -> Statement:
    """Return the statement that writes decisions about these cards; amounts are in ten-thousandths
    of a dollar. An existing decision stays, unless the SQL condition `replaces` is true of its row
    `d`.
    """
    values = {
        "seller": seller_id,
        "kind": kind,
        "ids": list(ids),
        "now": now,
        "sources": list(sources),
        "part": part,
        "prices": list(prices),
        "asked": list(asked),
        "sinces": list(sinces),
        "ends": list(ends),
        "until": until,
        "by": by,
    }
    again = "DO NOTHING" if replaces is None else _REPLACE.format(where=replaces)
    return _PUT + again, values


def drop(
    seller_id: int,
    kind: DecisionKind,
    ids: Sequence[int],
    where: str = "true",
    **values: object,
) -> Statement:
    """Return the statement that deletes the decisions about these cards for which the condition is
    true.
    """
    values |= {"seller": seller_id, "kind": kind, "ids": list(ids)}
    return _DROP.format(where=where), values


async def end(session: AsyncSession, seller_id: int, kind: DecisionKind, now: datetime) -> None:
    """Delete the decisions that have ended."""
    await run(session, _END, {"seller": seller_id, "kind": kind, "now": now})


_PINS: Final = """
    SELECT marketplace_id, (price * 10000)::bigint FROM price_decision
     WHERE seller_id = :seller AND kind = 'pin' AND (until IS NULL OR until > :now)
"""
_FOR_RUN: Final = """
    SELECT coalesce(array_agg(marketplace_id), '{}') AS marketplace_id,
           coalesce(array_agg(CASE WHEN kind = 'pin' THEN (price * 10000)::bigint END), '{}')
               AS pin,
           coalesce(array_agg(CASE WHEN kind = 'accepted' THEN (price * 10000)::bigint END), '{}')
               AS approved_price
      FROM price_decision
     WHERE seller_id = :seller AND kind = ANY (CAST(:kinds AS text[]))
       AND (until IS NULL OR until > :now)
"""
_COSTS: Final = """
    SELECT coalesce(array_agg(marketplace_id), '{}') AS marketplace_id,
           coalesce(array_agg((cost * 10000)::bigint), '{}') AS cost
      FROM card_cost WHERE seller_id = :seller AND cost IS NOT NULL
"""
_AMONG: Final = """
       AND marketplace_id IN (SELECT c.marketplace_id FROM card c
            WHERE c.seller_id = :seller AND c.id = ANY (CAST(:cards AS bigint[])))
"""
_COST: Final = {"marketplace_id": pl.Int64, "cost": pl.Int64}
_DECIDED: Final = {"marketplace_id": pl.Int64, "pin": pl.Int64, "approved_price": pl.Int64}


async def pins_of(session: AsyncSession, seller_id: int, now: datetime) -> dict[int, int]:
    """Return the pins in force, as marketplace_id → price."""
    rows = await session.execute(text(_PINS), {"seller": seller_id, "now": now})
    return {row[0]: row[1] for row in rows}


async def decided_of(
    session: Source,
    seller_id: int,
    now: datetime,
    *,
    reviewed: bool,
    costed: bool = False,
    card_ids: Sequence[int] | None = None,
) -> pl.DataFrame:
    """Return the cards with a `pin` or an `approved_price` in force; with `card_ids`, only of these
    few cards. Accepted prices are read only if the run is `reviewed`, and the cards' costs only if
    it is `costed`.
    """
    kinds = ["pin", "accepted"] if reviewed else ["pin"]
    values: dict[str, object] = {"seller": seller_id, "kinds": kinds, "now": now}
    which = ""
    if card_ids is not None:
        which, values["cards"] = _AMONG, list(card_ids)
    statements = [_FOR_RUN + which] + ([_COSTS + which] if costed else [])
    [[row], *rows] = await in_one_message(session, statements, values)
    found = pl.DataFrame(dict(zip(_DECIDED, row, strict=True)), schema=_DECIDED)
    # A card may have a pin and an accepted price.
    decided = found.group_by("marketplace_id").max()
    if not costed:
        return decided
    costs = pl.DataFrame(dict(zip(_COST, rows[0][0], strict=True)), schema=_COST)
    return decided.join(costs, on="marketplace_id", how="full", coalesce=True)


def with_decided(cards: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    """Join the columns `pin`, `approved_price` and `cost` to the cards, as inputs of the engine."""
    of_cards = cards.drop("pin", "approved_price", "cost", strict=False)
    return of_cards.join(decided, on="marketplace_id", how="left", maintain_order="left")
