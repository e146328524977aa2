"""Reads the seller's decisions on single prices, pins and accepted prices, as the engine's inputs.

An accepted review lets its price pass for thirty days, as a confirmed leap does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.pricing.engine import breaker
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.inputs.rule_rows import pins_of

_ACCEPTED: Final = """
    SELECT marketplace_id, (accepted_price * 10000)::bigint FROM price_review
     WHERE seller_id = :seller AND accepted_price IS NOT NULL AND accepted_at > :since
"""


@dataclass(frozen=True)
class Decided:
    """Both by marketplace_id, in ten-thousandths."""

    pins: dict[int, int] = field(default_factory=dict)
    accepted: dict[int, int] = field(default_factory=dict)

    def columns(self) -> dict[str, pl.Expr]:
        """Return `pin` and `approved_price`, read by the column `marketplace_id`."""
        return {"pin": _by_id(self.pins), "approved_price": _by_id(self.accepted)}


def _by_id(known: dict[int, int]) -> pl.Expr:
    if not known:
        return pl.lit(None, pl.Int64)
    return pl.col("marketplace_id").replace_strict(known, default=None, return_dtype=pl.Int64)


async def decided_of(session: AsyncSession, seller_id: int, run: Run) -> Decided:
    """Return what holds at the run's moment; accepted prices are read where the run asks."""
    pins = await pins_of(session, seller_id, run.now)
    if not run.reviewed:
        return Decided(pins)
    values = {"seller": seller_id, "since": run.now - breaker.REMEMBERED}
    rows = await session.execute(text(_ACCEPTED), values)
    return Decided(pins, {row[0]: row[1] for row in rows})
