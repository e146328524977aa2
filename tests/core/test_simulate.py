"""The one comparison of prices, as a table of cards and as properties: what a run asks beside what
the cards ask now, beside another column, and beside another run.
"""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.core.pricing_reference import (
    NOW,
    a_card,
    frame_of,
    random_card,
    random_rule,
    random_seller,
)

from cardsync.prices.engine import engine
from cardsync.prices.engine.rules import Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.engine.simulate import Effect, moved, simulate, worth
from cardsync.prices.inputs.cards_to_price import Choices, Stock, price_chosen, price_stock
from cardsync.prices.plans.price_effect import _priced, at_worst, in_stock

AT_MARKET = Run([Rule(1, "At market", 10, state="published")], SellerPricing(), NOW)
DOLLAR = 10_000


def cards(*given: tuple[int | None, int | None, int, int | None]) -> pl.DataFrame:
    """`(price, market, quantity, last target)` of cards 1, 2, …, in dollars."""
    found = frame_of(
        [
            a_card(
                marketplace_id=number,
                current_price=price and price * DOLLAR,
                market=market and market * DOLLAR,
                low=None,
                low_with_shipping=None,
                direct_low=None,
                quantity=quantity,
            )
            for number, (price, market, quantity, _) in enumerate(given, 1)
        ]
    )
    targets = [target and target * DOLLAR for *_, target in given]
    return found.with_columns(
        id=pl.col("marketplace_id") * 10,
        target_price=pl.Series(targets, dtype=pl.Int64),
    )


CASES = [
    # what, (price, market, quantity, last target), asks, moves, differs, worth now and then
    ("a rise", (10, 12, 3, 12), 12, True, False, (30, 36)),
    ("a drop", (10, 7, 3, 8), 7, True, True, (30, 21)),
    ("it stays", (10, 10, 2, 10), 10, False, False, (20, 20)),
    ("a first price", (None, 5, 2, None), 5, True, True, (0, 10)),
    ("no reference", (10, None, 2, None), 10, False, False, (20, 20)),
    ("none that was asked before", (10, None, 2, 9), 10, False, True, (20, 20)),
    ("no price at all", (None, None, 2, None), None, False, False, (0, 0)),
    ("out of stock", (10, 12, 0, None), 10, False, False, (0, 0)),
]


@pytest.mark.parametrize(
    ("card", "asks", "moves", "differs", "value"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_one_card_beside_what_it_asks_now(card, asks, moves, differs, value):
    effect = simulate(AT_MARKET, cards(card))
    assert effect.cards["asks"].item() == (asks and asks * DOLLAR)
    assert effect.moves().height == moves
    assert effect.moves("target_price", "target").height == differs
    assert effect.worth == tuple(part * DOLLAR for part in value)


def test_the_whole_table_is_counted_and_its_largest_moves_come_first():
    effect = simulate(AT_MARKET, cards(*(case[1] for case in CASES)))
    counts = effect.counts
    assert (counts.cards, counts.up, counts.down, counts.unchanged) == (8, 2, 1, 1)
    assert sum(value for *_, (value, _) in CASES) * DOLLAR == effect.worth[0]
    # The first price moves from nothing; equal moves would go by their ids.
    assert effect.moves()["marketplace_id"].to_list() == [4, 2, 1]
    assert effect.moves("target_price", "target")["marketplace_id"].to_list() == [6, 4, 2]


def test_two_runs_over_the_same_cards_differ_where_their_rules_do():
    stock = cards((10, 12, 3, None), (10, 10, 1, None), (10, None, 1, None))
    dearer = replace(AT_MARKET, rules=[replace(AT_MARKET.rules[0], adjust_bp=1_000)])
    before, after = simulate(AT_MARKET, stock), simulate(dearer, stock)
    found = moved(before.cards, after.cards, ["asks"])
    assert found.select("id", "asks", "asks_after").rows() == [
        (10, 12 * DOLLAR, 132_000),
        (20, 10 * DOLLAR, 110_000),
    ]
    assert worth(found, "asks", "asks_after") == [46 * DOLLAR, 506_000]


@st.composite
def effects(draw) -> Effect:
    rng = random.Random(draw(st.integers(0, 2**32)))
    seller = random_seller(rng)
    rules = [random_rule(rng, number) for number in range(1, rng.choice([1, 1, 3]) + 1)]
    stock = frame_of([random_card(rng, number, seller) for number in range(rng.choice([0, 1, 40]))])
    return simulate(Run(rules, seller, NOW), stock.with_columns(pl.int_range(pl.len()).alias("id")))


@settings(max_examples=15)
@given(effects())
def test_an_effect_is_what_the_engine_says_of_the_same_cards(effect):
    run, counts = effect.run, effect.counts
    alone = engine.price(effect.cards, run.rules, run.seller, run.now, run.sales)
    assert effect.cards["target"].to_list() == alone["target"].to_list()
    assert counts == engine.summary(alone)
    moves = effect.moves()
    assert set(moves["id"]) == set(alone.filter("changed")["id"])
    assert moves.height == counts.up + counts.down
    before, after = effect.worth
    assert after - before == counts.up_value - counts.down_value
    steps = (moves["asks"] - moves["current_price"].fill_null(0)).abs()
    assert steps.is_sorted(descending=True)


@settings(max_examples=15)
@given(effects(), st.integers(0, 2**32))
def test_neither_the_order_nor_the_other_cards_change_an_effect(effect, seed):
    mixed = effect.cards.sample(fraction=1, shuffle=True, seed=seed)
    half = simulate(effect.run, mixed.head(mixed.height // 2))
    whole = simulate(effect.run, mixed)
    assert whole.moves().select("id", "asks").rows() == effect.moves().select("id", "asks").rows()
    kept = effect.moves().filter(pl.col("id").is_in(half.cards["id"].implode()))
    assert half.moves().select("id", "asks").rows() == kept.select("id", "asks").rows()


@settings(max_examples=15)
@given(effects(), st.integers(-5_000, 5_000))
def test_between_two_runs_the_moves_go_back_as_they_came(effect, adjust_bp):
    assert moved(effect.cards, effect.cards, ["asks", "target"]).is_empty()
    rules = [replace(rule, adjust_bp=adjust_bp) for rule in effect.run.rules]
    other = simulate(replace(effect.run, rules=rules), effect.cards)
    there, back = (
        moved(*sides, ["asks"])
        for sides in ((effect.cards, other.cards), (other.cards, effect.cards))
    )
    assert there["id"].to_list() == back["id"].to_list()
    [was, becomes] = worth(there, "asks", "asks_after")
    assert worth(back, "asks", "asks_after") == [becomes, was]
    assert becomes - was == other.worth[1] - effect.worth[1]


@settings(max_examples=25)
@given(effects(), st.randoms(use_true_random=False))
def test_at_worst_only_cards_are_priced_again_whose_rules_or_guards_may_move(effect, rng):
    """Where a cap, a stale cut, a review or a hold-out holds a card, its worst price is found."""
    run = effect.run
    rules = [
        replace(rule, guard=rng.random() < 0.1, cap=rng.choice([None, rule.cap]))
        for rule in run.rules
    ]
    run = replace(run, rules=[*rules, Rule(99, "Last", 9_999, state="published")])
    ids = [rule.id for rule in run.live]
    stock = effect.cards.select(*engine.INPUT_COLUMNS, "id").with_columns(
        rule_id=pl.Series(
            [rng.choice([None, *ids]) for _ in range(effect.cards.height)], dtype=pl.Int64
        ),
        guards=pl.lit(1, pl.Int64) if run.guards else pl.lit(0, pl.Int64),
        target_price=pl.lit(None, pl.Int64),
    )
    found = _priced(Stock(Choices(run, [], [], []), stock))
    at_least_one = in_stock(stock)
    for column, priced_by in (("today", run), ("worst", replace(run, rules=at_worst(run.rules)))):
        wanted = simulate(priced_by, at_least_one).cards["asks"]
        assert found[column].to_list() == wanted.to_list()


@pytest.mark.parametrize("count", [0, 1, 20, 21])
async def test_few_chosen_cards_are_priced_as_a_frame_of_them_is(count):
    dice = random.Random(count)
    seller = random_seller(dice)
    run = Run([random_rule(dice, number) for number in (1, 2)], seller, NOW)
    rows = [random_card(dice, number, seller) for number in range(1, count + 1)]
    stock = Stock(Choices(run, [], [], []), frame_of(rows or [a_card()]).head(count))
    assert_frame_equal(await price_chosen(stock), await price_stock(stock))
