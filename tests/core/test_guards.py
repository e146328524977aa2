"""Guards: rules without a price whose floors and ceilings hold beside the rule that prices a card."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.pricing_reference import (
    NOW,
    a_card,
    frame_of,
    random_card,
    random_rule,
    random_sale,
    random_seller,
)

from cardsync import errors
from cardsync.pricing.engine.engine import limited, price
from cardsync.pricing.engine.rules import Cap, Rule, Sale, SellerPricing
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.inputs import rule_json
from cardsync.pricing.inputs.rule_file import RuleSet, read_rule_set, rule_set_text
from cardsync.pricing.receipts import parquet_file
from cardsync.pricing.receipts.sentences import explain

RULE = Rule(1, "At market", 500, state="published")
GUARD = Rule(2, "Guard", 400, state="published", guard=True)
SELLER = SellerPricing()
seeds = st.integers(0, 2**32)


def row_of(*rules, sales=(), **card):
    return price(frame_of([a_card(**card)]), rules, SELLER, NOW, sales).row(0, named=True)


@pytest.mark.parametrize(
    ("fields", "card", "target", "bound"),
    [
        ({"floor": 150_000}, {}, 150_000, "guard_floor"),
        ({"floor": 90_000}, {}, 100_000, None),
        ({"floor_cost_bp": 1_500}, {"cost": 100_000}, 115_000, "guard_floor"),
        ({"floor_cost_bp": 1_500}, {"cost": None}, 100_000, None),
        ({"never_lower": True}, {"current_price": 120_000}, 120_000, "guard_floor"),
        ({"ceiling": 80_000}, {}, 80_000, "guard_ceiling"),
        # What a card cost comes before the most that it may be asked for.
        ({"ceiling": 80_000, "floor_cost_bp": 0}, {"cost": 90_000}, 90_000, "guard_ceiling"),
    ],
)
def test_a_guard_limits_the_price_of_whichever_rule(fields, card, target, bound):
    row = row_of(RULE, replace(GUARD, **fields), **{"market": 100_000} | card)
    assert (row["target"], row["rule_id"]) == (target, RULE.id)
    assert row["bound"] == bound


def test_a_guard_prices_nothing_by_itself():
    row = row_of(replace(GUARD, floor=150_000), market=100_000)
    assert (row["target"], row["rule_id"]) == (None, None)


def test_a_guards_floor_holds_past_a_cap_a_ceiling_and_a_promotion():
    guard = replace(GUARD, floor=150_000)
    capped = replace(RULE, cap=Cap(1_000, 1_000), ceiling=120_000)
    row = row_of(capped, guard, market=100_000)
    assert row["target"] == 150_000
    assert limited(
        price(frame_of([a_card(market=100_000)]), [capped, guard], SELLER, NOW)
    ).is_empty()
    hour = timedelta(hours=1)
    sale = Sale(1, "Half", 1, -5_000, NOW - hour, NOW + hour)
    assert row_of(RULE, guard, sales=[sale], market=200_000)["target"] == 150_000


def test_the_strictest_guard_decides_and_the_steps_name_it():
    guards = [
        replace(GUARD, id=2, name="Low", floor=110_000),
        replace(GUARD, id=3, name="High", floor_cost_bp=2_000),
        replace(GUARD, id=4, name="Other cards", query="is:foil", floor=900_000),
    ]
    rules = [RULE, *guards]
    cards = frame_of([a_card(market=90_000, cost=100_000)]).with_columns(
        rule_id=pl.lit(1), guards=pl.lit(3)
    )
    row = price(cards, rules, SELLER, NOW).row(0, named=True)
    assert (row["target"], row["guard_floor_id"]) == (120_000, 3)
    step = next(one for one in explain(row, Run(rules, SELLER, NOW)) if one["name"] == "bounds")
    assert step["summary"] == "9.00 is below the floor of guard “High”, 12.00."
    assert (step["guard_floor"], step["guard_floor_id"]) == ("12.00", 3)
    with pytest.raises(ValueError, match="guards"):
        price(cards.drop("guards"), rules, SELLER, NOW)


def test_a_guard_whose_search_cannot_be_read_blocks_every_card():
    row = row_of(RULE, replace(GUARD, floor=100, broken=True), market=100_000)
    assert row["target"] is None


def random_guards(rng: random.Random) -> list[Rule]:
    def some(most):
        return rng.choice([None, rng.randrange(1, most)])

    return [
        replace(
            GUARD,
            id=10 + number,
            priority=10 + number,
            query=rng.choice(["", "is:foil"]),
            floor=some(200_000),
            floor_cost_bp=some(5_000),
            ceiling=rng.choice([None, rng.randrange(200_100, 900_000)]),
            never_lower=rng.random() < 0.2,
        )
        for number in range(rng.randrange(1, 4))
    ]


def a_shop(seed: int):
    rng = random.Random(seed)
    seller, rule = random_seller(rng), random_rule(rng)
    guards = random_guards(rng)
    sales = [random_sale(rng, 1)] if rng.random() < 0.5 else []
    cards = [
        random_card(rng, number, seller) | {"cost": rng.choice([None, rng.randrange(200_000)])}
        for number in range(40)
    ]
    every = sum(1 << bit for bit, guard in enumerate(guards) if not guard.query)
    bits = [every | rng.randrange(1 << len(guards)) for _ in cards]
    live = Run([rule], seller, NOW).live
    frame = frame_of(cards).with_columns(
        guards=pl.Series(bits, dtype=pl.Int64),
        rule_id=pl.lit(rule.id if live else None, pl.Int64),
        sale_id=pl.lit(1 if [s for s in sales if s.active(NOW)] else None, pl.Int64),
    )
    return rng, frame, rule, guards, seller, sales


@pytest.mark.slow
@given(seeds)
@settings(deadline=None, max_examples=60)
def test_guards_hold_in_any_order_and_never_lower_a_floor(seed):
    rng, frame, rule, guards, seller, sales = a_shop(seed)
    out = price(frame, [rule, *guards], seller, NOW, sales)
    mixed = [rule, *guards]
    rng.shuffle(mixed)
    renamed = [replace(one, priority=rng.randrange(1, 900), name="x") for one in mixed if one.guard]
    again = price(frame, [rule, *renamed], seller, NOW, sales)
    assert again["target"].equals(out["target"])
    priced = pl.col("after_rounding").is_not_null()
    # No price that the run sets is under the strictest floor of its guards.
    strict = out.filter(priced & pl.col("guard_floor").is_not_null())
    assert (strict["after_rounding"] >= strict["guard_floor"]).all()
    for bit, guard in enumerate(guards):
        holds = out.filter(priced & (pl.col("guards") // (1 << bit) % 2 == 1))
        if guard.floor is not None:
            assert (holds["guard_floor"] >= guard.floor).all()
        if guard.ceiling is not None:
            assert (holds["guard_ceiling"] <= guard.ceiling).all()
    # Floors alone raise prices alone.
    floors = [replace(guard, ceiling=None) for guard in guards]
    bare = price(frame.drop("guards"), [rule], seller, NOW, sales)
    raised = price(frame, [rule, *floors], seller, NOW, sales)
    both = raised.select("marketplace_id", after="after_rounding").with_columns(
        before=bare["after_rounding"]
    )
    assert both.filter(pl.col("after") < pl.col("before")).is_empty()
    # The receipts price the same again.
    run = Run([rule, *guards], seller, NOW, sales)
    assert parquet_file.replay(parquet_file.pack([out], run)) == 0


def test_a_receipt_of_guards_without_a_search_prices_the_same_again():
    rules = [RULE, replace(GUARD, floor=150_000)]
    out = price(frame_of([a_card(market=100_000)]), rules, SELLER, NOW)
    assert parquet_file.replay(parquet_file.pack([out], Run(rules, SELLER, NOW))) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "guard"),
        ({"floor": "1.00", "adjust_bp": 100}, "adjust_bp"),
        ({"floor": "1.00", "price_source": "low"}, "price_source"),
        ({"floor": "1.00", "cap": {"up_bp": 100}}, "cap"),
        ({"floor": "1.00", "priority": 1000}, "priority"),
    ],
)
def test_a_guard_has_limits_and_no_price(body, field):
    values = rule_json.read_body({"name": "G", "guard": True} | body, rule_json.RuleFields)
    with pytest.raises(errors.InvalidRule, match=field):
        rule_json.need_sound(rule_json.rule_from(values, Rule(0, "", 1)))


def test_a_file_of_rules_keeps_guards_and_only_they_say_what_they_are():
    given = RuleSet([RULE, replace(GUARD, query="is:foil price>20", floor_cost_bp=1_500)])
    text = rule_set_text(given)
    assert text.count('"guard": true') == text.count('"guard"') == 1
    assert list(read_rule_set(text).rules) == list(given.rules)
