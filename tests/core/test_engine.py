"""The thirteen steps of pricing.md: a test per sentence, the properties, and the engine against
the slow reference.
"""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.core.priced_rows import priced_rows
from tests.core.pricing_reference import (
    NOW,
    Card,
    a_card,
    expected,
    frame_of,
    random_card,
    random_rule,
    random_sale,
    random_seller,
)

from cardsync.prices.engine.engine import (
    PRICE_STEPS,
    RECEIPT_COLUMNS,
    Summary,
    limited,
    price,
    summary,
)
from cardsync.prices.engine.preset_rules import PRESETS, preset_rule
from cardsync.prices.engine.rules import Cap, MarketGate, ReviewLimits, Rule, Sale, SmallCap, Stale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.receipts import sentences
from cardsync.prices.receipts.sentences import blocker_codes
from cardsync.sales.lots.fee_schedule import net, schedule_at

AT_MARKET = Rule(id=1, name="At market", priority=10, state="published")
SELLER = SellerPricing()
WEEK = timedelta(hours=168)


def priced(
    rule: Rule | Sequence[Rule] = AT_MARKET,
    seller: SellerPricing = SELLER,
    now: datetime = NOW,
    **card: Any,
) -> dict[str, Any]:
    rules = [rule] if isinstance(rule, Rule) else rule
    [row] = priced_rows(frame_of([a_card(**card)]), rules, seller, now)
    return row | {"blockers": blocker_codes(row["blockers"])}


def target(rule: Rule = AT_MARKET, seller: SellerPricing = SELLER, **card: Any) -> int | None:
    return priced(rule, seller, **card)["target"]


def explain(row: dict[str, Any], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    return sentences.explain(row, Run(rules, SELLER, NOW))


def a_rule(**fields: Any) -> Rule:
    return replace(AT_MARKET, **fields)


# 1 eligibility


@pytest.mark.parametrize(
    ("code", "seller", "rules", "card"),
    [
        ("automatic_pricing_paused", SellerPricing(automatic_pricing_paused=True), [AT_MARKET], {}),
        ("product_line_disabled", SELLER, [AT_MARKET], {"product_line_enabled": False}),
        ("no_rule", SELLER, [], {}),
        ("no_usable_reference", SELLER, [AT_MARKET], {"market": None}),
        ("out_of_stock", SELLER, [AT_MARKET], {"quantity": 0}),
        ("custom_without_reference", SELLER, [AT_MARKET], {"market": None, "custom": True}),
    ],
)
def test_a_blocked_card_has_a_null_target_and_says_why(code, seller, rules, card):
    row = priced(rules, seller, market=card.pop("market", 120_000), **card)
    assert (row["target"], row["changed"], row["blockers"]) == (None, False, [code])
    assert [row[name] for name in ("after_formula", "after_bounds", "after_rounding")] == [None] * 3


def test_every_reason_is_named_not_only_the_first():
    row = priced(
        [], SellerPricing(automatic_pricing_paused=True), quantity=0, product_line_enabled=False
    )
    assert row["blockers"] == [
        "automatic_pricing_paused",
        "product_line_disabled",
        "no_rule",
        "out_of_stock",
    ]


def test_a_custom_card_with_a_reference_is_priced():
    assert target(custom=True, market=120_000) == 120_000


@pytest.mark.parametrize("current", [None, 100_000])
def test_a_stamped_card_without_a_reference_gets_null_and_not_zero(current):
    row = priced(stamped=True, market=None, current_price=current)
    assert (row["target"], row["base"], row["blockers"]) == (None, None, ["no_usable_reference"])


@pytest.mark.parametrize(
    ("seller", "card"),
    [
        (SELLER, {}),
        (SELLER, {"quantity": 0, "product_line_enabled": False}),
        (SELLER, {"market": None, "custom": True}),
        (SellerPricing(automatic_pricing_paused=True, minimum_move=900_000), {}),
    ],
)
def test_a_pinned_card_gets_its_pin_no_step_runs_and_no_blocker_is_named(seller, card):
    row = priced(a_rule(floor=500_000), seller, pin=70_000, **card)
    assert (row["target"], row["changed"], row["blockers"]) == (70_000, True, [])
    assert [
        row[name] for name in ("rule_id", "source", "base", "after_bounds", "after_rounding")
    ] == [None] * 5
    assert explain(row | {"blockers": 0}, [AT_MARKET]) == []


def test_a_pin_at_the_current_price_is_no_change():
    assert not priced(pin=100_000)["changed"]


# 2 governing_rule


def test_the_lowest_priority_number_governs():
    rules = [a_rule(id=1, priority=20), a_rule(id=2, priority=5), a_rule(id=3, priority=30)]
    assert priced(rules)["rule_id"] == 2


def test_disabled_rules_and_drafts_never_govern():
    rules = [
        a_rule(id=1, priority=1, enabled=False),
        a_rule(id=2, priority=2, state="draft"),
        a_rule(id=3, priority=3),
    ]
    assert priced(rules)["rule_id"] == 3
    assert priced(rules[:2])["blockers"] == ["no_rule"]


def test_without_its_default_rule_a_seller_keeps_unmatched_cards_as_they_are():
    row = priced(preset_rule("competitive"), SellerPricing(default_rule_enabled=False))
    assert (row["target"], row["blockers"]) == (None, ["no_rule"])


def test_rules_resolved_elsewhere_govern_card_by_card():
    rules = [
        a_rule(id=7, adjust_bp=1_000),
        a_rule(id=8, priority=11, price_source="low", rounding="x99"),
    ]
    cards = frame_of([a_card(marketplace_id=n) for n in range(3)]).with_columns(
        rule_id=pl.Series([8, None, 7])
    )
    assert price(cards, rules, SELLER, NOW)["target"].to_list() == [99_900, None, 110_000]


def test_a_resolved_rule_that_may_not_govern_is_an_error_and_not_a_guess():
    cards = frame_of([a_card()]).with_columns(rule_id=pl.lit(2))
    with pytest.raises(ValueError, match=r"may not price cards: \[2\]"):
        price(cards, [AT_MARKET, a_rule(id=2, state="draft")], SELLER, NOW)


# 3 price_source


def test_the_configured_source_comes_before_its_fallbacks():
    row = priced(a_rule(price_source="low", fallback_sources=("market",)))
    assert (row["source"], row["base"], row["source_observed_at"]) == ("low", 90_000, NOW)


def test_fallbacks_are_tried_in_their_order():
    rule = a_rule(
        price_source="direct_low", fallback_sources=("low_with_shipping", "low", "market")
    )
    assert priced(rule, direct_low=None)["source"] == "low_with_shipping"
    row = priced(rule, direct_low=None, low_with_shipping=None)
    assert (row["source"], row["refused_direct_low"], row["refused_low_with_shipping"]) == (
        "low",
        "absent",
        "absent",
    )


@pytest.mark.parametrize("nothing", [None, 0, -5])
def test_blank_zero_and_negative_are_no_price(nothing):
    row = priced(market=nothing)
    assert (row["blockers"], row["refused_market"]) == (["no_usable_reference"], "absent")


@pytest.mark.parametrize(
    ("observed_at", "refused"),
    [
        (NOW - WEEK, None),
        (NOW - WEEK - timedelta(microseconds=1), "too_old"),
        (None, "too_old"),
        (NOW, None),
    ],
)
def test_a_source_older_than_its_maximum_age_is_unusable(observed_at, refused):
    row = priced(observed_at=observed_at)
    assert (row["refused_market"], row["target"] is None) == (refused, refused is not None)


def test_the_maximum_age_is_the_sellers():
    assert (
        priced(seller=SellerPricing(max_age_hours=1), observed_at=NOW - timedelta(hours=2))[
            "target"
        ]
        is None
    )


def test_the_current_price_is_never_an_implicit_source():
    assert priced(a_rule(fallback_sources=("low",)), market=None, low=None)["blockers"] == [
        "no_usable_reference"
    ]
    assert (
        priced(a_rule(fallback_sources=("current",)), market=None, low=None)["source"] == "current"
    )


def test_source_current_starts_from_the_periods_price_so_that_runs_do_not_compound():
    rule = a_rule(price_source="current", adjust_bp=1_000)
    first = target(rule, current_price=100_000, day_start_price=100_000)
    assert first == 110_000
    assert target(rule, current_price=first, day_start_price=100_000) == first


def test_source_current_without_a_period_price_takes_the_current_one_at_any_age():
    row = priced(a_rule(price_source="current"), observed_at=None)
    assert (row["source"], row["base"], row["source_observed_at"]) == ("current", 100_000, None)


SALES = {
    "sales_median": 130_000,
    "sales_count": 3,
    "sales_newest_at": NOW - timedelta(days=30),
    "sales_fetched_at": NOW - timedelta(hours=24),
}


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({}, None),
        ({"sales_median": None}, "absent"),
        ({"sales_count": 2}, "too_few_sales"),
        ({"sales_newest_at": NOW - timedelta(days=30, seconds=1)}, "sales_too_old"),
        ({"sales_fetched_at": NOW - timedelta(hours=24, seconds=1)}, "evidence_too_old"),
        ({"sales_fetched_at": NOW + timedelta(microseconds=1)}, "future_evidence"),
    ],
)
def test_a_sales_anchor_needs_three_sales_of_thirty_days_fetched_today(change, refused):
    row = priced(a_rule(price_source="sales_anchor"), **SALES | change)
    assert (row["refused_sales_anchor"], row["target"]) == (
        refused,
        100_000 if refused else 130_000,
    )


# 4 formula


@pytest.mark.parametrize(
    ("base", "adjust_bp", "amount", "result"),
    [
        (100_000, 500, 0, 105_000),
        (100_000, -100, 0, 99_000),
        (100_000, 0, 2_500, 102_500),
        (100_000, 1_000, -2_500, 107_500),
        (10_001, 5_000, 0, 15_002),  # 1.50015 dollars: half a unit rounds up
        (3, 1, 0, 3),
        (100_000, -10_000, 5_000, 5_000),
        (100_000, 0, -200_000, -100_000),
    ],
)
def test_the_formula_adds_the_percentage_then_the_amount(base, adjust_bp, amount, result):
    assert (
        priced(a_rule(adjust_bp=adjust_bp, adjust_amount=amount), market=base)["after_formula"]
        == result
    )


# 7 bounds


@pytest.mark.parametrize(
    ("fields", "market", "result", "bound"),
    [
        ({"floor": 120_000}, 100_000, 120_000, "floor"),
        ({"floor": 120_000}, 120_000, 120_000, None),
        ({"ceiling": 80_000}, 100_000, 80_000, "ceiling"),
        ({"never_lower": True}, 90_000, 100_000, "never_lower"),
        ({"never_lower": True}, 110_000, 110_000, None),
        ({"never_lower": True, "ceiling": 80_000}, 70_000, 80_000, "ceiling"),
        ({"never_lower": True, "floor": 110_000}, 70_000, 110_000, "floor"),
        ({"adjust_amount": -900_000}, 90_000, 100, "marketplace_minimum"),
        ({"adjust_bp": 1_000_000}, 10**12 - 1, 999_999_999_900, "largest_price"),
    ],
)
def test_bounds_name_the_one_that_binds(fields, market, result, bound):
    row = priced(a_rule(**fields), market=market)
    assert (row["after_bounds"], row["bound"]) == (result, bound)


def test_a_card_without_a_current_price_has_no_never_lower():
    assert target(a_rule(never_lower=True), current_price=None, market=50_000) == 50_000


# 12 rounding


@pytest.mark.parametrize(
    ("ending", "market", "result"),
    [
        ("cent", 12_349, 12_300),
        ("cent", 12_350, 12_400),
        ("cent", 49, 100),
        ("x9", 12_300, 12_900),
        ("x9", 12_900, 12_900),
        ("x9", 12_950, 13_900),
        ("x99", 12_300, 19_900),
        ("x99", 19_900, 19_900),
        ("x99", 20_000, 29_900),
        ("x49_x99", 12_300, 14_900),
        ("x49_x99", 15_000, 19_900),
        ("x49_x99", 100, 4_900),
    ],
)
def test_prices_round_half_up_to_cents_and_endings_only_upward(ending, market, result):
    assert target(a_rule(rounding=ending), market=market) == result


@pytest.mark.parametrize(
    ("ceiling", "result"), [(19_900, 19_900), (19_899, 12_300), (12_300, 12_300)]
)
def test_an_ending_that_would_pass_a_ceiling_is_not_applied(ceiling, result):
    assert target(a_rule(rounding="x99", ceiling=ceiling), market=12_300) == result


def test_a_floor_with_fractions_of_a_cent_rounds_up_and_a_ceiling_down():
    assert target(a_rule(floor=12_301), market=100) == 12_400
    assert target(a_rule(ceiling=12_399), market=90_000) == 12_300


def test_never_lower_holds_for_fractions_of_a_cent_too():
    rule = a_rule(never_lower=True)
    assert priced(rule, current_price=12_301, market=100)["after_rounding"] == 12_400


# 13 change


@pytest.mark.parametrize(
    ("minimum", "market", "result"),
    [
        (100, 100_000, 100_000),
        (100, 100_100, 100_100),
        (5_000, 104_900, 100_000),
        (5_000, 105_000, 105_000),
        (5_000, 95_100, 100_000),
        (5_000, 95_000, 95_000),
        (0, 100_100, 100_100),
    ],
)
def test_an_equal_price_or_a_move_below_the_minimum_keeps_the_price(minimum, market, result):
    row = priced(seller=SellerPricing(minimum_move=minimum), market=market)
    assert (row["target"], row["changed"]) == (result, result != 100_000)


def test_a_card_without_a_price_gets_its_first():
    row = priced(seller=SellerPricing(minimum_move=900_000), current_price=None)
    assert (row["target"], row["changed"]) == (100_000, True)


def test_a_price_that_no_marketplace_can_show_is_not_kept():
    assert target(current_price=50, market=40) == 100


# 5 market_gate

GATE = MarketGate(min_listings=3, min_sales_30d=2, max_age_hours=24, undercut_bp=100)
DEEP = {
    "listings_low": 80_000,
    "listings_count": 3,
    "listings_observed_at": NOW - timedelta(hours=24),
    "sales_count": 2,
    "sales_fetched_at": NOW - timedelta(hours=24),
    "observed_at": NOW - timedelta(hours=24),
}
LATE = NOW - timedelta(hours=24, microseconds=1)


@pytest.mark.parametrize(
    ("change", "verdict", "result", "aggressive"),
    [
        ({}, "taken", 79_200, 79_200),
        ({"observed_at": LATE}, "market_stale", 100_000, None),
        ({"observed_at": NOW + timedelta(seconds=1)}, "market_stale", 100_000, None),
        ({"listings_low": None}, "no_listing", 100_000, None),
        ({"listings_observed_at": LATE}, "listings_stale", 100_000, 79_200),
        ({"listings_count": 2}, "too_few_listings", 100_000, 79_200),
        ({"sales_fetched_at": LATE}, "sales_stale", 100_000, 79_200),
        ({"sales_count": 1}, "too_few_sales", 100_000, 79_200),
        ({"buy_out_detected_at": NOW - timedelta(hours=4)}, "buy_out", 100_000, 79_200),
        ({"buy_out_detected_at": NOW - timedelta(hours=4, seconds=1)}, "taken", 79_200, 79_200),
        ({"listings_low": 110_000}, "not_lower", 100_000, 108_900),
    ],
)
def test_the_lowest_listing_is_undercut_only_on_fresh_and_deep_evidence(
    change, verdict, result, aggressive
):
    row = priced(a_rule(market_gate=GATE), **DEEP | change)
    assert (row["gate_verdict"], row["after_market_gate"], row["aggressive_price"]) == (
        verdict,
        result,
        aggressive,
    )


# 6 stale_reduction

STALE = Stale(after_days=60, step_bp=500, every_days=7, limit_bp=1_200)


@pytest.mark.parametrize(
    ("listed", "sold", "result"),
    [
        (59, None, 100_000),
        (60, None, 95_000),
        (66, None, 95_000),
        (67, None, 90_000),
        (74, None, 88_000),
        (400, None, 88_000),
        (400, 59, 100_000),
        (10, 400, 100_000),
        (None, None, 100_000),
    ],
)
def test_a_card_that_does_not_sell_gets_cheaper_step_by_step_to_a_limit(listed, sold, result):
    ago = {
        name: None if days is None else NOW - timedelta(days=days)
        for name, days in (("l", listed), ("s", sold))
    }
    assert target(a_rule(stale=STALE), listed_since=ago["l"], last_sold_at=ago["s"]) == result


def test_the_days_count_to_the_observation_and_not_to_the_run():
    since = {"listed_since": NOW - timedelta(days=62)}
    assert target(a_rule(stale=STALE), **since, observed_at=NOW - timedelta(days=3)) == 100_000


@pytest.mark.parametrize(
    ("boost", "moved", "result"),
    [(True, 14, 100_000), (True, 15, 95_000), (False, 1, 95_000), (True, None, 95_000)],
)
def test_a_recent_mover_is_spared_where_the_rule_says_so_and_gets_no_markup(boost, moved, result):
    moved_at = None if moved is None else NOW - timedelta(days=moved)
    rule = a_rule(stale=STALE, velocity_boost_enabled=boost)
    assert target(rule, listed_since=NOW - timedelta(days=60), last_moved_at=moved_at) == result


# 8 cap


@pytest.mark.parametrize(
    ("fields", "card", "result", "limit"),
    [
        ({}, {"market": 120_000}, 120_000, None),
        ({}, {"market": 130_000}, 120_000, 120_000),
        ({}, {"market": 50_000}, 90_000, 90_000),
        ({"mode": "hold"}, {"market": 130_000}, 100_000, 120_000),
        ({"up_bp": None}, {"market": 900_000}, 900_000, None),
        ({"up_bp": 0}, {"market": 900_000}, 100_000, 100_000),
        ({}, {"market": 130_000, "day_start_price": 50_000}, 100_000, 100_000),
        ({}, {"market": 900_000, "day_start_price": 200_000}, 240_000, 240_000),
        ({"period": "week"}, {"market": 130_000, "week_start_price": 105_000}, 126_000, 126_000),
        ({"period": "sync"}, {"market": 130_000, "day_start_price": 105_000}, 120_000, 120_000),
        ({}, {"market": 900_000, "current_price": None}, 900_000, None),
        ({"small": SmallCap(100_001, 5_000, None)}, {"market": 900_000}, 150_000, 150_000),
        ({"small": SmallCap(100_001, 5_000, None)}, {"market": 100}, 100, None),
        ({"small": SmallCap(100_000, 5_000, None)}, {"market": 900_000}, 120_000, 120_000),
        (
            {},
            {"market": 900_000, "buy_out_detected_at": NOW, "sales_median": 900_000},
            120_000,
            120_000,
        ),
    ],
)
def test_a_price_moves_only_so_far_within_a_period(fields, card, result, limit):
    row = priced(a_rule(cap=replace(Cap(2_000, 1_000), **fields)), **card)
    assert (row["after_cap"], row["seller_limit"]) == (result, limit)


@pytest.mark.parametrize(
    ("cap", "seller", "market", "asks", "short"),
    [
        (Cap(1_500, 1_500), {}, 2_900, 1_100, True),
        (Cap(1_500, 1_500), {}, 900, 900, False),
        (Cap(1_500, 1_500), {"minimum_cap_step": 200}, 2_900, 800, True),
        (Cap(1_500, 1_500), {"minimum_cap_step": 0}, 2_900, 600, True),
        (Cap(1_500, 1_500, mode="hold"), {}, 2_900, 600, True),
        # Fifteen percent of a dear card are more than the step, and nothing is still nothing.
        (Cap(9_000, 9_000), {}, 2_900, 1_100, True),
        (Cap(0, 1_500), {}, 2_900, 600, True),
        (Cap(None, 1_500), {}, 2_900, 2_900, False),
        (Cap(1_500, 0), {}, 100, 600, True),
        (Cap(1_500, 1_500), {}, 100, 100, False),
        (Cap(1_500, 1_500, small=SmallCap(50_000, 100, 100)), {}, 2_900, 1_100, True),
        # The price that the rule asks lies within the cent at which the cap stops.
        (Cap(1_500, 1_500, period="sync"), {"minimum_cap_step": 520}, 1_120, 1_100, False),
    ],
)
def test_a_cap_of_a_cheap_card_allows_one_step_and_says_where_it_stops(
    cap, seller, market, asks, short
):
    cards = frame_of([a_card(current_price=600, market=market)])
    out = price(cards, [a_rule(cap=cap)], SellerPricing(**seller), NOW)
    assert out["target"].to_list() == [asks]
    found = limited(out)
    assert found.height == summary(out).held == short
    if short:
        assert found.row(0, named=True) == {
            "marketplace_id": out["marketplace_id"].item(),
            "rule_id": 1,
            "held": cap.mode == "hold",
            "asked": market,
        }


def test_what_a_promotion_a_review_or_a_hold_out_keeps_is_not_said_to_be_limited():
    rule = a_rule(cap=Cap(1_500, 1_500))
    cards = frame_of([a_card(marketplace_id=n, market=900_000) for n in range(1, 400)])
    assert limited(price(cards, [rule], SELLER, NOW)).height == cards.height
    hour = timedelta(hours=1)
    on_sale = price(cards, [rule], SELLER, NOW, [Sale(1, "Sale", 1, -100, NOW - hour, NOW + hour)])
    assert limited(on_sale).is_empty()
    reviewed = replace(rule, review=ReviewLimits(up_bp=100))
    assert limited(price(cards, [reviewed], SELLER, NOW)).is_empty()
    drawn = price(cards, [replace(rule, holdout_bp=2_000)], SELLER, NOW)
    held = drawn.filter(pl.col("holdout") == "held").height
    assert 0 < held == cards.height - limited(drawn).height


def test_after_a_cap_the_price_rounds_to_its_inside():
    rule = a_rule(cap=Cap(1_550, 1_550))
    assert target(rule, current_price=12_300, market=90_000) == 14_200
    assert target(rule, current_price=12_300, market=100) == 10_400
    assert target(replace(rule, rounding="x99"), current_price=12_300, market=13_000) == 13_000


def test_a_cap_stops_before_a_floor_and_a_ceiling_that_are_further_away():
    cap = Cap(2_000, 2_000)
    assert target(a_rule(cap=cap, floor=300_000)) == 120_000
    assert target(a_rule(cap=cap, ceiling=30_000)) == 80_000


def test_a_held_price_is_left_to_the_last_fraction():
    rule = a_rule(cap=Cap(0, 0, mode="hold"), rounding="x99")
    row = priced(rule, SellerPricing(minimum_move=0), current_price=100_001, market=900_000)
    assert (row["target"], row["changed"], row["held"]) == (100_001, False, True)


# 9 sale

SALE = Sale(1, "Sale", 1, -1_000, NOW, NOW + timedelta(days=1))


def on_sale(rule: Rule = AT_MARKET, sale: Sale = SALE, **card: Any) -> int:
    return price(frame_of([a_card(**card)]), [rule], SELLER, NOW, [sale])["target"].item()


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({}, 90_000),
        ({"floor": 95_000}, 95_000),
        ({"starts_at": NOW + timedelta(seconds=1)}, 100_000),
        ({"starts_at": NOW - timedelta(days=1), "ends_at": NOW}, 100_000),
        ({"enabled": False}, 100_000),
        ({"broken": True}, 100_000),
    ],
)
def test_a_sale_applies_from_its_start_to_before_its_end_and_not_below_its_floor(change, result):
    assert on_sale(sale=replace(SALE, **change)) == result


def test_a_sale_takes_the_capped_price_and_goes_under_never_lower_but_not_under_the_floor():
    assert on_sale(a_rule(cap=Cap(2_000, 2_000)), market=900_000) == 108_000
    assert on_sale(a_rule(cap=Cap(2_000, 0))) == 90_000
    assert on_sale(a_rule(never_lower=True)) == 90_000
    assert on_sale(a_rule(floor=95_000)) == 95_000


@pytest.mark.parametrize(
    ("cost", "floor_cost_bp", "result"),
    [
        (92_000, None, 90_000),
        (92_000, 0, 92_000),
        (92_010, 0, 92_100),
        (90_000, 500, 94_500),
        # A price that is below what the card cost already stays; the sale does not raise it.
        (120_000, 0, 100_000),
        (None, 0, 90_000),
    ],
)
def test_a_sale_stops_at_what_the_card_cost_if_it_says_so(cost, floor_cost_bp, result):
    assert on_sale(sale=replace(SALE, floor_cost_bp=floor_cost_bp), cost=cost) == result


def test_a_sale_that_keeps_what_is_never_lowered_leaves_those_cards_alone():
    keeping = replace(SALE, keep_never_lower=True)
    assert on_sale(a_rule(never_lower=True), keeping) == 100_000
    assert on_sale(a_rule(never_lower=True), keeping, market=130_000) == 117_000
    assert on_sale(a_rule(never_lower=False), keeping) == 90_000


@pytest.mark.parametrize(
    ("rule", "change", "card", "said"),
    [
        (
            a_rule(),
            {"floor_cost_bp": 500},
            {"cost": 90_000},
            "Promotion “Sale” takes 10% off 10.00, but not below what the card cost plus 5%: 9.45.",
        ),
        (
            a_rule(never_lower=True),
            {"keep_never_lower": True},
            {},
            "Promotion “Sale” doesn't lower prices whose rule says “never lower”: 10.00.",
        ),
    ],
)
def test_what_stops_a_sale_is_told(rule, change, card, said):
    run = Run([rule], SELLER, NOW, [replace(SALE, name="Sale", **change)])
    row = price(frame_of([a_card(**card)]), run.rules, run.seller, NOW, run.sales).row(
        0, named=True
    )
    steps = sentences.explain(row, run)
    assert next(step["summary"] for step in steps if step["name"] == "sale") == said


def test_the_first_sale_by_priority_applies():
    sales = [SALE, replace(SALE, id=2, priority=0, adjust_bp=-5_000)]
    out = price(frame_of([a_card()]), [AT_MARKET], SELLER, NOW, sales)
    assert (out["sale_id"].item(), out["target"].item()) == (2, 50_000)


def test_a_resolved_sale_that_is_not_active_is_an_error_and_not_a_guess():
    cards = frame_of([a_card()]).with_columns(sale_id=pl.lit(2))
    with pytest.raises(ValueError, match=r"not active: \[2\]"):
        price(cards, [AT_MARKET], SELLER, NOW, [SALE])


# 10 direct_minimum, 11 fee_gap

DIRECT = SellerPricing(direct_program=True)


@pytest.mark.parametrize(
    ("seller", "card", "result"),
    [
        (DIRECT, {}, 4_000),
        (SELLER, {}, 1_000),
        (DIRECT, {"direct_low": None}, 1_000),
        (replace(DIRECT, direct_minimum=4_001), {}, 4_100),
    ],
)
def test_a_direct_card_asks_at_least_the_minimum_also_past_its_cap(seller, card, result):
    rule = a_rule(cap=Cap(1_000, 1_000))
    assert target(rule, seller, current_price=1_000, market=1_000, **card) == result


@pytest.mark.parametrize(
    ("seller", "market", "result"),
    [
        (DIRECT, 24_800, 24_800),
        (DIRECT, 24_900, 27_300),
        (DIRECT, 27_200, 27_300),
        (DIRECT, 27_300, 27_300),
        (replace(DIRECT, fee_level="pro"), 24_900, 27_600),
        (SELLER, 24_900, 24_900),
    ],
)
def test_a_price_in_the_fee_gap_goes_to_its_end_also_past_the_cap(seller, market, result):
    rule = a_rule(fee_gap_adjustment=True, cap=Cap(0, 10_000))
    assert target(rule, seller, current_price=market, market=market) == result
    assert (
        target(replace(rule, fee_gap_adjustment=False), seller, current_price=market, market=market)
        == market
    )


def test_a_ceiling_inside_the_gap_leaves_the_price_there():
    assert target(a_rule(fee_gap_adjustment=True, ceiling=27_000), DIRECT, market=26_000) == 26_000


def test_before_the_direct_schedule_there_is_no_gap():
    early = datetime(2026, 6, 18, 3, 59, tzinfo=UTC)
    rule = a_rule(fee_gap_adjustment=True)
    assert priced(rule, DIRECT, now=early, market=25_000, observed_at=early)["target"] == 25_000
    late = early + timedelta(minutes=1)
    assert priced(rule, DIRECT, now=late, market=25_000, observed_at=late)["target"] == 27_300


@pytest.mark.parametrize(
    ("cents", "level", "direct", "left"),
    [
        (1_000, "1-4", False, "8.375"),
        (1_000, "pro", False, "8.275"),
        (100_000, "1-4", False, "899.70"),
        (248, "1-4", True, "1.24"),
        (249, "1-4", True, "1.040075"),
        (273, "pro", True, "1.220975"),
    ],
)
def test_what_the_marketplace_leaves_of_a_price(cents, level, direct, left):
    schedule = schedule_at(NOW)
    assert Decimal(net(cents * 100, schedule, level, direct=direct)).scaleb(-8) == Decimal(left)


# A rule whose query rotted


def test_a_broken_rule_blocks_whatever_no_earlier_rule_governs():
    rules = [
        a_rule(id=1, priority=1),
        a_rule(id=2, priority=2, broken=True),
        a_rule(id=3, priority=3),
    ]
    cards = frame_of([a_card(marketplace_id=n) for n in range(2)]).with_columns(
        rule_id=pl.Series([1, 2])
    )
    out = price(cards, rules, SELLER, NOW)
    assert out["target"].to_list() == [100_000, None]
    assert blocker_codes(out["blockers"][1]) == ["rule_broken"]
    assert [step["name"] for step in explain(out.row(1, named=True), rules)] == [
        "eligibility",
        "governing_rule",
    ]


# Presets


@pytest.mark.parametrize(
    ("name", "result"),
    [("premium", 105_000), ("competitive", 100_000), ("move", 90_000), ("buy-box", 93_100)],
)
def test_presets_price_a_plain_card(name, result):
    assert target(preset_rule(name)) == result


# Input


def test_money_as_floats_is_refused():
    with pytest.raises(TypeError, match="market is Float64"):
        price(frame_of([a_card()]).cast({"market": pl.Float64}), [AT_MARKET], SELLER, NOW)


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match="cards lack direct_low, low"):
        price(frame_of([a_card()]).drop("low", "direct_low"), [AT_MARKET], SELLER, NOW)


def test_optional_columns_may_be_left_out_and_narrow_integers_are_widened():
    cards = frame_of([a_card(market=120_000)]).select(
        *(
            "marketplace_id",
            "condition",
            "printing",
            "language",
            "custom",
            "direct_low",
            "low",
            "low_with_shipping",
        ),
        *("current_price", "observed_at", pl.col("market", "quantity").cast(pl.Int32)),
    )
    assert price(cards, [AT_MARKET], SELLER, NOW)["target"].to_list() == [120_000]


def test_a_naive_now_and_rules_of_one_id_are_refused():
    with pytest.raises(ValueError, match="time zone"):
        price(frame_of([]), [], SELLER, NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="same id"):
        price(frame_of([]), [AT_MARKET, AT_MARKET], SELLER, NOW)


def test_now_in_another_zone_is_the_same_moment():
    there = NOW.astimezone(timezone(timedelta(hours=-5)))
    assert priced(now=there, observed_at=NOW - WEEK)["target"] == 100_000


def test_the_receipt_has_every_column_typed_even_without_cards_or_rules():
    for rules in ([], [AT_MARKET]):
        empty = price(frame_of([]), rules, SELLER, NOW)
        assert dict(list(empty.schema.items())[-len(RECEIPT_COLUMNS) :]) == RECEIPT_COLUMNS


def test_pricing_a_priced_frame_again_gives_the_same_frame():
    once = price(frame_of([a_card(market=120_000)]), [AT_MARKET], SELLER, NOW)
    assert price(once, [AT_MARKET], SELLER, NOW).equals(once)


# summary, explain


def test_the_summary_counts_what_happened():
    cards = [a_card(market=m) for m in (None, 90_000, 100_000, 120_000, 130_000)]
    cards += [a_card(current_price=None), a_card(market=None, quantity=0), a_card(pin=100_000)]
    assert summary(price(frame_of(cards), [AT_MARKET], SELLER, NOW)) == Summary(
        *(8, 6, 4, 2, 3, 1, 0, 0),
        up_value=150_000,
        down_value=10_000,
        blocked={"no_usable_reference": 2, "out_of_stock": 1},
    )


def explained(rules: Sequence[Rule], **card: Any) -> list[dict[str, Any]]:
    return explain(price(frame_of([a_card(**card)]), rules, SELLER, NOW).row(0, named=True), rules)


def test_an_explanation_names_the_steps_that_ran_in_their_order():
    steps = explained([AT_MARKET])
    names = [
        "eligibility", "governing_rule", "price_source", "formula", "market_gate", "undercut",
        "stale_reduction", "bounds", "cap",
        "sale", "direct_minimum", "fee_gap", "rounding", "change",
    ]  # fmt: skip
    assert [step["name"] for step in steps] == names
    for step in steps:
        assert {"name", "input", "output", "summary"} <= step.keys()
        assert step["summary"].endswith(".")
        assert "\n" not in step["summary"]


def test_each_step_takes_what_the_one_before_left():
    steps = explained([a_rule(adjust_bp=-333, floor=99_999, rounding="x49_x99")], market=101_234)
    assert [step["output"] for step in steps[:-1]] == [step["input"] for step in steps[1:]]
    prices = dict.fromkeys(("eligibility", "governing_rule"), "10.00") | {"price_source": "10.1234"}
    prices |= dict.fromkeys(("formula", "market_gate", "undercut", "stale_reduction"), "9.7863")
    prices |= dict.fromkeys(("bounds", "cap", "sale", "direct_minimum", "fee_gap"), "9.9999")
    prices |= dict.fromkeys(("rounding", "change"), "10.49")
    assert {step["name"]: step["output"] for step in steps} == prices


def test_a_blocked_cards_explanation_ends_with_the_reason():
    steps = explained([a_rule(fallback_sources=("low",))], market=None, observed_at=NOW - 2 * WEEK)
    assert steps[0]["blockers"] == ["no_usable_reference"]
    assert steps[-1]["unused_sources"] == [
        {"source": "market", "reason": "absent"},
        {"source": "low", "reason": "too_old"},
    ]
    assert (steps[-1]["name"], steps[-1]["output"], steps[-1]["source"]) == (
        "price_source",
        None,
        None,
    )


def test_without_a_rule_the_explanation_ends_there():
    assert [step["name"] for step in explained([])] == ["eligibility", "governing_rule"]


def test_the_losing_candidates_are_those_behind_the_governing_rule():
    rules = [
        a_rule(id=3, priority=30),
        a_rule(id=1, priority=10),
        a_rule(id=2, priority=20),
        a_rule(id=4, state="draft"),
    ]
    assert explained(rules)[1]["losing_candidates"] == [2, 3]


def test_a_receipt_with_an_earlier_source_refused_says_why():
    source = explained([a_rule(fallback_sources=("low",))], market=None)[2]
    assert (
        source["summary"]
        == "The starting price is the lowest listing, 9.00, because market is missing."
    )
    assert source["observed_at"] == "2026-11-21T08:00:00Z"


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({}, "The price is already 10.00."),
        ({"market": 120_000}, "The price changes from 10.00 to 12.00."),
        ({"current_price": None}, "The first price is 10.00."),
        ({"current_price": 100_050}, "The price stays at 10.005: 10.00 is too small a change."),
    ],
)
def test_the_last_step_says_what_becomes_of_the_price(card, said):
    assert explained([AT_MARKET], **card)[-1]["summary"] == said


@pytest.mark.parametrize(
    ("rule", "card", "said"),
    [
        ({}, {}, "10.00 needs no rounding."),
        ({}, {"market": 100_049}, "10.0049 is 10.00 in whole cents."),
        ({"rounding": "x99"}, {}, "10.00 rounds up to end in x99: 10.99."),
        (
            {"ceiling": 99_990},
            {},
            "9.999 becomes 9.99, the highest price that the ceiling and cap allow.",
        ),
        (
            {"floor": 120_010},
            {},
            "12.001 becomes 12.01, the lowest price that the floor, cap and Direct minimum allow.",
        ),
    ],
)
def test_the_rounding_step_says_why_it_is_not_the_nearest_cent(rule, card, said):
    assert explained([a_rule(**rule)], **card)[-2]["summary"] == said


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"floor": 120_000}, "10.00 is below the rule's floor of 12.00."),
        ({"ceiling": 80_000}, "10.00 is above the rule's ceiling of 8.00."),
        (
            {"never_lower": True, "adjust_bp": -500},
            "9.50 is below the current price, which the rule never lowers: 10.00.",
        ),
        ({"adjust_bp": -10_000}, "0.00 is below TCGplayer's minimum, 0.01."),
    ],
)
def test_a_bound_is_told_in_words(rule, said):
    assert explained([a_rule(**rule)])[7]["summary"] == said


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        (None, "Promotion “Sale” takes 10% off 10.00: 9.00."),
        (95_000, "Promotion “Sale” takes 10% off 10.00, but not below its floor of 9.50."),
        (120_000, "10.00 is below the floor of promotion “Sale”, 12.00."),
    ],
)
def test_a_sale_is_told_with_its_floor(floor, said):
    run = Run([AT_MARKET], SELLER, NOW, [replace(SALE, name="Sale", floor=floor)])
    row = price(frame_of([a_card()]), run.rules, run.seller, NOW, run.sales).row(0, named=True)
    assert sentences.explain(row, run)[9]["summary"] == said


def test_a_fee_gap_that_a_ceiling_keeps_the_price_in_is_told():
    rule = a_rule(fee_gap_adjustment=True, ceiling=26_000)
    cards = frame_of([a_card(market=25_000, direct_low=20_000)])
    direct = replace(SELLER, direct_program=True)
    steps = sentences.explain(
        price(cards, [rule], direct, NOW).row(0, named=True), Run([rule], direct, NOW)
    )
    assert (
        steps[11]["summary"]
        == "2.50 is in a fee gap, but the ceiling is below the end of the gap, 2.73."
    )


def test_explaining_needs_the_rules_of_the_run():
    row = price(frame_of([a_card()]), [AT_MARKET], SELLER, NOW).row(0, named=True)
    with pytest.raises(ValueError, match="rule 1 is not among"):
        explain(row, [])


# Properties

seeds = st.integers(0, 2**32)


def bytes_of(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.sort("marketplace_id").write_ipc(buffer)
    return buffer.getvalue()


def many(rng: random.Random, seller: SellerPricing, count: int) -> list[Card]:
    return [random_card(rng, number, seller) for number in range(count)]


@pytest.mark.day
@given(seeds)
@settings(deadline=None)
def test_the_same_cards_in_any_order_give_the_same_bytes(seed):
    rng = random.Random(seed)
    seller, rule = random_seller(rng), random_rule(rng)
    cards = many(rng, seller, 40)
    first = bytes_of(price(frame_of(cards), [rule], seller, NOW))
    rng.shuffle(cards)
    assert bytes_of(price(frame_of(cards), [rule], seller, NOW)) == first


@pytest.mark.day
@given(seeds)
@example(seed=111363)
@settings(deadline=None)
def test_every_new_price_is_inside_the_sellers_limits(seed):
    rng = random.Random(seed)
    seller, rule = random_seller(rng), random_rule(rng)
    sales = [random_sale(rng, 1)] if rng.random() < 0.5 else []
    inside_the_limits(
        price(frame_of(many(rng, seller, 60)), [rule], seller, NOW, sales), rule, seller
    )


def inside_the_limits(out: pl.DataFrame, rule: Rule, seller: SellerPricing) -> None:
    """Under 0.01 and under the hard floor never; outside floor and ceiling only where a cap or the
    hard floor stops before them; outside the cap only by the hard floor and steps 9 to 11.
    """
    hard_floor = -(-(seller.hard_floor or 0) // 100) * 100
    assert out["target"].dtype == pl.Int64
    assert (out["target"].drop_nulls() >= 100).all()
    held = pl.col("held").fill_null(False) & (pl.col("after_rounding") == pl.col("current_price"))
    new = out.filter(pl.col("pin").is_null() & pl.col("after_rounding").is_not_null() & ~held)
    assert (new["after_rounding"] % 100 == 0).all()
    moved = new.filter("changed")
    free = moved.filter(pl.col("review").is_null())
    assert free["target"].equals(free["after_rounding"])
    # A move that waits goes at most as far as the price that the seller accepted.
    waits = moved.filter(pl.col("review").is_not_null())
    assert waits["target"].equals(waits["approved_price"])
    assert (waits["target"] % 100 == 0).all()
    assert (waits["target"] >= hard_floor).all()
    limit, rounded = pl.col("seller_limit"), pl.col("after_rounding")
    stopped_below, stopped_above = limit < pl.col("after_bounds"), limit > pl.col("after_bounds")
    assert (new["after_rounding"] >= hard_floor).all()
    if rule.ceiling is not None:
        highest = max(rule.ceiling, hard_floor)
        assert new.filter((rounded > highest) & ~stopped_above.fill_null(False)).is_empty()
    if rule.floor is not None:
        assert new.filter((rounded < rule.floor) & ~stopped_below.fill_null(False)).is_empty()
    on_sale = pl.col("sale_id").is_not_null()
    if rule.never_lower:
        hard = max((rule.ceiling or 999_999_999_900) // 100 * 100, hard_floor)
        lower = rounded < pl.col("current_price").clip(upper_bound=hard)
        assert new.filter(lower & ~on_sale & ~stopped_below.fill_null(False)).is_empty()
    before_cents = pl.coalesce(
        *("after_fee_gap", "after_direct_minimum", "after_hard_floor"),
        *("after_sale", "after_cap", "after_bounds"),
    )
    raised = before_cents > limit
    minimum = -(-seller.direct_minimum // 100) * 100
    allowed = (
        raised
        | on_sale
        | (rounded <= hard_floor)
        | (seller.direct_program & pl.col("direct_low").is_not_null() & (rounded <= minimum))
    )
    assert new.filter(stopped_below & (rounded > limit.clip(100)) & ~allowed).is_empty()
    assert new.filter(
        stopped_above & (rounded < limit) & ~on_sale & ~no_cent_between(rule.cap, seller)
    ).is_empty()
    # A cap that allows a move allows the least step.
    step, start = seller.minimum_cap_step, pl.col("period_start_price")
    if rule.cap is not None and rule.cap.up_bp and rule.cap.small is None:
        assert new.filter(stopped_below & (limit < start + step)).is_empty()
    if rule.cap is not None and rule.cap.down_bp and rule.cap.small is None:
        assert new.filter(stopped_above & (limit > start - step)).is_empty()


def no_cent_between(cap: Cap | None, seller: SellerPricing) -> pl.Expr:
    """Both limits of the cap lie inside one cent: then the upper one holds, and the price ends
    under the lower.
    """
    if cap is None:
        return pl.lit(False)
    start, up = pl.col("period_start_price"), pl.lit(cap.up_bp, pl.Int64)
    if cap.small is not None:
        up = pl.when(start < cap.small.below).then(pl.lit(cap.small.up_bp, pl.Int64)).otherwise(up)
    step = pl.when(up > 0).then(start + seller.minimum_cap_step)
    highest = pl.max_horizontal(start * (10_000 + up) // 10_000, step, "current_price")
    return (up.is_not_null() & (highest // 100 * 100 < pl.col("seller_limit"))).fill_null(False)


# Close together somewhere, beside a sweep over all prices: a step down hides between two that are
# far apart.
MARKETS = st.builds(
    lambda first, step: [first + step * number for number in range(60)],
    st.integers(1, 3_000_000),
    st.sampled_from([1, 7, 50, 99, 1_000, 10_000, 50_000]),
)
SWEEP = [int(100 * 1.02**number) for number in range(520)]


@pytest.mark.day
@given(seeds, MARKETS)
@settings(deadline=None)
def test_a_higher_source_price_never_gives_a_lower_price(seed, markets):
    rng = random.Random(seed)
    seller = replace(
        random_seller(rng), automatic_pricing_paused=False, awaiting_review=False, max_age_hours=168
    )
    rule = replace(
        random_rule(rng), enabled=True, state="published", price_source="market", broken=False
    )
    # A cap that holds goes back to the current price from above: what is beyond the limit is not
    # a price of the rule.
    rule = replace(rule, cap=rule.cap and replace(rule.cap, mode="clamp"))
    # So does a price that waits for a review.
    rule = replace(rule, review=ReviewLimits())
    card = random_card(rng, 0, seller) | {
        "quantity": 1,
        "pin": None,
        "product_line_enabled": True,
        "observed_at": NOW,
    }
    # A cap that stops at a current price with fractions of a cent goes inside it, "never lower"
    # goes above it: nobody can have both.
    card |= {"current_price": card["current_price"] and max(card["current_price"] // 100, 1) * 100}
    cards = [card | {"market": market} for market in sorted({*markets, *SWEEP})]
    out = price(frame_of(cards), [rule], seller, NOW, [random_sale(rng, 1)])
    for step in PRICE_STEPS:
        if out[step.output].null_count() == 0:
            assert out[step.output].is_sorted(), step.output


# Against the reference


def compare(
    cards: list[Card], rules: Sequence[Rule], seller: SellerPricing, sales: Sequence[Sale] = ()
) -> None:
    run = Run(rules, seller, NOW, sales)
    rows = priced_rows(frame_of(cards), rules, seller, NOW, sales)
    left_out = {step.output for step in PRICE_STEPS if not step.needed(run)}
    for card, row in zip(cards, rows, strict=True):
        wanted = {
            name: value
            for name, value in expected(card, rules, seller, NOW, sales).items()
            if name not in left_out
        }
        got = {name: row[name] for name in wanted} | {
            "blockers": set(blocker_codes(row["blockers"]))
        }
        got["held"] = bool(got["held"])
        assert got == wanted, (card, rules, seller, sales)
        for step in sentences.explain(row, run):
            assert step["summary"]


def compare_random(seed: int, cases: int, each: int = 50) -> None:
    rng = random.Random(seed)
    for _ in range(cases // each):
        seller = random_seller(rng)
        rules = [random_rule(rng, number) for number in range(1, rng.choice([1, 1, 2, 4]) + 1)]
        rules = [rule for rule in rules if rule.priority != 1_000 or rule is rules[-1]]
        sales = [random_sale(rng, number) for number in range(1, rng.choice([1, 1, 2, 4]))]
        compare(many(rng, seller, each), rules, seller, sales)


@pytest.mark.day
def test_three_thousand_random_cards_are_priced_as_the_reference_does():
    compare_random(seed=20261121, cases=3_000)


@pytest.mark.night
@pytest.mark.day
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_random_cards_are_priced_as_the_reference_does(seed):
    compare_random(seed=seed, cases=10_000)


@pytest.mark.day
@given(seeds)
@settings(deadline=None)
def test_any_seed_is_priced_as_the_reference_does(seed):
    compare_random(seed, cases=5, each=5)


money = (
    st.none() | st.integers(-100, 300_000) | st.integers(1, 3_000).map(lambda cents: cents * 100)
)


@pytest.mark.day
@given(
    preset=st.sampled_from(list(PRESETS)),
    rounding=st.sampled_from(["cent", "x9", "x99", "x49_x99"]),
    card=st.fixed_dictionaries(
        dict.fromkeys(("current_price", "market", "low", "low_with_shipping"), money),
        optional={"day_start_price": money, "custom": st.booleans(), "quantity": st.integers(0, 3)},
    ),
)
@settings(deadline=None)
def test_presets_are_priced_as_the_reference_does(preset, rounding, card):
    compare([a_card(**card)], [replace(preset_rule(preset), rounding=rounding)], SELLER)


@pytest.mark.night
@pytest.mark.day
@pytest.mark.parametrize("seed", range(10))
def test_a_million_cards_are_priced_inside_the_sellers_limits(seed):
    """Fifty cards drawn one by one for each of twenty rules, each market price of a hundred
    around it: 10 x 100,000.
    """
    rng = random.Random(seed)
    for _ in range(20):
        seller, rule, sales = random_seller(rng), random_rule(rng), [random_sale(rng, 1)]
        drawn = frame_of(many(rng, seller, 50))
        factors = pl.DataFrame({"factor": [rng.randrange(1, 30_000) for _ in range(100)]})
        cards = drawn.join(factors, how="cross").with_columns(
            marketplace_id=pl.int_range(pl.len(), dtype=pl.Int64),
            market=(pl.col("market") // 10_000 * pl.col("factor")).clip(upper_bound=10**12 - 1),
        )
        out = price(cards.drop("factor"), [rule], seller, NOW, sales)
        assert out.height == 5_000
        inside_the_limits(out, rule, seller)
        again = price(cards.drop("factor").reverse(), [rule], seller, NOW, sales)
        assert again.reverse().equals(out)
