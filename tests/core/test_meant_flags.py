"""A flag or a condition that was written as a bare word, and what it was meant as."""

from __future__ import annotations

import pytest

from cardsync.stock.search.meant_flags import meant


@pytest.mark.parametrize(
    ("search", "is_meant"),
    [
        ("foil price>20", "is:foil price>20"),
        ("Foils", "is:foil"),
        ("lotus nm", "lotus cond:NM"),
        ("-foil or pinned", "not:foil or is:pinned"),
        ("is:foil price>20", ""),
        ('"foil"', ""),
        ("black lotus", ""),
        ("", ""),
        ("price>", ""),
    ],
)
def test_a_flag_or_a_condition_as_a_bare_word_is_meant_as_a_field(search, is_meant):
    assert meant(search) == is_meant
