"""The activity feed in words, as tables: the API's words and those that a seller reads."""

from __future__ import annotations

import pytest

from cardsync.shop.activity.entry_words import (
    ACTIONS,
    AREAS,
    action_words,
    actor_words,
    field_words,
    summary_words,
    value_words,
)

NAMES = {
    "member 3": "Agatha",
    "key 12": "shop agent",
    "token 7": "a script",
    "buying customer 5": "Karl",
}


@pytest.mark.parametrize(
    ("actor", "told"),
    [
        ("member 3", "Agatha"),
        ("member 4", "A former member"),
        ("key 12", "API key “shop agent”"),
        ("key", "An API key"),
        ("token 7", "Token “a script”"),
        ("link 9", "A phone"),
        ("operator", "Administrator"),
        ("sweep", "cardsync"),
        ("something else", "something else"),
    ],
)
def test_an_actor_is_told_by_name(actor, told):
    assert actor_words(actor, NAMES) == told


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        ("network_consent=true, sync_mode=read_only", 'Network consent: on, sync mode: Review Mode'),
        ("store_name=, quiet_hours=22:00-06:00", "Store name: none, quiet hours: 22:00-06:00"),
        ("member 3 is owner", "Agatha is owner"),
        ("passkey 2 of member 4 removed", "Passkey 2 of member 4 removed"),
        ("rule 5 “my_rule=true” changed: adjust_bp, never_lower", "Rule 5 “my_rule=true” changed: adjust, never lower"),
        ("list 'member 3'", "List 'member 3'"),
        ("task 8: refresh_orders", "Task 8: refresh orders"),
        ("buying customer 5", "Karl"),
        ("postage_steps=0:1.27,20:4.50, network_consent=true", "Shipping: $1.27, $4.50 from $20, network consent: on"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_summary_has_no_word_of_the_api_and_keeps_names(summary, told):
    assert summary_words(summary, NAMES) == told


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("never_lower", True, "on"),
        ("floor", None, "none"),
        ("adjust_bp", -250, "-2.5%"),
        ("adjust_bp", 1000, "10%"),
        ("cap", {"up_bp": 1500, "period": "day"}, "up: 15%, period: day"),
        ("fallback_sources", ["low_with_shipping", "low"], "low with shipping, low"),
        ("name", "Binder", "Binder"),
        ("id", 12, "12"),
        ("lists", [], "none"),
    ],
)
def test_a_value_is_told_as_a_person_would(name, value, told):
    assert value_words(name, value) == told


def test_each_action_has_words_and_an_area():
    assert {action.partition(".")[0] for action in ACTIONS} == set(AREAS)
    assert action_words("shelf.painted_red") == "Shelf: painted red"
    assert field_words("write_consent") == "send prices to TCGplayer"
