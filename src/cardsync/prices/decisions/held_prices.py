"""Stores the cards whose price a cap limits, in `price_decision`, and the cards whose market gate
did not pass, in `gate_hold`.

The transaction that ends a pricing writes both, so `is:held`, badges and cards show the holds of
the last pricing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.database.session import run
from cardsync.prices import standing

_CAPS: Final = {
    "marketplace_id": pl.Int64,
    "source_id": pl.Int64,
    "part": pl.Int32,
    "asked": pl.Int64,
}
_PAIR: Final = ("marketplace_id", "source_id", "part")
_STORED: Final = """
    SELECT coalesce(array_agg(marketplace_id), '{}') AS marketplace_id,
           coalesce(array_agg(source_id), '{}') AS source_id,
           coalesce(array_agg(part), '{}') AS part,
           coalesce(array_agg((asked * 10000)::bigint), '{}') AS asked
      FROM price_decision WHERE seller_id = :seller AND kind = 'cap'
"""
# Two statements, because PostgreSQL would compare each stored cap with all cards of a shop that is
# new to its statistics.
_PRICED: Final = """
    SELECT coalesce(array_agg(marketplace_id), '{}') FROM card
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:ids AS bigint[]))
       AND product_line = ANY (CAST(:lines AS text[]))
"""
# The `part` of a decision of kind cap: the price moved to the limit, or stayed unchanged.
MOVES: Final = 0
STAYS: Final = 1
_OPEN_GATES = """
    DELETE FROM gate_hold h
     WHERE h.seller_id = :seller AND NOT EXISTS (
           SELECT FROM unnest(CAST(:held AS bigint[])) AS g (id) WHERE g.id = h.marketplace_id)
"""
_CLOSE_GATES = """
    INSERT INTO gate_hold AS h (seller_id, marketplace_id, verdict)
    SELECT :seller, g.id, g.verdict
      FROM unnest(CAST(:held AS bigint[]), CAST(:verdicts AS text[])) AS g (id, verdict)
    ON CONFLICT (seller_id, marketplace_id) DO UPDATE SET verdict = excluded.verdict
     WHERE h.verdict <> excluded.verdict
"""


async def hold_gates(
    session: AsyncSession,
    seller_id: int,
    gated: pl.DataFrame | None = None,
) -> None:
    """Replace the stored cards that market gates held by those of this pricing, with
    `marketplace_id` and `verdict`. With a market gate, a run always prices all cards, so a pricing
    of an upload alone has no such cards.
    """
    held = [] if gated is None else gated["marketplace_id"].to_list()
    await session.execute(text(_OPEN_GATES), {"seller": seller_id, "held": held})
    if gated is not None and held:
        values = {"seller": seller_id, "held": held, "verdicts": gated["verdict"].to_list()}
        await session.execute(text(_CLOSE_GATES), values)


async def hold_prices(
    session: AsyncSession,
    seller_id: int,
    limited: pl.DataFrame | None,
    now: datetime,
    lines: Sequence[str] | None = None,
) -> None:
    """Store the cards that caps limit, a result of `engine.limited`, after a pricing of all cards
    or of an upload of these product lines. Stored cards of other product lines stay. Only
    differences are written: a market that moves caps thousands of cards for weeks.
    """
    caps = pl.DataFrame(schema=_CAPS) if limited is None else _caps(limited)
    row = (await session.execute(text(_STORED), {"seller": seller_id})).one()
    stored = pl.DataFrame(dict(row._mapping), schema=_CAPS)
    ended = stored.join(caps, on=_PAIR, how="anti")["marketplace_id"].to_list()
    if ended and lines is not None:
        values = {"seller": seller_id, "ids": ended, "lines": list(lines)}
        ended = await session.scalar(text(_PRICED), values)
    if ended:
        await run(session, *standing.drop(seller_id, "cap", ended))
    new = caps.join(stored, on=list(_CAPS), how="anti", nulls_equal=True)
    for (part,), rows in new.group_by("part"):
        caps_now = standing.put(
            seller_id,
            "cap",
            rows["marketplace_id"].to_list(),
            now,
            sources=rows["source_id"].to_list(),
            part=part,
            asked=rows["asked"].to_list(),
            replaces="true",
        )
        await run(session, *caps_now)


def _caps(limited: pl.DataFrame) -> pl.DataFrame:
    """Return the limited cards as they are stored; a seller's own cap has no rule, and source 0."""
    return limited.select(
        "marketplace_id",
        pl.col("rule_id").fill_null(0).alias("source_id"),
        pl.when("held").then(STAYS).otherwise(MOVES).cast(pl.Int32).alias("part"),
        "asked",
    )
