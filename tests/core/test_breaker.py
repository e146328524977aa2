"""The run-level breaker: more than 20 % of at least 50 priced cards would move by more than 50
%.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from tests.core.pricing_reference import NOW, a_card, frame_of

from cardsync.prices.engine.breaker import CONFIRMED, REMEMBERED, leaps, stops, unconfirmed
from cardsync.prices.engine.engine import price
from cardsync.prices.engine.rules import Cap, Rule
from cardsync.prices.engine.seller_pricing import SellerPricing

AT_MARKET = Rule(id=1, name="At market", priority=1, state="published")


def stopped_by(
    *groups: tuple[int, dict[str, Any]],
    rule: Rule = AT_MARKET,
    seller: SellerPricing = SellerPricing(),  # noqa: B008
) -> bool:
    cards = [a_card(**given) for count, given in groups for _ in range(count)]
    priced = price(frame_of(cards), [rule], seller, NOW)
    return stops(priced, leaps(priced))


STILL: dict[str, Any] = {"market": 100_000}
DOUBLED: dict[str, Any] = {"market": 200_000}


@pytest.mark.parametrize(
    ("far", "still", "stopped"), [(10, 40, False), (11, 39, True), (50, 0, True), (0, 50, False)]
)
def test_it_takes_more_than_a_fifth_of_the_cards(far: int, still: int, stopped: bool):
    assert stopped_by((far, DOUBLED), (still, STILL)) is stopped


@pytest.mark.parametrize(("cards", "stopped"), [(49, False), (50, True)])
def test_it_takes_at_least_fifty_cards(cards: int, stopped: bool):
    assert stopped_by((cards, DOUBLED)) is stopped


@pytest.mark.parametrize(
    ("market", "stopped"),
    [(150_000, False), (150_001, True), (50_000, False), (49_999, True), (100, True)],
)
def test_a_move_counts_beyond_half_the_price_in_either_direction(market: int, stopped: bool):
    assert stopped_by((50, {"market": market})) is stopped


def test_the_price_after_bounds_is_judged_so_a_ceiling_calms_it():
    assert not stopped_by((50, DOUBLED), rule=replace(AT_MARKET, ceiling=120_000))
    assert not stopped_by((50, {"market": 10_000}), rule=replace(AT_MARKET, never_lower=True))


def test_a_cap_does_not_calm_it():
    assert stopped_by((50, DOUBLED), rule=replace(AT_MARKET, cap=Cap(up_bp=100, down_bp=100)))


def test_rounding_does_not_alarm_it():
    assert not stopped_by(
        (50, {"current_price": 5_000, "market": 5_000}), rule=replace(AT_MARKET, rounding="x99")
    )


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
    assert not stopped_by((100, given))
    assert not stopped_by((49, DOUBLED), (100, given))
    assert stopped_by((50, DOUBLED), (1_000, given))


def test_no_cards_no_stop():
    assert not stopped_by()


@pytest.mark.parametrize(
    ("current", "market", "stopped"),
    [
        (200, 500, False),
        (2_500, 5_000, True),
        (2_500, 4_999, False),
        (1_000, 3_500, True),
        (1_000, 3_499, False),
        (4_900, 2_400, True),
        (4_800, 2_301, False),
    ],
    ids=[
        "pennies",
        "a quarter",
        "just below",
        "a dime up",
        "a dime up, below",
        "a quarter down",
        "down, below",
    ],
)
def test_a_move_counts_from_a_quarter_dollar_on(current: int, market: int, stopped: bool):
    assert stopped_by((50, {"current_price": current, "market": market})) is stopped


def test_a_card_whose_exported_price_would_not_change_does_not_count():
    held = replace(AT_MARKET, cap=Cap(up_bp=100, down_bp=100, mode="hold"))
    assert not stopped_by((50, DOUBLED), rule=held)
    # A cap that rounding takes back to the card's present price lets it pass, too.
    penny = {"current_price": 2_000, "market": 10_000}
    little, by_share = (
        replace(AT_MARKET, cap=Cap(up_bp=400, down_bp=400)),
        SellerPricing(minimum_cap_step=0),
    )
    assert not stopped_by((50, penny), rule=little, seller=by_share)
    # A cap allows a step of five cents, which does count.
    assert stopped_by((50, penny), rule=little)
    assert stopped_by((50, penny), rule=replace(AT_MARKET, cap=Cap(up_bp=500, down_bp=500)))


def test_a_move_that_the_sellers_minimum_keeps_back_does_not_count():
    cards = frame_of([a_card(**DOUBLED) for _ in range(50)])
    kept = price(cards, [AT_MARKET], SellerPricing(minimum_move=1_000_000), NOW)
    assert leaps(kept).is_empty()


@pytest.mark.parametrize(
    ("was", "age", "counts"),
    [
        (200_000, timedelta(), False),
        (181_819, timedelta(), False),
        (181_818, timedelta(), True),
        (222_222, timedelta(), False),
        (222_223, timedelta(), True),
        (200_000, REMEMBERED - timedelta(microseconds=1), False),
        (200_000, REMEMBERED, True),
    ],
    ids=[
        "the same",
        "ten up",
        "more than ten up",
        "ten down",
        "more than ten down",
        "nearly old",
        "old",
    ],
)
def test_a_confirmed_card_counts_again_when_it_moved_on_or_after_thirty_days(
    was: int, age: timedelta, counts: bool
):
    leaping = leaps(price(frame_of([a_card(**DOUBLED)]), [AT_MARKET], SellerPricing(), NOW))
    assert leaping.rows() == [(1, 200_000)]
    assert unconfirmed(leaping, a_confirmed((1, was, NOW - age)), NOW).height == int(counts)


def test_only_the_confirmed_card_itself_is_spared():
    leaping = leaps(price(frame_of([a_card(**DOUBLED)]), [AT_MARKET], SellerPricing(), NOW))
    assert unconfirmed(leaping, a_confirmed((2, 200_000, NOW)), NOW).height == 1
    assert unconfirmed(leaping, a_confirmed(), NOW).height == 1


def a_confirmed(*rows: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=CONFIRMED, orient="row")
