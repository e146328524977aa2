"""The JSON structs of rule tests and their verdicts, for the API and the pages. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec


class RuleTestShown(msgspec.Struct):
    """`expectation` is one of: never moves, never under 20.00, never over 100.00, equals 4.99, at
    most +10%, at most -10%.
    """

    id: int
    name: str
    search: str
    expectation: str
    created_at: datetime
    updated_at: datetime


class RuleTestList(msgspec.Struct):
    rule_tests: list[RuleTestShown]


class CardThatFails(msgspec.Struct):
    """`price` is the card's price by the rules; `reason` is the sentence of the step that
    set it.
    """

    marketplace_id: int
    product_name: str | None
    current_price: str | None
    price: str | None
    """The card's price by the rules, in USD"""
    rule_id: int | None
    reason: str
    """The sentence of the step that set the price"""


class RuleTestVerdict(msgspec.Struct):
    """`red`: some of the `cards` fail, or the search can't be read; `unread` is then the reason.
    `first` has the first cards that fail.
    """

    id: int
    name: str
    search: str
    expectation: str
    red: bool
    cards: int
    failing: int
    first: list[CardThatFails]
    """The first cards that fail"""
    unread: str | None


class RuleTestVerdicts(msgspec.Struct):
    red: int
    """Number of tests that fail"""
    rule_tests: list[RuleTestVerdict]
