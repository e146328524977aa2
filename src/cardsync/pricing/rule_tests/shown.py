"""The JSON structs of rule tests and verdicts, and the functions that fill them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cardsync import clock
from cardsync.pricing.models import RuleTest
from cardsync.pricing.receipts.sentences import money
from cardsync.pricing.rule_tests.check import Verdict


class RuleTestShown(msgspec.Struct):
    """`expectation` is one of: never moves, never under 20.00, never over 100.00, lands at 4.99, at
    most +10 %, at most -10 %.
    """

    id: int
    name: str
    search: str
    expectation: str
    created_at: str
    updated_at: str


class RuleTestList(msgspec.Struct):
    rule_tests: list[RuleTestShown]


class CardThatFails(msgspec.Struct):
    """`price` is what the card would ask; `reason` says which step set it."""

    marketplace_id: int
    product_name: str | None
    current_price: str | None
    price: str | None
    rule_id: int | None
    reason: str


class RuleTestVerdict(msgspec.Struct):
    """`red`: some of the `cards` fail, or the search can't be read; `unread` says why. `first`
    holds the first cards that fail.
    """

    id: int
    name: str
    search: str
    expectation: str
    red: bool
    cards: int
    failing: int
    first: list[CardThatFails]
    unread: str | None


class RuleTestVerdicts(msgspec.Struct):
    red: int
    rule_tests: list[RuleTestVerdict]


def test_body(row: RuleTest) -> RuleTestShown:
    created, updated = (clock.rfc3339(moment) for moment in (row.created_at, row.updated_at))
    return RuleTestShown(
        row.id,
        row.name,
        row.search,
        row.expectation,
        created,
        updated,
    )


def verdict_body(verdict: Verdict) -> RuleTestVerdict:
    test = verdict.test
    first = [
        CardThatFails(
            card.marketplace_id,
            card.product_name,
            money(card.current_price),
            money(card.price),
            card.rule_id,
            card.reason,
        )
        for card in verdict.first
    ]
    return RuleTestVerdict(
        id=test.id,
        name=test.name,
        search=test.search,
        expectation=test.expectation,
        red=verdict.red,
        cards=verdict.cards,
        failing=verdict.failing,
        first=first,
        unread=verdict.unread,
    )


def verdicts_body(verdicts: Sequence[Verdict]) -> RuleTestVerdicts:
    told = [verdict_body(verdict) for verdict in verdicts]
    return RuleTestVerdicts(sum(verdict.red for verdict in told), told)
