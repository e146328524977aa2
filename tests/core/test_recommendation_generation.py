"""Generation over random shops: every review has fresh evidence and keeps the seller's limits, no
blocked or pinned card has one, and the order of the cards changes nothing.
"""

import math
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.prices.engine import engine
from cardsync.prices.engine.rules import Cap, Rule
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.recommendations import generation
from cardsync.prices.recommendations.evidence_json import evidence_of
from cardsync.sales.lots.fee_schedule import net

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = timedelta(hours=24)
FRESH = {
    "depth_raise": "listings_observed_at",
    "sales_anchor": "sales_fetched_at",
    "generic_raise": "observed_at",
    "demand_pulse": "sales_fetched_at",
}
WITHIN = dict.fromkeys(FRESH, DAY) | {"generic_raise": timedelta(hours=168)}

AGES = st.sampled_from(
    [timedelta(0), DAY, DAY + timedelta(microseconds=1), -timedelta(seconds=1), timedelta(days=8)]
)
TIMES = st.one_of(st.none(), AGES.map(lambda age: NOW - age))
PRICES = st.one_of(st.none(), st.integers(1, 400).map(lambda price: price * 1_000))
COUNTS = st.integers(0, 12)
CARDS = st.lists(
    st.fixed_dictionaries(
        {
            "quantity": st.integers(0, 5),
            "current_price": PRICES,
            "market": PRICES,
            "low": PRICES,
            "direct_low": PRICES,
            "observed_at": TIMES,
            "pin": st.sampled_from([None, None, None, 50_000]),
            "product_line_enabled": st.sampled_from([True, True, True, False]),
            "sales_median": PRICES,
            "sales_count": COUNTS,
            "sales_newest_at": TIMES,
            "sales_fetched_at": TIMES,
            "listings_low": PRICES,
            "listings_count": COUNTS,
            "listings_observed_at": TIMES,
            "buy_out_detected_at": st.sampled_from(
                [None, None, NOW - timedelta(hours=4), NOW - timedelta(hours=4, seconds=1)]
            ),
            "sales_week": COUNTS,
        }
    ),
    min_size=1,
    max_size=25,
)
RULES = st.builds(
    lambda floor, room, up, mode, never_lower, source: Rule(
        id=1,
        name="Own",
        priority=1,
        state="published",
        price_source=source,
        floor=floor,
        ceiling=None if room is None else (floor or 0) + room,
        cap=None if up is None else Cap(up, up, period="sync", mode=mode),
        never_lower=never_lower,
    ),
    st.sampled_from([None, 5_000, 200_000]),
    st.sampled_from([None, 10_000, 90_000]),
    st.sampled_from([None, 0, 1_000]),
    st.sampled_from(["clamp", "hold"]),
    st.booleans(),
    st.sampled_from(["market", "current"]),
)
TYPES = {
    **engine.INPUT_COLUMNS,
    "id": pl.Int64(),
    "sales_week": pl.Int64(),
    "target_price": pl.Int64(),
}


def frame(cards):
    rows = [
        dict.fromkeys(TYPES) | {"id": n, "marketplace_id": n, "custom": False} | card
        for n, card in enumerate(cards, 1)
    ]
    return pl.DataFrame(rows, schema=TYPES, orient="row")


def reviewed(cards, run, most=100):
    out = engine.price(cards, run.rules, run.seller, run.now)
    priced = out.with_columns(id=cards["id"], sales_week=cards["sales_week"])
    able = generation.eligible(priced, cards["target_price"])
    return generation.reviews(able, generation.Limits(run, most))


def told(best):
    return best.drop("signals").rows(named=True), best["signals"].to_list()


@settings(max_examples=150, deadline=None)
@given(CARDS, RULES, st.sampled_from([None, 30_000]), st.randoms())
def test_every_review_has_fresh_evidence_and_keeps_the_limits(cards, rule, hard_floor, random):
    seller = SellerPricing(hard_floor=hard_floor)
    run = Run([rule], seller, NOW)
    stock = frame(cards)
    best = reviewed(stock, run)
    assert best["id"].n_unique() == best.height
    for review in best.iter_rows(named=True):
        card = cards[review["id"] - 1]
        assert card["pin"] is None
        assert card["product_line_enabled"]
        assert card["quantity"] > 0
        seen = card[FRESH[review["kind"]]]
        assert seen is not None
        assert timedelta(0) <= NOW - seen <= WITHIN[review["kind"]]
        assert review["expires_at"] == seen + WITHIN[review["kind"]]
        assert card["buy_out_detected_at"] != NOW - timedelta(hours=4)
        proposed, now = review["proposed"], card["current_price"]
        assert proposed > now
        assert proposed >= max(rule.floor or 0, hard_floor or 0)
        if rule.ceiling is not None:
            assert proposed <= max(rule.ceiling, hard_floor or 0)
        if rule.cap is not None and proposed > (hard_floor or 0):
            assert proposed <= now * (10_000 + rule.cap.up_bp) // 10_000
        assert review["expected_value"] > 0
        assert len(review["signals"]) <= generation.SIGNALS_MOST
    order = list(range(stock.height))
    random.shuffle(order)
    assert told(reviewed(stock[order], run)) == told(best)


CARD = {
    "quantity": 4,
    "current_price": 100_000,
    "market": 100_000,
    "observed_at": NOW,
    "product_line_enabled": True,
    "sales_newest_at": NOW,
}
RUN = Run(
    [Rule(id=1, name="Own", priority=1, state="published", price_source="current")],
    SellerPricing(),
    NOW,
)


@pytest.mark.parametrize(
    ("evidence", "kind"),
    [
        ({"listings_low": 150_000, "listings_count": 3, "listings_observed_at": NOW}, "depth"),
        ({"listings_low": 150_000, "listings_count": 2, "listings_observed_at": NOW}, None),
        ({"sales_median": 120_000, "sales_count": 3, "sales_fetched_at": NOW}, "sales_anchor"),
        ({"sales_median": 120_000, "sales_count": 2, "sales_fetched_at": NOW}, None),
        ({"sales_count": 10, "sales_week": 5, "sales_fetched_at": NOW}, "demand"),
        ({"sales_count": 11, "sales_week": 5, "sales_fetched_at": NOW}, None),
        ({"sales_count": 4, "sales_week": 4, "sales_fetched_at": NOW}, None),
        ({"market": 102_900}, None),
        ({"market": 103_000}, "generic"),
    ],
)
def test_each_kind_over_its_edge(evidence, kind):
    best = reviewed(frame([CARD | evidence]), RUN)
    assert [one.startswith(kind or "?") for one in best["kind"]] == [True] * (kind is not None)


@pytest.mark.parametrize(
    ("age", "found"),
    [(timedelta(days=30), True), (timedelta(days=30, microseconds=1), False)],
)
def test_an_anchors_newest_sale_is_at_most_thirty_days_old(age, found):
    sold = {"sales_median": 120_000, "sales_count": 3, "sales_fetched_at": NOW - timedelta(hours=9)}
    best = reviewed(frame([CARD | sold | {"sales_newest_at": NOW - age}]), RUN)
    assert best["expires_at"].to_list() == [NOW] * found


def test_the_expected_value_is_the_gain_of_the_copies_that_may_sell():
    def in_cents(units):
        return math.floor(units / 100 + 0.5) * 100

    def gain(proposed):
        level = RUN.seller.fee_level
        asked = [net(price, RUN.schedule, level, direct=False) for price in (proposed, 100_000)]
        return asked[0] // 10_000 - asked[1] // 10_000

    sold = {"sales_median": 120_000, "sales_count": 3, "sales_fetched_at": NOW}
    assert reviewed(frame([CARD | sold]), RUN)["expected_value"].to_list() == [
        in_cents(3 * gain(120_000))
    ]
    many = sold | {"sales_count": 30}
    assert reviewed(frame([CARD | many]), RUN)["expected_value"].to_list() == [
        in_cents(4 * gain(120_000))
    ]
    unknown = {"market": 120_000}
    best = reviewed(frame([CARD | unknown]), RUN)
    assert best["expected_value"].to_list() == [in_cents(gain(120_000) / 4)]
    none = {"market": 120_000, "sales_count": 0, "sales_fetched_at": NOW}
    assert reviewed(frame([CARD | none]), RUN).is_empty()


def test_a_card_that_a_hold_out_draws_is_not_recommended():
    rule = Rule(id=1, name="Own", priority=1, state="published", holdout_bp=2_000)
    run = Run([rule], SellerPricing(), NOW)
    stock = frame([CARD | {"market": 120_000, "quantity": 1}] * 300)
    groups = engine.price(stock, run.rules, run.seller, NOW)["holdout"]
    assert set(groups) == {"held", "twin", None}
    free = stock.filter(groups.is_null())["id"]
    assert 0 < len(free) < 300
    cut = reviewed(stock.with_columns(listings_low=150_000, listings_count=5,
                                      listings_observed_at=pl.lit(NOW)), run, most=1_000)  # fmt: skip
    assert set(cut["id"]) == set(free)


@pytest.mark.parametrize(
    ("asked", "least"), [(100_000, "10.30"), (2_589_900, "266.76"), (1_387_000, "142.87")]
)
def test_a_capped_raise_ends_only_below_what_is_worth_a_look(asked, least):
    told = evidence_of(
        {
            "kind": "sales_anchor",
            "proposed": asked * 11 // 10,
            "current_price": asked,
            "asked_now": asked,
            "sales_median": 150_000,
            "sales_count": 4,
            "sales_newest_at": NOW,
            "sales_fetched_at": NOW,
        }
    )
    assert told["would_change"].startswith(f"Expires if the median drops below {least},")


def test_the_reviews_that_are_worth_the_most_are_kept():
    cards = [CARD | {"market": 110_000 + 1_000 * n} for n in range(9)]
    best = reviewed(frame(cards), RUN, most=2)
    assert best["id"].to_list() == [9, 8]


def test_rules_are_advised_on():
    rules = [Rule(id=n, name=f"Rule {n}", priority=n, state="published") for n in (1, 2, 3)]
    run = Run([*rules, Rule(id=4, name="Off", priority=4, enabled=False)], SellerPricing(), NOW)
    found = generation.account_signals(run, {1: 10, 2: 40}, {1: 20, 2: 21}, {2: 5})
    assert [(one.kind, one.rule_id) for one in found] == [
        ("rule_scope_drift", 1),
        ("missing_floor", 2),
        ("never_matching_rule", 3),
    ]
    floored = Run(run.rules, SellerPricing(hard_floor=5_000), NOW)
    assert len(generation.account_signals(floored, {1: 20, 2: 40, 3: 1}, {}, {2: 5})) == 0
    assert all(one.evidence["reason"].endswith(".") for one in found)
