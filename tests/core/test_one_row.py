"""A single card has the very keys that its column would have."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.one_row import keys_of_row
from cardsync.catalog.products import ROW_COLUMNS, printings
from cardsync.catalog.set_aliases import BY_GAME

COLUMNS = (*ROW_COLUMNS, "title")
ROW = {
    "product_line": "pokemon",
    "set_name": "SWSH07: Evolving Skies",
    "product_name": "Umbreon VMAX (Alternate Art Secret)",
    "number": "215/203",
    "rarity": "Secret Rare",
    "condition": "NM",
    "printing": "Holofoil",
    "language": "English",
    "title": "",
}
CHANGES = [
    {},
    {"product_line": "pokemon_japan", "set_name": "SV-P Promotional Cards"},
    {"product_line": "pokemon_japan", "language": "Japanese "},
    {"product_line": "magic", "set_name": "Core 2021 (M21)", "product_name": "Plains (H9)",
     "number": "h9"},
    {"product_line": "magic", "set_name": "Extras Kaldheim Art Series",
     "product_name": "Forest (274) - Full Art", "number": "274"},
    {"product_name": "Mew - 12/99 (12/99 Staff)", "number": "12/99", "printing": None},
    {"product_name": "Mew: signed", "title": "signed", "printing": " "},
    {"product_name": "Mew: signed", "title": None, "number": None, "language": "Klingon"},
    {"product_line": "lorcana", "set_name": "Disney Lorcana: Azurite Sea", "language": "", "printing": "Cold Foil"},
]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(["Mew", "É", "ガ", " - ", "(", ")", " // ", "#12", "012", "12/99", "H9", "★", ": ",
     "δ", "'", " ", "ß", "TG05", "SWSH07", "M21", "Core", " Full Art", "[Version 2]"]),
    max_size=7,
).map("".join)  # fmt: skip


def of_columns(row: dict[str, str | None]) -> dict[str, str | None]:
    frame = pl.DataFrame([row], schema=dict.fromkeys(COLUMNS, pl.String)).with_row_index("row")
    return printings(frame).keyed.row(0, named=True)


def assert_same(row: dict[str, str | None]) -> None:
    keys = keys_of_row(row)
    columns = of_columns(row)
    assert keys == {name: columns[name] for name in keys}


@pytest.mark.parametrize("changed", CHANGES)
def test_known_rows(changed):
    assert_same(ROW | changed)


@pytest.mark.parametrize("game", BY_GAME)
def test_sets_with_another_name(game):
    names = [name for line in BY_GAME[game].split("\n")[:40] for name in line.split(" = ") if name]
    rows = [ROW | {"product_line": game, "set_name": name} for name in names]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String)).with_row_index("row")
    columns = printings(frame)
    of_sets = dict(columns.keyed.select("set_name", "set_key").iter_rows())
    assert {row["set_name"]: keys_of_row(row)["set_key"] for row in rows} == of_sets


@pytest.mark.hypothesis
@given(
    name=TEXTS,
    set_name=TEXTS,
    number=st.sampled_from([None, "", "12", "012/99", "TG5", "H9", "h9/2"]),
    title=st.sampled_from([None, "", "H9", "12"]),
    game=st.sampled_from(["magic", "pokemon", "pokemon_japan", "lorcana"]),
)
def test_any_row(name, set_name, number, title, game):
    changed = {"product_name": name, "set_name": set_name, "number": number, "title": title}
    assert_same(ROW | changed | {"product_line": game})
