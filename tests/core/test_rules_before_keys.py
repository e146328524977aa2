"""The rules as they were before keys changed them: what a member changed later stays."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs.rules_before_keys import Change, leaps, moved_by_keys, undone

OLD, NEW = Rule(1, "R", 1, adjust_bp=0), Rule(1, "R", 1, adjust_bp=-9000)
IMAGE = {
    "id": 1,
    "name": "R",
    "priority": 1,
    "enabled": True,
    "state": "draft",
    "preset": None,
    "query": "",
    "settings": {"adjust_bp": 0},
    "created_at": "2026-11-01T00:00:00Z",
}
NOW = datetime(2026, 11, 29, tzinfo=UTC)
SELLER = SellerPricing(hard_floor=None)
SALE = Sale(2, "S", 1, -9000, NOW, NOW + timedelta(days=1), floor=10_000)
SALE_IMAGE = {
    "id": 2,
    "name": "S",
    "priority": 1,
    "adjust_bp": -9000,
    "starts_at": "2026-11-29T00:00:00+00:00",
    "ends_at": "2026-11-30T00:00:00+00:00",
    "query": "",
    "floor": 1.0,
    "enabled": True,
}


def of_rules(by_member, image):
    return Change(by_member, {"kind": "pricing.rules", "before": {"1": image}})


def of_sale(by_member, was):
    return Change(by_member, {"kind": "pricing.sale", "sale": 2, "was": was})


def of_settings(by_member, **was):
    return Change(by_member, {"kind": "pricing.settings", "was": was})


def a_run(rules=(), sales=(), seller=SELLER):
    return Run([*rules], seller, NOW, [*sales])


BY_KEY, BY_MEMBER = (of_rules(by, IMAGE) for by in (False, True))


@pytest.mark.parametrize(
    ("rules", "changes", "then"),
    [
        ([NEW], [], None),
        ([NEW], [BY_MEMBER], None),
        ([NEW], [BY_KEY], [OLD]),
        # The newest is first: a member looked at the rule after the key.
        ([NEW], [BY_MEMBER, BY_KEY], None),
        ([NEW], [BY_KEY, BY_MEMBER], [OLD]),
        ([NEW], [of_rules(False, None)], []),
        ([], [BY_KEY], [OLD]),
        # Of two changes by keys the older one's image is the price's.
        ([NEW], [of_rules(False, IMAGE | {"name": "Later"}), BY_KEY], [OLD]),
    ],
)
def test_what_keys_changed_is_undone(rules, changes, then):
    found = undone(a_run(rules), changes)
    assert (None if found is None else found.rules) == then


@pytest.mark.parametrize(
    ("sales", "changes", "then"),
    [
        ([SALE], [of_sale(False, None)], []),
        ([SALE], [of_sale(True, None)], None),
        ([SALE], [of_sale(True, SALE_IMAGE), of_sale(False, None)], None),
        ([], [of_sale(False, SALE_IMAGE)], [SALE]),
        ([replace(SALE, adjust_bp=-1)], [of_sale(False, SALE_IMAGE)], [SALE]),
    ],
)
def test_a_promotion_of_a_key_is_undone(sales, changes, then):
    found = undone(a_run(sales=sales), changes)
    assert (None if found is None else found.sales) == then


def test_settings_of_a_key_are_undone():
    floor = replace(SELLER, hard_floor=50_000)
    [back] = [undone(a_run(seller=floor), [of_settings(False, hard_floor="1.50")])]
    assert back.seller.hard_floor == 15_000
    [back] = [undone(a_run(seller=floor), [of_settings(False, hard_floor=None)])]
    assert back.seller == SELLER
    assert undone(a_run(seller=floor), [of_settings(True, hard_floor=None)]) is None


def priced(target, current=100_000):
    schema = dict.fromkeys(("marketplace_id", "target", "current_price"), pl.Int64)
    return pl.DataFrame([(1, target, current)], schema=schema, orient="row")


@pytest.mark.parametrize(
    ("now", "then", "far"),
    [
        (100_000, 100_000, False),
        (67_000, 100_000, False),
        (66_000, 100_000, True),
        (134_000, 100_000, True),
        (None, 100_000, False),
        (50_000, None, True),
        # A card that never costs a dollar is bound by the other limits.
        (100, 9_000, False),
    ],
)
def test_a_card_is_far_from_what_earlier_rules_ask(now, then, far):
    assert moved_by_keys(priced(now), priced(then)) is far


@pytest.mark.parametrize(
    ("now", "then", "last", "far"),
    [
        (12_000, 120_000, 100_000, True),
        # The market alone has moved the card, and what the key wrote was asked already.
        (105_000, 150_000, 70_000, False),
        (70_000, 100_000, 72_000, False),
        (12_000, 13_000, 100_000, False),
    ],
)
def test_an_older_change_counts_where_a_card_leaves_its_last_price(now, then, last, far):
    schema = {"marketplace_id": pl.Int64, "last": pl.Int64}
    asked = pl.DataFrame([(1, last)], schema=schema, orient="row")
    assert moved_by_keys(priced(now), priced(then), asked) is far
    assert leaps(priced(now), asked) or not far
