"""The printings that each game's table declares: a label reads as the printing that it names, each
printing has a key of its own, and a person's word means the printings of that word.
"""

from __future__ import annotations

import polars as pl
import pytest

from cardsync.catalog.condition import read_condition
from cardsync.catalog.printings import (
    OF_GAMES,
    PRINTINGS,
    base_finishes,
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


@pytest.mark.parametrize(
    ("game", "finishes", "base"),
    [
        ("pokemon", ["holofoil"], ["holofoil"]),
        ("pokemon", ["reverse holofoil", "normal"], ["normal"]),
        ("pokemon", ["reverse holofoil", "holofoil"], ["holofoil"]),
        ("pokemon", ["1st edition", "unlimited"], ["unlimited"]),
        ("pokemon", ["1st edition holofoil", "unlimited holofoil"], ["unlimited holofoil"]),
        ("pokemon", ["1st edition"], ["1st edition"]),
        ("magic", ["foil", "normal"], ["normal"]),
        ("magic", ["foil", None], [None]),
        ("magic", ["normal", None], ["normal"]),
        ("lorcana", ["cold foil", "normal"], ["normal"]),
        ("lorcana", ["cold foil", "holofoil"], ["cold foil", "holofoil"]),
        ("lorcana", ["normal", "cracked ice"], ["normal"]),
        ("gundam", ["foil", "holofoil"], ["foil", "holofoil"]),
        ("flesh_and_blood", ["cold foil", "rainbow foil"], ["cold foil", "rainbow foil"]),
        (
            "flesh_and_blood",
            ["1st edition normal", "1st edition cold foil"],
            ["1st edition normal"],
        ),
        (
            "flesh_and_blood",
            ["1st edition normal", "unlimited edition normal", "unlimited edition cold foil"],
            ["unlimited edition normal"],
        ),
        ("yugioh", ["1st edition", "unlimited"], ["1st edition", "unlimited"]),
        ("yugioh", ["limited"], ["limited"]),
    ],
)
def test_the_base_finish_is_the_one_that_nobody_needs_to_say(
    game: str, finishes: list[str | None], base: list[str | None]
) -> None:
    pairs = pl.DataFrame(
        [(game, at, one) for at in (1, 2) for one in (*finishes, *finishes)],
        schema={"game": pl.String, "card": pl.Int64, "finish": pl.String},
        orient="row",
    )
    other = pairs.with_columns(card=pl.lit(3, pl.Int64), finish=pl.lit("galaxy foil")).head(1)
    found = base_finishes(pl.concat([other, pairs]), ["card"], "finish")
    assert found.rows() == [
        *other.rows(),
        *((game, at, one) for at in (1, 2) for one in (*finishes, *finishes) if one in base),
    ]
