"""The run-level breaker: more than 20 % of at least 50 priced cards would move by more than 50 %."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.pricing_reference import NOW, a_card, frame_of

from cardsync.pricing.engine import breaker, price
from cardsync.pricing.rules import Cap, Rule, SellerPricing

AT_MARKET = Rule(id=1, name="At market", priority=1, state="published")


def stops(*groups: tuple[int, dict[str, Any]], rule: Rule = AT_MARKET) -> bool:
    cards = [a_card(**given) for count, given in groups for _ in range(count)]
    return breaker(price(frame_of(cards), [rule], SellerPricing(), NOW))


STILL: dict[str, Any] = {"market": 100_000}
DOUBLED: dict[str, Any] = {"market": 200_000}


@pytest.mark.parametrize(("far", "still", "stopped"), [(10, 40, False), (11, 39, True), (50, 0, True), (0, 50, False)])
def test_it_takes_more_than_a_fifth_of_the_cards(far: int, still: int, stopped: bool):
    assert stops((far, DOUBLED), (still, STILL)) is stopped


@pytest.mark.parametrize(("cards", "stopped"), [(49, False), (50, True)])
def test_it_takes_at_least_fifty_cards(cards: int, stopped: bool):
    assert stops((cards, DOUBLED)) is stopped


@pytest.mark.parametrize(
    ("market", "stopped"), [(150_000, False), (150_001, True), (50_000, False), (49_999, True), (100, True)]
)
def test_a_move_counts_beyond_half_the_price_in_either_direction(market: int, stopped: bool):
    assert stops((50, {"market": market})) is stopped


def test_the_price_after_bounds_is_judged_so_a_ceiling_calms_it():
    assert not stops((50, DOUBLED), rule=replace(AT_MARKET, ceiling=120_000))
    assert not stops((50, {"market": 10_000}), rule=replace(AT_MARKET, never_lower=True))


def test_a_cap_does_not_calm_it():
    assert stops((50, DOUBLED), rule=replace(AT_MARKET, cap=Cap(up_bp=100, down_bp=100)))


def test_rounding_does_not_alarm_it():
    assert not stops((50, {"current_price": 5_000, "market": 5_000}), rule=replace(AT_MARKET, rounding="x99"))


@pytest.mark.parametrize(
    "given",
    [
        {"market": 200_000, "pin": 900_000},
        {"market": 200_000, "quantity": 0},
        {"market": None},
        {"market": 200_000, "current_price": None},
    ],
    ids=["pinned", "blocked", "without a reference", "without a price to move from"],
)
def test_cards_that_cannot_move_do_not_count(given: dict[str, Any]):
    assert not stops((100, given))
    assert not stops((49, DOUBLED), (100, given))
    assert stops((50, DOUBLED), (1_000, given))


def test_no_cards_no_stop():
    assert not breaker(price(frame_of([]), [AT_MARKET], SellerPricing(), NOW))
