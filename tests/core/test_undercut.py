"""The undercut upward, and the seller-wide floor, adder and scope: a table of cases per sentence of
the specification, with the clock on each edge.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.pricing_reference import NOW, a_card, frame_of

from cardsync.prices.engine.engine import price
from cardsync.prices.engine.preset_rules import PRESETS
from cardsync.prices.engine.rules import Cap, InvalidRule, MarketGate, Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.receipts import sentences
from cardsync.prices.receipts.sentences import blocker_codes

RULE = Rule(id=1, name="At market", priority=10, state="published", undercut_up_bp=500)
SELLER = SellerPricing()
DAY = timedelta(hours=24)
A_MOMENT = timedelta(microseconds=1)
SEEN: dict[str, Any] = {"listings_low": 200_000, "listings_observed_at": NOW}


def priced(
    rule: Rule = RULE, seller: SellerPricing = SELLER, sale: Sale | None = None, **card: Any
):
    sales = [sale] if sale else []
    return price(frame_of([a_card(**card)]), [rule], seller, NOW, sales).row(0, named=True)


def told(name: str, rule: Rule = RULE, seller: SellerPricing = SELLER, **card: Any) -> Any:
    steps = sentences.explain(priced(rule, seller, **card), Run([rule], seller, NOW))
    return next((step for step in steps if step["name"] == name), None)


@pytest.mark.parametrize(
    ("card", "price_after", "verdict"),
    [
        (SEEN, 190_000, "taken"),
        ({**SEEN, "listings_observed_at": NOW - DAY}, 190_000, "taken"),
        # A listing that is too old gives way to the upload's low price.
        ({**SEEN, "listings_observed_at": NOW - DAY - A_MOMENT}, 100_000, "not_above"),
        ({**SEEN, "listings_observed_at": NOW - DAY - A_MOMENT, "low": 300_000}, 285_000, "taken"),
        ({**SEEN, "listings_observed_at": NOW + A_MOMENT}, 100_000, "not_above"),
        ({"low": 120_000}, 114_000, "taken"),
        ({"low": 105_000}, 100_000, "not_higher"),
        ({"low": 100_000}, 100_000, "not_above"),
        ({"low": None}, 100_000, "no_listing"),
        ({**SEEN, "buy_out_detected_at": NOW - timedelta(hours=4)}, 100_000, "buy_out"),
        ({**SEEN, "buy_out_detected_at": NOW}, 100_000, "buy_out"),
        ({**SEEN, "buy_out_detected_at": NOW - timedelta(hours=4) - A_MOMENT}, 190_000, "taken"),
        # A stamp from the future is unknown.
        ({**SEEN, "buy_out_detected_at": NOW + A_MOMENT}, 190_000, "taken"),
        # The card's own fresh listings count more than the upload's low price.
        ({**SEEN, "low": 900_000}, 190_000, "taken"),
    ],
)
def test_the_price_rises_to_just_under_the_lowest_listing(card, price_after, verdict):
    row = priced(**card)
    assert (row["after_undercut"], row["undercut_verdict"]) == (price_after, verdict)


def test_the_low_of_an_old_upload_is_no_listing():
    rule = replace(RULE, price_source="current", fallback_sources=())
    row = priced(rule, low=200_000, observed_at=NOW - timedelta(hours=169))
    assert row["undercut_verdict"] == "no_listing"


def test_the_age_of_listings_is_that_of_the_rules_gate():
    gate = MarketGate(min_listings=99, min_sales_30d=0, max_age_hours=48, undercut_bp=100)
    row = priced(replace(RULE, market_gate=gate), **{**SEEN, "listings_observed_at": NOW - 2 * DAY})
    assert row["undercut_verdict"] == "taken"


def test_a_rise_stays_under_ceiling_and_cap():
    assert priced(replace(RULE, ceiling=150_000), **SEEN)["target"] == 150_000
    capped = priced(replace(RULE, cap=Cap(up_bp=1_000, down_bp=1_000)), **SEEN)
    assert (capped["after_undercut"], capped["target"]) == (190_000, 110_000)


def test_presets_made_from_now_on_rise():
    assert {name: rule.undercut_up_bp for name, rule in PRESETS.items()} == {
        "premium": 500,
        "competitive": 100,
        "move": None,
        "buy-box": None,
    }


def test_the_step_tells_listing_source_and_age():
    step = told("undercut", low=120_000)
    assert step["summary"] == (
        "The lowest listing (12.00) is above 10.00, so the price rises to 5% below it: 11.40."
    )
    assert (step["lowest_listing"], step["listing_source"]) == ("12.00", "low")
    assert step["listing_observed_at"] == "2026-11-21T08:00:00Z"
    said = told("undercut", low=100_000)["summary"]
    assert said == "The lowest listing (10.00) is not higher, so no change."
    plain = replace(RULE, undercut_up_bp=None)
    assert told("undercut", plain)["summary"] == "The rule doesn't go up to the lowest listing."


@pytest.mark.parametrize("bp", [-1, 5_001])
def test_the_distance_has_limits(bp):
    with pytest.raises(InvalidRule, match="undercut_up_bp: must be between 0 and 5000"):
        replace(RULE, undercut_up_bp=bp)


@given(
    st.integers(1, 400_000),
    st.integers(0, 5_000),
    st.one_of(st.none(), st.integers(1, 400_000)),
    st.one_of(st.none(), st.integers(100, 300_000)),
    st.one_of(st.none(), st.integers(0, 3_000)),
)
@settings(deadline=None)
def test_the_undercut_passes_neither_cap_nor_ceiling_nor_floor(low, bp, listing, ceiling, up):
    rule = replace(
        RULE,
        undercut_up_bp=bp,
        ceiling=ceiling,
        floor=100,
        cap=None if up is None else Cap(up_bp=up, down_bp=None),
    )
    row = priced(rule, low=low, listings_low=listing, listings_observed_at=NOW)
    plain = priced(replace(rule, undercut_up_bp=None), low=low)
    lowest = listing or low
    assert row["target"] >= plain["target"]
    if row["target"] > plain["target"]:
        # One cent more may come from rounding.
        assert row["target"] <= max(lowest, plain["target"]) + 50
    if ceiling is not None and up is None:
        assert row["target"] <= ceiling
    if up is not None:
        assert row["target"] <= max(100_000 * (10_000 + up) // 10_000, 100_000)


# Seller-wide


def test_a_hard_floor_binds_rules_sales_caps_and_ceilings():
    floored = replace(SELLER, hard_floor=120_000)
    row = priced(replace(RULE, undercut_up_bp=None), floored)
    assert (row["after_bounds"], row["bound"], row["target"]) == (120_000, "hard_floor", 120_000)
    sale = Sale(1, "Sale", 1, -5_000, NOW - DAY, NOW + DAY, floor=10_000)
    assert priced(RULE, floored, sale)["target"] == 120_000
    capped = replace(RULE, cap=Cap(up_bp=1_000, down_bp=1_000))
    assert priced(capped, floored)["target"] == 120_000
    held = replace(RULE, cap=Cap(up_bp=1_000, down_bp=1_000, mode="hold"))
    assert priced(held, floored)["target"] == 120_000
    assert priced(replace(RULE, ceiling=50_000), floored)["target"] == 120_000
    assert priced(RULE, replace(SELLER, hard_floor=99_901))["target"] == 100_000


def test_the_hard_floor_leaves_a_pin_alone():
    assert priced(RULE, replace(SELLER, hard_floor=120_000), pin=50_000)["target"] == 50_000


def test_the_hard_floor_is_told_only_where_it_is_set():
    assert told("hard_floor") is None
    capped = replace(RULE, cap=Cap(up_bp=1_000, down_bp=1_000))
    step = told("hard_floor", capped, replace(SELLER, hard_floor=120_000))
    assert step["summary"] == "11.00 is below your minimum price of 12.00."


@pytest.mark.parametrize(
    ("market", "after"),
    [(499_999, 499_999), (500_000, 512_700), (500_001, 512_701), (900_000, 912_700)],
)
def test_the_adder_is_asked_from_the_tracking_threshold_on(market, after):
    seller = replace(SELLER, shipping_adder=12_700)
    row = priced(replace(RULE, undercut_up_bp=None), seller, market=market)
    assert row["after_shipping_adder"] == after


def test_the_adder_is_told():
    seller = replace(SELLER, shipping_adder=12_700)
    said = "At 50.00 and above, 1.27 is added for tracked shipping: 61.27."
    assert told("shipping_adder", RULE, seller, market=600_000)["summary"] == said
    said = "10.00 is below the tracking threshold of 50.00."
    assert told("shipping_adder", RULE, seller)["summary"] == said
    assert told("shipping_adder") is None


DEFAULT = replace(RULE, id=2, priority=1_000)
OF_MAGIC = replace(RULE, query="game:magic")


@pytest.mark.parametrize(
    ("rules", "scope", "has_rules", "blocked"),
    [
        ([OF_MAGIC, DEFAULT], "all_games", False, []),
        ([OF_MAGIC, DEFAULT], "games_with_rules", True, []),
        ([OF_MAGIC, DEFAULT], "games_with_rules", None, []),
        ([OF_MAGIC, DEFAULT], "games_with_rules", False, ["game_without_rules"]),
        # A rule without a query selects cards of every game; the default rule does not count.
        ([RULE, DEFAULT], "games_with_rules", None, []),
        ([DEFAULT], "all_games", None, []),
        ([DEFAULT], "games_with_rules", None, ["game_without_rules"]),
        ([replace(OF_MAGIC, enabled=False), DEFAULT], "games_with_rules", True,
         ["game_without_rules"]),
    ],
)  # fmt: skip
def test_games_without_rules_are_left_alone_where_the_seller_says_so(
    rules, scope, has_rules, blocked
):
    cards = frame_of([a_card(game_has_rules=has_rules)]).with_columns(rule_id=rules[-1].id)
    seller = replace(SELLER, repricing_scope=scope)
    row = price(cards, rules, seller, NOW).row(0, named=True)
    assert blocker_codes(row["blockers"]) == blocked
    assert (row["target"] is None) == bool(blocked)


@pytest.mark.parametrize(
    "wrong", [{"hard_floor": 0}, {"shipping_adder": 0}, {"repricing_scope": "some"}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidRule, match=next(iter(wrong))):
        replace(SELLER, **wrong)
