"""The printings that each game's table declares: a label reads as the printing that it names, each
printing has a key of its own, and a person's word means the printings of that word.
"""

from __future__ import annotations

import pytest

from cardsync.catalog.condition import read_condition
from cardsync.catalog.printings import (
    OF_GAMES,
    PRINTINGS,
    is_foil,
    printing_named,
    printings_meant,
    read_printing,
)
from cardsync.catalog.product_lines import NAMES


def test_every_product_line_has_a_table() -> None:
    assert set(OF_GAMES) == set(NAMES)


@pytest.mark.parametrize("game", NAMES)
def test_each_printing_of_a_game_is_read_as_itself(game: str) -> None:
    for name in OF_GAMES[game]:
        assert read_condition(f"Near Mint {name}").printing == name
        for written in (name, name.upper(), f" {name.replace(' ', '  ')} "):
            assert printing_named(written, game) == name


@pytest.mark.parametrize(
    ("game", "written", "printing"),
    [
        ("pokemon", "1st Edition Normal", "1st Edition"),
        ("pokemon", "Reverse Holo", "Reverse Holofoil"),
        ("pokemon", "First Edition Holo", "1st Edition Holofoil"),
        ("flesh_and_blood", "First Edition", "1st Edition Normal"),
        ("flesh_and_blood", "Unlimited", "Unlimited Edition Normal"),
        ("flesh_and_blood", "Cold Foil 1st Edition", "1st Edition Cold Foil"),
        ("yugioh", "Unlimited Edition", "Unlimited"),
        ("magic", "non-foil", "Normal"),
        ("gundam", "Holo", "Holofoil"),
        ("lorcana", "Galaxy  Foil", "Galaxy Foil"),
    ],
)
def test_other_words_are_the_games_own_printing(game: str, written: str, printing: str) -> None:
    assert read_printing(written, game) == printing


def test_foils_are_those_that_end_so() -> None:
    assert [name for name in PRINTINGS if not is_foil(name)] == [
        "Normal",
        "1st Edition",
        "Unlimited",
        "Limited",
        "1st Edition Normal",
        "Unlimited Edition Normal",
    ]
    assert is_foil("GALAXY FOIL")


@pytest.mark.parametrize(
    ("word", "named", "also"),
    [
        ("foil", {"foil", "holofoil"}, {"cold foil", "1st edition rainbow foil"}),
        ("reverse holo", {"reverse holofoil"}, set()),
        ("rh", {"reverse holofoil"}, set()),
        ("cold foil", {"cold foil"}, {"1st edition cold foil", "unlimited edition cold foil"}),
        ("1st edition cold foil", {"1st edition cold foil"}, set()),
        ("non holo", {"normal"}, {"1st edition", "unlimited"}),
        ("limited", {"limited"}, set()),
        ("master ball pattern", {"master ball pattern"}, set()),
    ],
)
def test_a_persons_word_means_printings(word: str, named: set[str], also: set[str]) -> None:
    meant = printings_meant(word)
    assert set(meant.named) == named
    assert named | also <= set(meant.possible)
    assert also or meant.possible == meant.named


def test_an_edition_alone_means_each_of_its_printings() -> None:
    meant = printings_meant("first edition")
    assert meant.named == meant.possible
    assert set(meant.named) == {name.lower() for name in PRINTINGS if name.startswith("1st")}
