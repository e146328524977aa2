"""Every word of the search language and every field of a rule is classed by the data that it asks."""

import dataclasses
from datetime import UTC, datetime

import pytest

from cardsync.prices.engine.rules import MarketGate, Rule, Stale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.plans.asked_data import (
    OF_FIELDS,
    OF_FLAGS,
    OF_RULES,
    OF_THINGS,
    asked_by,
    asked_of,
)
from cardsync.stock.search.fields import FIELDS, FLAGS, THINGS

# Numbers and words of the rule alone, and what uploads bring.
OWN = {
    "id", "name", "priority", "enabled", "state", "query", "price_source", "fallback_sources",
    "adjust_bp", "adjust_amount", "floor", "ceiling", "never_lower", "cap", "fee_gap_adjustment",
    "rounding", "review", "holdout_bp", "broken", "guard",
}  # fmt: skip


def test_no_word_is_without_a_class():
    names = {field.name for field in FIELDS.values()} - {"is", "has"}
    assert OF_FIELDS.keys() == names
    assert OF_FLAGS.keys() == {*FLAGS}
    assert OF_THINGS.keys() == {*THINGS}
    assert OF_RULES.keys() | OWN == {field.name for field in dataclasses.fields(Rule)}


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", set()),
        ("list=cheap", {"lists"}),
        ("price<1 (has:list or -LIST:x)", {"prices", "lists"}),
        ('"list:cheap"', set()),
        ("not:pinned margin<5%", {"pins", "costs"}),
        ("is:audit|unshelved", {"counts", "places"}),
        ("has:location|photo", {"places", "uploads"}),
        ("list:", set()),
    ],
)
def test_a_query_asks_what_its_terms_ask(query, asked):
    assert asked_by([query]) == asked


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, set()),
        ({"floor_cost_bp": 0}, {"costs"}),
        ({"stale": Stale(60, 500, 7, 4000)}, {"orders"}),
        ({"velocity_boost_enabled": True}, {"orders"}),
        ({"market_gate": MarketGate(1, 1, 24, 100)}, {"market", "products"}),
        ({"fallback_sources": ("sales_anchor",)}, {"market", "products"}),
    ],
)
def test_a_rule_asks_what_its_fields_ask(fields, asked):
    run = Run([Rule(1, "R", 1, **fields)], SellerPricing(), datetime(2026, 11, 1, tzinfo=UTC))
    assert asked_of(run) == asked
