"""The evidence of a match: certain, probable or possible, with the reasons."""

from __future__ import annotations

import pytest

from cardsync.catalog.certainty import weigh

KEYS = {
    "set_key": "base set",
    "name_key": "charizard",
    "number_key": "4",
    "number_total": "102",
    "back_key": None,
    "variant_key": "",
    "finish_key": "holofoil",
    "language_key": "en",
}


def test_what_agrees_in_every_part_is_certain():
    assert weigh("matched", KEYS, KEYS) == (
        "certain",
        ["Set, name, number and printing agree."],
    )
    assert weigh("settled", KEYS, KEYS | {"name_key": "blastoise"}).certainty == "certain"
    assert weigh("matched", KEYS | {"language_key": "de"}, KEYS).certainty == "certain"


@pytest.mark.parametrize(
    ("of_product", "told"),
    [
        ({"finish_key": None}, "finishes"),
        ({"number_total": None}, "how many cards"),
        ({"variant_key": "stamped"}, "variant"),
        ({"set_key": "base"}, "by its code"),
        ({"name_key": "charizard of fire"}, "another form"),
        ({"back_key": "dragon"}, "back"),
    ],
    ids=str,
)
def test_what_one_side_leaves_untold_makes_it_probable(of_product, told):
    certainty, reasons = weigh("matched", KEYS, KEYS | of_product)
    assert certainty == "probable"
    assert len(reasons) == 1
    assert told in reasons[0]


def test_a_tie_is_possible_and_nothing_is_nothing():
    assert weigh("ambiguous", KEYS, None).certainty == "possible"
    certainty, [reason] = weigh("provisional", KEYS, None)
    assert certainty is None
    assert "no product" in reason
