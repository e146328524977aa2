"""Checks an offer against the limits of copies and the stock steps of its rules, by the copies that
the shop has in stock and on order when the offer is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.engine.wanted_lines import WantedLine
from cardsync.buying.rules.line_facts import key_of, read_facts, texts_of
from cardsync.buying.rules.value_offer import buy_rules_of
from cardsync.platform import errors


class BoughtCopies(NamedTuple):
    """Copies of a card that a rule buys, and the copies that the shop had when the rule priced
    them.
    """

    rule_id: int
    card: WantedLine
    held: int | None


async def need_room(
    session: AsyncSession, caller: Caller, asked: Sequence[BoughtCopies], now: datetime
) -> None:
    """Check that the rules would still buy an offer's lines at their prices, by the shop's current
    stock. The caller holds the shop's lock. Raises InvalidPayload.
    """
    rules = {rule.id: rule for rule in await buy_rules_of(session, caller.seller_id)}
    counted = [one for one in asked if one.rule_id in rules]
    cards = [one.card for one in counted]
    known = await read_facts(session, caller.seller_id, cards, [], now)
    by_card: dict[tuple[int, str], list[BoughtCopies]] = defaultdict(list)
    for one in counted:
        by_card[one.card.product_id, one.card.finish].append(one)
    for (product_id, _), lines in by_card.items():
        facts = known.of_cards.get(key_of(lines[0].card))
        if facts is None:
            continue
        full = over_limit(lines, rules, facts.in_stock + facts.on_order)
        if full is not None:
            [texts] = texts_of(known.cards, [product_id]).values()
            raise errors.InvalidPayload(
                f"lines: the rule {full.name} buys fewer copies of {texts.product_name} now, or"
                " pays less for them; price the cards again"
            )


def over_limit(
    lines: Sequence[BoughtCopies], rules: dict[int, BuyRule], held: int
) -> BuyRule | None:
    """Return a rule that would no longer buy all copies of these lines of one card at their prices,
    because the shop has more copies now; None if there is no such rule. Pure.
    """
    bound = [(rules[one.rule_id], one) for one in lines]
    # The lines are ordered by their rules' limits: if the copies fit below the limits in any order,
    # they fit in this order.
    limited = [(rule.most_copies, rule, one) for rule, one in bound if rule.most_copies is not None]
    limited.sort(key=lambda each: each[0])
    until = accumulate((one.card.copies for *_, one in limited), initial=held)
    next(until)
    for (most, rule, _), reached in zip(limited, until, strict=True):
        if reached > most:
            return rule
    copies = sum(one.card.copies for one in lines)
    for rule, one in bound:
        before = held if one.held is None else one.held
        for step in rule.stock_steps:
            # Copies below a step have a higher price. The number of copies below the step must not
            # be smaller now than when the lines were priced.
            was, is_now = (_below(step.start, at, copies) for at in (before, held))
            if is_now < was:
                return rule
    return None


def _below(start: int, held: int, copies: int) -> int:
    return min(max(start - held, 0), copies)
