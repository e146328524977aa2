"""Each page belongs to one entry of the navigation, and each entry has a key of its own."""

from __future__ import annotations

import pytest

from cardsync.dashboard.navigation import NAVIGATION, ON_PHONES, on_phones, place_of

PLACES = [place for group in NAVIGATION for place in group.places]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/today", "Today"),
        ("/cards/12/match", "Cards"),
        ("/pricing", "Rules"),
        ("/pricing/rules/3", "Rules"),
        ("/pricing/reviews", "Reviews"),
        ("/pricing/rollback/4", "History"),
        ("/counts/7", "Counts"),
        ("/shelves/7", "Shelves"),
        ("/print/restock", "Returns"),
        ("/print/labels", "Print"),
        ("/cards-of-others", None),
        ("/account", None),
    ],
)
def test_a_page_belongs_to_the_place_that_names_most_of_its_path(path, name):
    found = place_of(path, NAVIGATION)
    assert (found.name if found else None) == name


def test_each_entry_has_its_own_key_and_address():
    assert len({place.key for place in PLACES}) == len(PLACES)
    assert len({place.path for place in PLACES}) == len(PLACES)
    assert all(len(place.key) == 1 for place in PLACES)
    assert [place.path for place in on_phones(NAVIGATION)] == list(ON_PHONES)


def test_eight_everyday_entries_and_reviews_are_always_visible():
    everyday = [place.name for place in PLACES if place.everyday]
    assert everyday == [
        "Today", "Orders", "Pulls", "Cards", "Shelves", "Rules", "Reviews", "Suggestions", "Sales",
    ]  # fmt: skip
