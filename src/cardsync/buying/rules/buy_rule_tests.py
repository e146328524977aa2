"""Reads, writes and checks the rule tests of buying. A test is a search over the shop's cards, and
the expected payment in cash for a Near Mint copy of each card.

The possible expectations are the expectations of pricing's rule tests that compare with an amount.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec
import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.engine.buy_rules import Budget, BuyRule
from cardsync.buying.engine.buy_sentences import sentences
from cardsync.buying.engine.wanted_lines import WantedLine
from cardsync.buying.rules.line_facts import texts_of
from cardsync.buying.rules.models import BuyRuleTest
from cardsync.buying.rules.value_offer import Valued, buy_rules_of, value_by
from cardsync.platform.database.read_sources import Source
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import dollars
from cardsync.platform.value_types import JsonMapping
from cardsync.prices.inputs.cards_to_price import ON_SALE, condition_of
from cardsync.prices.inputs.rule_queries import Selection, selections
from cardsync.prices.rule_tests.expectations import read_expectation
from cardsync.prices.rule_tests.rule_tests import KeptTests, test_fields

FIRST: Final = 5
# The largest number of cards that a test checks, in the order of their IDs.
_CARDS_AT_MOST: Final = 20_000
_WORTH: Final = ("never under", "never over", "equals")
_CARDS: Final = f"""
    SELECT min(c.id), c.product_id, c.printing, c.language FROM card c
     WHERE c.seller_id = :seller AND {ON_SALE} AND NOT c.custom AND ({{where}})
     GROUP BY c.product_id, c.printing, c.language ORDER BY 1 LIMIT {_CARDS_AT_MOST}
"""


class BuyRuleTestShown(msgspec.Struct):
    id: int
    name: str
    search: str
    expectation: str
    created_at: datetime
    updated_at: datetime


class BuyRuleTestList(msgspec.Struct):
    rule_tests: list[BuyRuleTestShown]


class CardThatBreaks(msgspec.Struct):
    """A card that fails a test, its price in cash, and the reason."""

    product_id: int
    product_name: str
    cash: str
    explanation: list[str]


class BuyRuleVerdict(msgspec.Struct):
    """The result of a test. `unread` is why the test's search can't be read in full, for example
    because its list was deleted; such a test fails.
    """

    id: int
    name: str
    search: str
    expectation: str
    red: bool
    cards: int
    """The number of tested cards"""
    failing: int
    first: list[CardThatBreaks]
    """The first cards that fail"""
    unread: str | None


class BuyRuleVerdicts(msgspec.Struct):
    red: int
    """The number of failing tests"""
    rule_tests: list[BuyRuleVerdict]


def _expectation(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    found = read_expectation(value)
    if found.kind not in _WORTH:
        raise ValueError("must be one of: never under 2.00, never over 5.00, equals 4.99")
    return found.text


BuyRuleTestFields: Final = test_fields("BuyRuleTestFields", _expectation)


TESTS: Final = KeptTests(BuyRuleTest, BuyRuleTestFields, "buying.rule_test", "buy rule test")


async def read_all(source: Source, caller: Caller) -> BuyRuleTestList:
    """Return the rule tests, oldest first."""
    caller.must_be_owner()
    return BuyRuleTestList(
        [struct_of(BuyRuleTestShown, row) for row in await TESTS.of(source, caller.seller_id)]
    )


async def create(
    session: AsyncSession,
    caller: Caller,
    body: JsonMapping,
    now: datetime,
) -> BuyRuleTestShown:
    """Create a rule test. Raises InvalidPayload, InvalidQuery."""
    return struct_of(BuyRuleTestShown, await TESTS.create(session, caller, body, now))


async def remove(
    session: AsyncSession,
    caller: Caller,
    test_id: int,
    now: datetime,
) -> None:
    """Delete a rule test. Raises NotFound."""
    caller.must_be_owner()
    await TESTS.remove(session, caller, test_id, now)


async def check(session: AsyncSession, caller: Caller, now: datetime) -> BuyRuleVerdicts:
    """Run all tests on the prices that the rules would pay if all drafts were published. Budgets
    are ignored.
    """
    caller.must_be_owner()
    tests = await TESTS.of(session, caller.seller_id)
    rules = await buy_rules_of(session, caller.seller_id)
    drafts = [replace(rule, state="published", budget=Budget()) for rule in rules]
    found = await selections(session, caller.seller_id, [test.search for test in tests])
    verdicts = [
        await _judged(session, caller, test, selection, drafts, now)
        for test, selection in zip(tests, found, strict=True)
    ]
    return BuyRuleVerdicts(sum(one.red for one in verdicts), verdicts)


async def _judged(
    session: AsyncSession,
    caller: Caller,
    test: BuyRuleTest,
    selection: Selection,
    rules: Sequence[BuyRule],
    now: datetime,
) -> BuyRuleVerdict:
    verdict = BuyRuleVerdict(
        test.id, test.name, test.search, test.expectation, False, 0, 0, [], None
    )
    if selection.where is None or selection.warnings:
        verdict.red, verdict.unread = True, " ".join(selection.warnings)
        return verdict
    bound: dict[str, object] = {"seller": caller.seller_id, "now": now}
    sql = _CARDS.format(where=condition_of(selection, bound, "t"))
    lines = [
        WantedLine(card, product, "NM", finish, language, 1)
        for card, product, finish, language in await session.execute(text(sql), bound)
    ]
    valued = await value_by(session, caller, lines, rules, now)
    failing = _failing(test, valued)
    verdict.cards, verdict.failing = len(lines), len(failing)
    verdict.red = bool(failing)
    texts = texts_of(valued.cards, [lines[at].product_id for at in failing[:FIRST]])
    for at in failing[:FIRST]:
        product = lines[at].product_id
        one = valued.lines[at]
        name = texts[product].product_name if product in texts else ""
        verdict.first.append(CardThatBreaks(product, name, dollars(one.cash), sentences(one)))
    return verdict


def _failing(test: BuyRuleTest, valued: Valued) -> list[int]:
    """Return the indexes of the lines that fail the test. A line that is not bought has the price
    0.
    """
    prices = pl.DataFrame({"asks": [one.cash for one in valued.lines]}, schema={"asks": pl.Int64})
    marked = prices.with_columns(current_price="asks")
    fails = marked.select(read_expectation(test.expectation).failing()).to_series()
    return fails.arg_true().to_list()
