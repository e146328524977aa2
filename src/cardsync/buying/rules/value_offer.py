"""Stand-in until the buy rules of a shop are read: the preset by market prices of the inventory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import BUY_PRESETS
from cardsync.buying.engine.value_lines import value_lines
from cardsync.buying.engine.wanted_lines import LineFacts, ValuedLine, WantedLine
from cardsync.money import to_units

_M = """
    SELECT product_id, max(market) FROM card
     WHERE seller_id = :seller AND product_id = ANY (CAST(:ids AS bigint[])) GROUP BY 1
"""


async def value(
    session: AsyncSession, caller: Caller, lines: Sequence[WantedLine]
) -> list[ValuedLine]:
    rule = replace(BUY_PRESETS["standard"], id=1)
    named = {"seller": caller.seller_id, "ids": [line.product_id for line in lines]}
    market = {row[0]: row[1] for row in await session.execute(text(_M), named)}
    facts = [
        LineFacts(
            1, market=None if market.get(x.product_id) is None else to_units(market[x.product_id])
        )
        for x in lines
    ]
    return value_lines(list(zip(lines, facts, strict=True)), [rule], {})
