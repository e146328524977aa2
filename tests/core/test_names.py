"""Product and set names: what two sources write differently becomes one key, what is another card
does not.
"""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.collector_number import number_columns
from cardsync.catalog.product_names import folded, name_columns
from cardsync.catalog.set_names import set_code_key, set_columns


def fold(text: str) -> str:
    return str(pl.select(folded(pl.lit(text))).item())


def parts(name: str | None, number: str = "") -> dict[str, str | None]:
    frame = pl.DataFrame(
        {"product_name": [name], "number": [number]}, schema_overrides={"product_name": pl.String}
    )
    return name_columns(frame.hstack(number_columns(frame.get_column("number")))).row(0, named=True)


def set_key(game: str, name: str) -> str:
    return str(set_columns(pl.DataFrame({"game": [game], "set_name": [name]})).item(0, "set_key"))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Flabébé", "flabebe"),
        ("Æther Vial", "aether vial"),
        ("Farfetch'd", "farfetchd"),
        ("Farfetch’d", "farfetchd"),
        ("Ho-Oh", "ho oh"),
        ("+2 Mace", "2 mace"),
        ("Nidoran♀", "nidoran f"),
        ("SP//dr, Piloted by Peni", "sp dr piloted by peni"),
        ("Scarlet & Violet", "scarlet and violet"),
        ("ガラルの", "ガラルの"),
        ("ﾋﾟｶﾁｭｳ", "ピカチュウ"),
        ("피카츄", "피카츄"),
        ("  Two   Words ", "two words"),
    ],
)
def test_folding(text: str, key: str) -> None:
    assert fold(text) == key


@pytest.mark.parametrize(
    ("one", "other"),
    [("ガ", "カ"), ("パ", "ハ"), ("Nidoran♀", "Nidoran♂"), ("Pikachu ☆", "Pikachu")],
)
def test_what_tells_cards_apart_survives_folding(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(st.text())
def test_folding_a_folded_text_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("name", "number", "name_key", "variant_key"),
    [
        ("Snivy - 001/086 (Master Ball Pattern)", "001/086", "snivy", "master ball pattern"),
        ("Snivy (Master Ball Pattern) - 001/086", "001/086", "snivy", "master ball pattern"),
        ("Vaporeon ex - 031/187", "031/187", "vaporeon ex", ""),
        ("Vaporeon ex - 031/187", "031", "vaporeon ex", ""),
        ("Vaporeon ex - 031/187", "032/187", "vaporeon ex 031 187", ""),
        ("Vaporeon ex - 031/187", "031/188", "vaporeon ex 031 187", ""),
        ("Pikachu - SWSH020", "SWSH20", "pikachu", ""),
        ("Island (0263) (Borderless)", "263", "island", "borderless"),
        ("Island (0263) (Borderless)", "264", "island", "0263 borderless"),
        ("Charizard (Jumbo) (Cracked Ice Holo)", "146/144", "charizard", "jumbo cracked ice holo"),
        ("Claydol (Prerelease) [Staff]", "15/106", "claydol", "prerelease staff"),
        ("Unown [A]", "A", "unown a", ""),
        ("Porygon-2", "2", "porygon 2", ""),
        ("Trapinch δ", "68/101", "trapinch", "delta species"),
        ("Trapinch (Delta Species)", "68/101", "trapinch", "delta species"),
        ("ピッジー（デルタ種） (1st Edition)", "016/052", "ピッジー", "デルタ種 1st edition"),
        ("Wooper -027/092", "027/092", "wooper", ""),
        ("Forest (274) - Full Art", "274", "forest", "full art"),
        ("Carapace [Version 2]", "84b", "carapace", "version 2"),
        ("(Only) Parentheses", "1", "only parentheses", ""),
        ("_____", "23", "_____", ""),
        ("+2 Mace", "1", "2 mace", ""),
    ],
)
def test_a_name_splits_into_card_and_variant(
    name: str, number: str, name_key: str, variant_key: str
) -> None:
    read = parts(name, number)
    assert (read["name_key"], read["variant_key"]) == (name_key, variant_key)


def test_faces_and_aliases_stand_apart() -> None:
    assert parts("Fire // Ice") == {
        "name_key": "fire",
        "back_key": "ice",
        "variant_key": "",
        "alias_key": None,
    }
    assert parts("Endwalker - Brainstorm (Showcase)", "28")["alias_key"] == "brainstorm"
    assert parts(None) == {"name_key": "", "back_key": None, "variant_key": "", "alias_key": None}


@pytest.mark.parametrize(
    ("game", "one", "other"),
    [
        ("magic", "Commander: FINAL FANTASY", "Final Fantasy Commander"),
        ("magic", "Commander: Foundations", "Foundations Commander"),
        (
            "magic",
            "Avatar: The Last Airbender: Eternal-Legal",
            "Avatar: The Last Airbender Eternal",
        ),
        ("magic", "Universes Beyond: Fallout", "Fallout"),
        ("magic", "Secret Lair Drop Series", "Secret Lair Drop"),
        ("magic", "Magic 2010 (M10)", "Magic 2010"),
        ("pokemon", "ME05: Pitch Black", "Pitch Black"),
        ("pokemon", "SM - Team Up", "Team Up"),
        ("pokemon", "SV: Scarlet & Violet 151", "151"),
        ("pokemon", "EX Dragon Frontiers", "Dragon Frontiers"),
        ("pokemon", "Pokemon GO", "Pokémon GO"),
        ("pokemon", "McDonald's Promos 2019", "McDonald's Collection 2019"),
        ("pokemon", "SWSH: Crown Zenith: Galarian Gallery", "Crown Zenith Galarian Gallery"),
    ],
)
def test_two_spellings_of_a_set_are_one(game: str, one: str, other: str) -> None:
    assert set_key(game, one) == set_key(game, other)


@pytest.mark.parametrize(
    ("game", "one", "other"),
    [
        ("pokemon", "Base Set", "Base Set (Shadowless)"),
        ("pokemon", "Base Set", "XY Base Set"),
        ("pokemon", "EX Dragon", "EX Dragon Frontiers"),
        ("pokemon", "SWSH10: Astral Radiance", "SWSH10: Astral Radiance Trainer Gallery"),
        ("magic", "Kaldheim", "Promo Pack: Kaldheim"),
        ("magic", "Foundations", "Foundations Jumpstart"),
    ],
)
def test_two_sets_stay_two(game: str, one: str, other: str) -> None:
    assert set_key(game, one) != set_key(game, other)


def test_a_series_in_front_of_a_set_may_be_its_code() -> None:
    frame = pl.DataFrame(
        {"game": ["pokemon_japan", "pokemon", "magic"], "set_name": ["SV8a: X", "SV: X", "SV8a: X"]}
    )
    assert set_columns(frame).get_column("set_series").to_list() == ["sv8a", None, None]
    assert pl.select(
        set_code_key(pl.lit(pl.Series(["SV8a", "PR", None])))
    ).to_series().to_list() == [
        "sv8a",
        None,
        None,
    ]
