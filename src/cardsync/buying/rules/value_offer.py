"""Stand-in until buy rules are read."""

from __future__ import annotations

from typing import Any, NamedTuple

from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.engine.value_lines import value_lines
from cardsync.buying.engine.wanted_lines import LineFacts, ValuedLine
from cardsync.buying.rules.line_facts import key_of, read_facts


class Valued(NamedTuple):
    lines: list[ValuedLine]
    facts: list[LineFacts]
    texts: dict[int, Any]


async def buy_rules_of(session: Any, seller_id: int) -> list[BuyRule]:
    return []


async def value(session: Any, caller: Any, lines: Any, now: Any, spent: Any = None) -> Valued:
    known = await read_facts(session, caller.seller_id, lines, [], now)
    facts = [known.of_cards[key_of(line)] for line in lines]
    return Valued(value_lines(list(zip(lines, facts, strict=True)), known.rules, {}), facts, {})
