"""Values a customer's cards by the shop's live buy rules."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import polars as pl
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import BuyRule, live_buy_rules
from cardsync.buying.engine.value_lines import NOTHING_SPENT, left_of, value_lines
from cardsync.buying.engine.wanted_lines import (
    BudgetLeft,
    LineFacts,
    Spent,
    ValuedLine,
    WantedLine,
)
from cardsync.buying.rules.buy_rule_json import buy_rule_of
from cardsync.buying.rules.line_facts import key_of, read_facts
from cardsync.buying.rules.models import StoredBuyRule

UNKNOWN: Final = LineFacts(None)


class Valued(NamedTuple):
    """The values and the facts of lines, in the order of the lines, and the cards with their
    texts.
    """

    lines: list[ValuedLine]
    facts: list[LineFacts]
    cards: pl.DataFrame


async def buy_rules_of(session: AsyncSession, seller_id: int) -> list[BuyRule]:
    """Return all buy rules of a shop, by priority."""
    mine = select(StoredBuyRule).where(StoredBuyRule.seller_id == seller_id)
    ordered = mine.order_by(StoredBuyRule.priority, StoredBuyRule.id)
    return [buy_rule_of(row) for row in await session.scalars(ordered)]


async def value(
    session: AsyncSession,
    caller: Caller,
    lines: Sequence[WantedLine],
    now: datetime,
    spent: Mapping[int, Spent] | None = None,
    explained: Container[int] | None = None,
) -> Valued:
    """Value the lines by the live rules. `spent` has the amounts that were promised today, by rule.
    `explained` has the IDs of the lines to explain; None means all lines.
    """
    rules = await buy_rules_of(session, caller.seller_id)
    return await value_by(
        session,
        caller,
        lines,
        rules,
        now,
        spent,
        explained,
    )


async def value_by(
    session: AsyncSession,
    caller: Caller,
    lines: Sequence[WantedLine],
    rules: Sequence[BuyRule],
    now: datetime,
    spent: Mapping[int, Spent] | None = None,
    explained: Container[int] | None = None,
) -> Valued:
    """Value the lines by the live rules among `rules`, which may contain drafts made live."""
    live = live_buy_rules(rules)
    known = await read_facts(
        session,
        caller.seller_id,
        lines,
        live,
        now,
    )
    budgets = budgets_of(known.rules, spent or {})
    facts = [known.of_cards.get(key_of(line), UNKNOWN) for line in lines]
    valued = await asyncio.to_thread(
        value_lines,
        list(zip(lines, facts, strict=True)),
        known.rules,
        budgets,
        explained,
    )
    return Valued(valued, facts, known.cards)


def budgets_of(rules: Sequence[BuyRule], spent: Mapping[int, Spent]) -> dict[int, BudgetLeft]:
    """Return the rest of each rule's budget, by the rule's ID."""
    return {rule.id: left_of(rule.budget, spent.get(rule.id, NOTHING_SPENT)) for rule in rules}
