"""The text of a search, its chips and the address that has it mean the same."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_trees import trees

from cardsync.dashboard.pages.cards import address_of
from cardsync.stock.cards.card_filter import CardPage, read_filter
from cardsync.stock.search.chips import chips_of, query_of, with_part
from cardsync.stock.search.parser import parse
from cardsync.stock.search.tree import And, all_of, print_query


@pytest.mark.day
@settings(max_examples=300)
@given(trees)
def test_chips_text_and_address_mean_the_same(tree):
    text = print_query(tree)
    chips = chips_of(text)
    assert parse(query_of([chip.text for chip in chips]), canonical=True) == tree
    query = parse_qs(urlsplit(address_of(read_filter({"search": [text]}), CardPage())).query)
    assert parse(query.get("search", [""])[0].strip(), canonical=True) == tree


@pytest.mark.day
@settings(max_examples=300)
@given(trees, st.data())
def test_a_chip_that_is_taken_away_leaves_the_others(tree, data):
    chips = chips_of(print_query(tree))
    if not chips:
        return
    place = data.draw(st.integers(0, len(chips) - 1))
    parts = list(tree.parts) if isinstance(tree, And) else [tree]
    assert parse(chips[place].without, canonical=True) == all_of(
        [*parts[:place], *parts[place + 1 :]]
    )


@pytest.mark.parametrize("search", ["", "lotus", "a or b", "lotus price>1"])
def test_a_part_is_added_and_taken_away_again(search):
    more = with_part(search, "is:foil")
    assert "is:foil" in [chip.text for chip in chips_of(more)]
    assert parse(with_part(more, "is:foil")) == parse(search)


def test_a_search_for_everything_has_no_chips():
    assert chips_of("  ") == []
    assert query_of([]) == ""
