"""Stand-in until buy rules are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import text

from cardsync.buying.engine.buy_rules import BUY_PRESETS, BuyRule
from cardsync.buying.engine.wanted_lines import LineFacts
from cardsync.money import to_units

_M = """
    SELECT product_id, max(market) FROM card
     WHERE seller_id = :seller AND product_id = ANY (CAST(:ids AS bigint[])) GROUP BY 1
"""


class Facts(NamedTuple):
    of_cards: dict[Any, LineFacts]
    texts: dict[int, Any]
    rules: list[BuyRule]


def key_of(line: Any) -> Any:
    return (line.product_id, line.finish, line.language)


async def read_facts(session: Any, seller_id: int, lines: Any, rules: Any, now: Any) -> Facts:
    rule = replace(BUY_PRESETS["standard"], id=1)
    named = {"seller": seller_id, "ids": [line.product_id for line in lines]}
    market = {row[0]: row[1] for row in await session.execute(text(_M), named)}
    facts = {
        key_of(x): LineFacts(
            1, market=None if market.get(x.product_id) is None else to_units(market[x.product_id])
        )
        for x in lines
    }
    return Facts(facts, {}, [rule])
