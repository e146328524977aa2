"""Guards: rules without a price whose floors and ceilings hold beside the rule that prices a card."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.priced_rows import priced_rows
from tests.core.pricing_reference import (
    NOW,
    a_card,
    frame_of,
    random_card,
    random_rule,
    random_sale,
    random_seller,
)

from cardsync.platform import errors
from cardsync.prices.engine.engine import limited, price
from cardsync.prices.engine.rules import Cap, InvalidRule, Rule, Sale, SmallCap, check_guard
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_file import RuleSet, read_rule_set, rule_set_text
from cardsync.prices.receipts import parquet_file
from cardsync.prices.receipts.sentences import explain

RULE = Rule(1, "At market", 500, state="published")
GUARD = Rule(2, "Guard", 400, state="published", guard=True)
SELLER = SellerPricing()
seeds = st.integers(0, 2**32)


def row_of(*rules, sales=(), **card):
    [row] = priced_rows(frame_of([a_card(**card)]), rules, SELLER, NOW, sales)
    return row


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


@pytest.mark.day
@given(seeds)
@settings(deadline=None, max_examples=60)
def test_guards_hold_in_any_order_and_never_lower_a_floor(seed):
    rng, frame, rule, guards, seller, sales = a_shop(seed)
    priced_rows(frame, [rule, *guards], seller, NOW, sales)
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
        ({"floor": "1.00", "cap": {"up_bp": 100, "period": "week"}}, "cap.period"),
        ({"cap": {}}, "cap"),
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


A_DAY = Cap(1_000, 1_000)
DEAR = {"current_price": 100_000, "day_start_price": 100_000}


@pytest.mark.parametrize(
    ("own", "caps", "card", "target", "guard", "held"),
    [
        # The guard alone: from the day's first price, or from the current one.
        (None, [A_DAY], DEAR | {"market": 150_000}, 110_000, 2, False),
        (None, [A_DAY], DEAR | {"market": 50_000}, 90_000, 2, False),
        (None, [A_DAY], DEAR | {"market": 105_000}, 105_000, None, False),
        (None, [A_DAY], DEAR | {"current_price": 108_000, "market": 150_000}, 110_000, 2, False),
        (None, [A_DAY], DEAR | {"day_start_price": None, "market": 150_000}, 110_000, 2, False),
        # A price that is beyond the limit already stays; one without a price has no limit.
        (None, [A_DAY], DEAR | {"current_price": 120_000, "market": 150_000}, 120_000, 2, False),
        (None, [A_DAY], {"current_price": None, "market": 150_000}, 150_000, None, False),
        # One direction alone, and none at all in the other.
        (None, [Cap(None, 0)], DEAR | {"market": 150_000}, 150_000, None, False),
        (None, [Cap(None, 0)], DEAR | {"market": 50_000}, 100_000, 2, False),
        # The least step: 15 % of 0.06 is less than a cent.
        (None, [A_DAY], {"current_price": 600, "market": 5_000}, 1_100, 2, False),
        # The nearer limit stops the price; alike, it is the rule's.
        (Cap(500, 500), [A_DAY], DEAR | {"market": 150_000}, 105_000, None, False),
        (Cap(2_000, 2_000), [A_DAY], DEAR | {"market": 150_000}, 110_000, 2, False),
        (Cap(1_000, 1_000), [A_DAY], DEAR | {"market": 150_000}, 110_000, None, False),
        # A rule that holds does so at its own limit alone.
        (Cap(500, 500, mode="hold"), [A_DAY], DEAR | {"market": 150_000}, 100_000, None, True),
        (Cap(4_000, None, mode="hold"), [A_DAY], DEAR | {"market": 130_000}, 110_000, 2, False),
        (Cap(2_000, None, mode="hold"), [A_DAY], DEAR | {"market": 130_000}, 100_000, None, True),
        # The strictest guard holds; of several alike, the first does.
        (None, [A_DAY, Cap(500, 2_000)], DEAR | {"market": 150_000}, 105_000, 3, False),
        (None, [A_DAY, Cap(500, 2_000)], DEAR | {"market": 50_000}, 90_000, 2, False),
        (None, [A_DAY, A_DAY], DEAR | {"market": 50_000}, 90_000, 2, False),
        # By the week for the rule, by the day for the guard.
        (
            Cap(5_000, None, period="week"), [A_DAY],
            DEAR | {"week_start_price": 90_000, "market": 200_000}, 110_000, 2, False,
        ),
        (
            Cap(1_000, None, period="week"), [A_DAY],
            {"current_price": 95_000, "day_start_price": 95_000, "week_start_price": 90_000,
             "market": 200_000}, 99_000, None, False,
        ),
    ],
)  # fmt: skip
def test_a_guard_limits_a_days_move(own, caps, card, target, guard, held):
    rule = replace(RULE, cap=own)
    guards = [replace(GUARD, id=2 + at, priority=400 + at, cap=cap) for at, cap in enumerate(caps)]
    row = row_of(rule, *guards, **card)
    assert (row["target"], row["guard_cap_id"], bool(row["held"])) == (target, guard, held)
    frame = price(frame_of([a_card(**card)]), [rule, *guards], SELLER, NOW)
    stopped = row["seller_limit"] is not None
    assert limited(frame)["rule_id"].to_list() == ([guard or rule.id] if stopped else [])
    steps = {step["name"]: step for step in explain(row, Run([rule, *guards], SELLER, NOW))}
    if guard is not None:
        assert "Daily limit of guard “Guard”" in steps["cap"]["summary"]
        assert (steps["cap"]["guard_cap_id"], steps["cap"]["period"]) == (guard, "day")
    else:
        assert "guard" not in steps["cap"]["summary"]


def test_a_guards_floor_holds_past_its_own_cap():
    guard = replace(GUARD, floor=150_000, cap=A_DAY)
    assert row_of(RULE, guard, **DEAR, market=100_000)["target"] == 150_000


def test_a_receipt_with_a_guards_cap_is_priced_again_from_the_file():
    rules = [RULE, replace(GUARD, cap=A_DAY)]
    frame = price(frame_of([a_card(**DEAR, market=150_000)]), rules, SELLER, NOW)
    data = parquet_file.pack([frame], Run(rules, SELLER, NOW))
    assert parquet_file.replay(data) == 0
    found, run = parquet_file.unpack(data)
    assert run.rules[1].cap == A_DAY
    assert found["guard_cap_id"].to_list() == [2]


@pytest.mark.day
@given(seeds)
@settings(deadline=None, max_examples=60)
def test_a_guards_cap_only_narrows(seed):
    """Over any rules, guards and cards: the more guards, the nearer a price stays to the day's
    first, unless a floor lifts it; and the step of the cap stays within each of them.
    """
    rng, frame, rule, guards, seller, _ = a_shop(seed)
    capped = [
        replace(guard, cap=Cap(rng.randrange(5_000), rng.randrange(5_000)))
        if rng.random() < 0.7
        else guard
        for guard in guards
    ]
    out = price(frame, [rule, *capped], seller, NOW)
    start = pl.coalesce("day_start_price", "current_price")
    step = seller.minimum_cap_step
    for bit, guard in enumerate(capped):
        if guard.cap is None:
            continue
        rows = out.filter(
            pl.col("after_cap").is_not_null()
            & pl.col("current_price").is_not_null()
            & (pl.col("guards") // (1 << bit) % 2 == 1)
        )
        up, down = guard.cap.up_bp, guard.cap.down_bp
        most = pl.max_horizontal(start * (10_000 + up) // 10_000, start + step, "current_price")
        least = pl.min_horizontal(
            -(-(start * (10_000 - down)) // 10_000), start - step, "current_price"
        )
        assert rows.filter((pl.col("after_cap") > most) | (pl.col("after_cap") < least)).is_empty()
    again = price(frame, [rule, *reversed(capped)], seller, NOW)
    assert again["target"].equals(out["target"])


@pytest.mark.parametrize(
    ("cap", "field"),
    [
        (Cap(500, 500, period="week"), "cap.period"),
        (Cap(500, 500, mode="hold"), "cap.mode"),
        (Cap(500, None, small=SmallCap(50_000, 1, 1)), "cap.small"),
        (Cap(None, None), "cap"),
    ],
)
def test_a_guards_cap_is_for_a_day_and_lets_prices_move_up_to_it(cap, field):
    with pytest.raises(InvalidRule) as refused:
        check_guard(replace(GUARD, cap=cap))
    assert refused.value.field == field
