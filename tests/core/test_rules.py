"""Rules as data: the defaults and presets of pricing.md, and what is refused because it
contradicts itself.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from cardsync.prices.engine.preset_rules import PRESETS, preset_rule
from cardsync.prices.engine.rules import (
    Cap,
    InvalidRule,
    MarketGate,
    Rule,
    SmallCap,
    Stale,
)
from cardsync.prices.engine.seller_pricing import SellerPricing, live_rules

RULE = Rule(id=1, name="All", priority=10, state="published")
CAP = Cap(up_bp=1_000, down_bp=1_000)
SMALL = SmallCap(below=50_000, up_bp=1_000, down_bp=1_000)
STALE = Stale(after_days=60, step_bp=500, every_days=7, limit_bp=4_000)
GATE = MarketGate(min_listings=3, min_sales_30d=2, max_age_hours=24, undercut_bp=100)


def test_omitted_fields_have_the_defaults_of_the_specification():
    rule = Rule(id=1, name="New", priority=1)
    assert (rule.price_source, rule.fallback_sources, rule.rounding) == (
        "market",
        ("market",),
        "cent",
    )
    assert (rule.enabled, rule.state, rule.query) == (True, "draft", "")
    assert (rule.adjust_bp, rule.adjust_amount, rule.never_lower, rule.fee_gap_adjustment) == (
        0,
        0,
        False,
        False,
    )
    assert [rule.floor, rule.ceiling, rule.stale, rule.cap, rule.market_gate] == [None] * 5


def test_a_rule_has_every_field_of_the_specification():
    # `broken` is not the seller's to set: it is what became of the query.
    assert {field.name for field in fields(Rule)} - {"broken"} == {
        *(
            "id",
            "name",
            "priority",
            "enabled",
            "state",
            "query",
            "price_source",
            "fallback_sources",
            "adjust_bp",
        ),
        *(
            "adjust_amount",
            "floor",
            "floor_cost_bp",
            "ceiling",
            "never_lower",
            "stale",
            "velocity_boost_enabled",
            "cap",
        ),
        *("market_gate", "undercut_up_bp", "fee_gap_adjustment", "rounding"),
        *("review", "holdout_bp", "guard"),
    }


def test_seller_settings_have_the_defaults_of_the_specification():
    seller = SellerPricing()
    assert (seller.direct_minimum, seller.minimum_move, seller.max_age_hours) == (4_000, 100, 168)
    assert (seller.direct_program, seller.default_rule_enabled, seller.fee_level) == (
        False,
        True,
        "1-4",
    )
    assert not seller.automatic_pricing_paused


@pytest.mark.parametrize(
    ("name", "sources", "adjust_bp", "never_lower", "cap_bp", "small_bp"),
    [
        ("premium", ("market", "low"), 500, True, 1_500, 1_000),
        ("competitive", ("market", "low"), -100, True, 2_000, 1_500),
        ("move", ("low", "market"), 0, False, 2_500, 5_000),
        ("buy-box", ("low_with_shipping", "low", "market"), -200, False, 3_000, 5_000),
    ],
)
def test_a_preset_is_the_line_of_the_specification(
    name, sources, adjust_bp, never_lower, cap_bp, small_bp
):
    rule = preset_rule(name)
    assert (rule.sources, rule.adjust_bp, rule.never_lower) == (sources, adjust_bp, never_lower)
    assert rule.cap == Cap(cap_bp, cap_bp, "day", "clamp", SmallCap(50_000, small_bp, small_bp))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_live_at_priority_1000_for_every_card_in_cents_and_without_bounds(name):
    rule = preset_rule(name)
    assert rule.live
    assert (rule.priority, rule.query, rule.rounding, rule.floor, rule.ceiling) == (
        1_000,
        "",
        "cent",
        None,
        None,
    )


def test_only_the_preset_move_reduces_stale_cards():
    assert {name: rule.stale for name, rule in PRESETS.items() if rule.stale} == {"move": STALE}


def test_there_are_four_presets_and_no_fifth():
    assert list(PRESETS) == ["premium", "competitive", "move", "buy-box"]
    with pytest.raises(InvalidRule, match="preset: must be one of premium"):
        preset_rule("cheap")


@pytest.mark.parametrize(
    ("valid", "change", "field"),
    [
        (RULE, {"floor": 20_000, "ceiling": 10_000}, "floor"),
        (RULE, {"floor": 10_010, "ceiling": 10_090}, "floor"),
        (RULE, {"floor": -1}, "floor"),
        (RULE, {"floor": 10**12}, "floor"),
        (RULE, {"ceiling": 99}, "ceiling"),
        (RULE, {"adjust_bp": -10_001}, "adjust_bp"),
        (RULE, {"adjust_bp": 1_000_001}, "adjust_bp"),
        (RULE, {"adjust_amount": 10**12}, "adjust_amount"),
        (RULE, {"state": "live"}, "state"),
        (RULE, {"rounding": "x95"}, "rounding"),
        (RULE, {"price_source": "guess"}, "price_source"),
        (RULE, {"fallback_sources": ("market", "guess")}, "fallback_sources"),
        (STALE, {"every_days": 0}, "stale.every_days"),
        (STALE, {"after_days": -1}, "stale.after_days"),
        (STALE, {"step_bp": -500}, "stale.step_bp"),
        (STALE, {"limit_bp": 10_001}, "stale.limit_bp"),
        (CAP, {"up_bp": -1}, "cap.up_bp"),
        (CAP, {"down_bp": 10_001}, "cap.down_bp"),
        (CAP, {"period": "month"}, "cap.period"),
        (CAP, {"mode": "skip"}, "cap.mode"),
        (SMALL, {"below": 0}, "cap.small.below"),
        (SMALL, {"up_bp": -1}, "cap.small.up_bp"),
        (SMALL, {"down_bp": 10_001}, "cap.small.down_bp"),
        (GATE, {"min_listings": -1}, "market_gate.min_listings"),
        (GATE, {"min_sales_30d": -1}, "market_gate.min_sales_30d"),
        (GATE, {"max_age_hours": 0}, "market_gate.max_age_hours"),
        (GATE, {"undercut_bp": 10_001}, "market_gate.undercut_bp"),
        (SellerPricing(), {"minimum_move": -1}, "minimum_move"),
        (SellerPricing(), {"max_age_hours": 0}, "max_age_hours"),
        (SellerPricing(), {"direct_minimum": -1}, "direct_minimum"),
        (SellerPricing(), {"fee_level": "5"}, "fee_level"),
    ],
)
def test_a_contradiction_is_refused_by_the_name_of_its_field(
    valid: Any, change: dict[str, Any], field: str
):
    with pytest.raises(InvalidRule) as refused:
        replace(valid, **change)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"floor": -1}, "floor: must be between 0.00 and 99999999.9999"),
        ({"ceiling": 99}, "ceiling: must be between 0.01 and 99999999.9999"),
        (
            {"adjust_amount": 10**12},
            "adjust_amount: must be between -99999999.9999 and 99999999.9999",
        ),
    ],
)
def test_an_amount_out_of_range_is_refused_in_dollars(change: dict[str, Any], said: str):
    with pytest.raises(InvalidRule) as refused:
        replace(RULE, **change)
    assert str(refused.value) == said


def test_a_floor_may_equal_the_ceiling():
    assert replace(RULE, floor=10_000, ceiling=10_000).floor == 10_000


def test_a_rule_cannot_be_changed_after_its_checks():
    with pytest.raises(FrozenInstanceError):
        RULE.floor = 5  # type: ignore[misc]


def test_a_source_that_is_its_own_fallback_is_tried_once():
    assert Rule(id=1, name="", priority=1, fallback_sources=("market", "low", "low")).sources == (
        "market",
        "low",
    )


def test_live_rules_are_the_enabled_published_ones_lower_priority_first():
    rules = [
        replace(RULE, id=1, priority=30),
        replace(RULE, id=2, priority=20, enabled=False),
        replace(RULE, id=3, priority=10, state="draft"),
        replace(RULE, id=4, priority=5),
    ]
    assert [rule.id for rule in live_rules(rules, SellerPricing())] == [4, 1]


def test_switching_the_default_rule_off_removes_the_rule_at_priority_1000_only():
    rules = [
        replace(RULE, id=1, priority=999),
        preset_rule("move"),
        replace(RULE, id=2, priority=1_001),
    ]
    assert [rule.id for rule in live_rules(rules, SellerPricing())] == [1, 0, 2]
    assert [rule.id for rule in live_rules(rules, SellerPricing(default_rule_enabled=False))] == [
        1,
        2,
    ]
