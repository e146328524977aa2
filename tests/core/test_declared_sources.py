"""The declaration of catalogs' sources: each can be downloaded or says how a person gets it, and no
file is taken for another source's.
"""

import string

import pytest

from cardsync.catalog.product_lines import NAMES
from cardsync.catalog.sources.declared import SOURCES, of_game
from cardsync.catalog.sources.read import FORMS

EACH = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)


def fields(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@EACH
def test_a_source_is_whole(source):
    assert source.label
    assert source.licence
    assert source.name in FORMS
    assert source.home.startswith("https://")
    assert source.games
    assert set(source.games) <= set(NAMES)
    assert bool(source.downloads) != bool(source.by_hand)


@EACH
def test_an_address_names_only_what_is_known_by_then(source):
    for one in source.downloads:
        assert one.address.startswith("https://")
        assert fields(one.address) | fields(one.file) <= {"game"}
        if one.each is not None:
            assert one.each.address.startswith("https://")
            assert fields(one.each.file) - {"game"} <= fields(one.each.address)
            assert fields(one.each.address) - {"game"}


def test_a_sign_is_that_of_one_source():
    signs = [sign for source in SOURCES for sign in source.signs]
    assert len(set(signs)) == len(signs)


def test_every_game_has_a_source_that_is_downloaded():
    assert [game for game in NAMES if not of_game(game) or not of_game(game)[0].downloads] == []
