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

from cardsync.prices import standing

_LET_GO = """
    DELETE FROM price_decision h USING card c
     WHERE h.seller_id = :seller AND h.kind = 'cap'
       AND c.seller_id = :seller AND c.marketplace_id = h.marketplace_id
       AND NOT EXISTS (
           SELECT FROM unnest(CAST(:ids AS bigint[]), CAST(:rules AS bigint[]),
                              CAST(:parts AS integer[])) AS g (id, rule, part)
            WHERE g.id = h.marketplace_id AND g.rule = h.source_id AND g.part = h.part)
       AND (CAST(:lines AS text[]) IS NULL OR c.product_line = ANY (CAST(:lines AS text[])))
"""
# The `part` of a decision of kind cap: the price moved to the limit, or stayed unchanged.
MOVES: Final = 0
STAYS: Final = 1
_NONE: Final = pl.DataFrame(
    schema={
        "marketplace_id": pl.Int64,
        "rule_id": pl.Int64,
        "held": pl.Boolean,
        "asked": pl.Int64,
    }
)
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
    or of an upload of these product lines. Stored cards of other product lines stay.
    """
    if limited is None:
        limited = _NONE
    named = {
        "seller": seller_id,
        "ids": limited["marketplace_id"].to_list(),
        "rules": limited["rule_id"].to_list(),
        "parts": limited["held"].cast(pl.Int64).to_list(),
        "lines": None if lines is None else list(lines),
    }
    await session.execute(text(_LET_GO), named)
    for (held,), rows in limited.group_by("held"):
        await standing.put(
            session,
            seller_id,
            "cap",
            rows["marketplace_id"].to_list(),
            now,
            sources=rows["rule_id"].to_list(),
            part=STAYS if held else MOVES,
            asked=rows["asked"].to_list(),
            replaces="d.asked IS DISTINCT FROM excluded.asked",
        )
