"""Adds lots: copies of cards that were bought, each with its cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.sales.lots.models import Source
from cardsync.sales.lots.stale_cards import mark_cards

CENT: Final = Decimal("0.01")
COST_MOST: Final = Decimal("99999999.99")

_ADD: Final = """
    INSERT INTO lot (seller_id, marketplace_id, quantity, remaining, cost, bought_on, source,
                     source_id, rule_id)
    SELECT CAST(:seller AS bigint), given.card, given.quantity, given.quantity, given.cost,
           given.bought_on, given.source, given.source_id, given.rule_id
      FROM unnest(CAST(:cards AS bigint[]), CAST(:quantities AS integer[]),
                  CAST(:costs AS numeric[]), CAST(:days AS date[]), CAST(:sources AS text[]),
                  CAST(:source_ids AS bigint[]), CAST(:rules AS bigint[])) WITH ORDINALITY
           AS given (card, quantity, cost, bought_on, source, source_id, rule_id, place)
     ORDER BY given.place RETURNING id
"""


class NewLot(NamedTuple):
    """Copies of one card that were bought together. `cost` is per copy: None is unknown, 0 is a
    gift. `source_id` is the id of the offer or file, `rule_id` that of the buy rule that set the
    cost.
    """

    marketplace_id: int
    quantity: int
    cost: Decimal | None
    bought_on: date
    source: Source
    source_id: int | None = None
    rule_id: int | None = None


async def add_lots(session: AsyncSession, caller: Caller, lots: Sequence[NewLot]) -> list[int]:
    """Add lots in the caller's transaction, and return their ids in the order of `lots`. Costs are
    rounded half-up to cents. The next refresh (`settle_uses.py`) assigns the new copies to sold
    items that lack copies.
    """
    if not lots:
        return []
    cards, quantities, costs, days, sources, source_ids, rules = map(list, zip(*lots, strict=True))
    values = {
        "seller": caller.seller_id,
        "cards": cards,
        "quantities": quantities,
        "costs": [None if cost is None else cost.quantize(CENT, ROUND_HALF_UP) for cost in costs],
        "days": days,
        "sources": sources,
        "source_ids": source_ids,
        "rules": rules,
    }
    ids = list(await session.scalars(text(_ADD), values))
    await mark_cards(session, caller.seller_id, cards)
    return ids
