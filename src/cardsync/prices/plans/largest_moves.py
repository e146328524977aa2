"""Returns the cards that a plan moves furthest, each with its prices and the reason, as the page of
the plan shows them.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.money import dollars_or_none
from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.simulate import furthest, simulate
from cardsync.prices.inputs.cards_to_price import Stock
from cardsync.prices.limits import PLAN_CARDS_SHOWN
from cardsync.prices.plans.attempt import Effect
from cardsync.prices.plans.price_effect import in_stock, reach_by_id, read_cards
from cardsync.prices.preview.preview import reason_of

_CARDS = """
    SELECT id, product_name, set_name, condition_label FROM card
     WHERE seller_id = :seller AND id = ANY (:ids)
"""


async def largest_moves(
    session: AsyncSession,
    seller_id: int,
    effect: Effect,
    now: datetime,
) -> list[JsonObject]:
    """Return the moves as JSON of `schemas.CardMove`, ordered by the change of the listed value,
    largest first. Call it while the write is in effect.
    """
    if effect.moved is None or effect.moved.is_empty():
        return []
    rows = await asyncio.to_thread(_furthest, effect.moved)
    ids = [row["id"] for row in rows]
    reasons = {}
    if effect.by_rules:
        after = await read_cards(session, seller_id, reach_by_id(ids), now)
        reasons = await asyncio.to_thread(_reasons, after)
    found = await session.execute(text(_CARDS), {"seller": seller_id, "ids": ids})
    named = {card.id: card for card in found}
    return [
        {
            "marketplace_id": row["marketplace_id"],
            "product_name": named[row["id"]].product_name,
            "set_name": named[row["id"]].set_name,
            "condition": named[row["id"]].condition_label,
            "quantity": row["quantity"],
            "price_before": dollars_or_none(row["today"]),
            "price_after": dollars_or_none(row["today_after"]),
            "price_in_the_end": dollars_or_none(row["worst_after"]),
            "reason": reasons.get(row["id"]),
        }
        for row in rows
    ]


def _furthest(moved: pl.DataFrame) -> list[JsonObject]:
    steps = [
        (pl.col(f"{side}_after").fill_null(0) - pl.col(side).fill_null(0)).abs()
        for side in ("today", "worst")
    ]
    value = pl.max_horizontal(steps) * pl.max_horizontal("quantity", 1)
    return furthest(moved, value).head(PLAN_CARDS_SHOWN).to_dicts()


def _reasons(after: Stock) -> dict[int, str]:
    effect = simulate(after.run, in_stock(after.cards))
    return {row["id"]: reason_of(row, effect.run) for row in effect.cards.to_dicts()}
