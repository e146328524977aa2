"""Condition labels: every label of the grammar reads, with printings of every game and new ones,
and a column reads as its labels do.
"""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.condition import (
    CODES,
    LANGUAGES,
    Condition,
    condition_columns,
    read_condition,
)
from cardsync.catalog.printings import LONGEST, PRINTINGS

conditions = st.sampled_from(sorted(CODES))
suffixes = st.sampled_from(["", *PRINTINGS[1:]])
languages = st.sampled_from(["", *LANGUAGES])


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("Near Mint", ("NM", "Normal", "English")),
        ("Lightly Played Foil", ("LP", "Foil", "English")),
        ("Near Mint Holofoil - Japanese", ("NM", "Holofoil", "Japanese")),
        ("Near Mint - Japanese", ("NM", "Normal", "Japanese")),
        ("Moderately Played Reverse Holofoil", ("MP", "Reverse Holofoil", "English")),
        ("Heavily Played 1st Edition", ("HP", "1st Edition", "English")),
        ("Damaged 1st Edition Holofoil", ("DMG", "1st Edition Holofoil", "English")),
        ("Near Mint Unlimited", ("NM", "Unlimited", "English")),
        ("Near Mint Unlimited Holofoil - German", ("NM", "Unlimited Holofoil", "German")),
        ("Near Mint Limited", ("NM", "Limited", "English")),
        ("Unopened", ("U", "Normal", "English")),
        ("  near   MINT foil ", ("NM", "Foil", "English")),
        ("Near Mint -Chinese (S)", ("NM", "Normal", "Chinese (S)")),
        ("Near Mint Cold Foil", ("NM", "Cold Foil", "English")),
        ("Near Mint Unlimited Edition Normal", ("NM", "Unlimited Edition Normal", "English")),
        (
            "Lightly Played Unlimited Edition Rainbow Foil",
            ("LP", "Unlimited Edition Rainbow Foil", "English"),
        ),
        ("Near Mint 1st Edition Normal", ("NM", "1st Edition Normal", "English")),
        ("Near Mint 1st Edition Cold Foil - German", ("NM", "1st Edition Cold Foil", "German")),
        ("Near Mint - German 1st Edition Cold Foil", ("NM", "1st Edition Cold Foil", "German")),
        ("Damaged Gold Foil – Chinese (T)", ("DMG", "Gold Foil", "Chinese (T)")),
        ("Near Mint Cold Foil 1st Edition", ("NM", "1st Edition Cold Foil", "English")),
        ("Near Mint Non-Foil", ("NM", "Normal", "English")),
        ("Near Mint Galaxy  Foil", ("NM", "Galaxy Foil", "English")),
        ("Near Mint Poké Ball Pattern - French", ("NM", "Poké Ball Pattern", "French")),
        ("Near Mint Cracked-Ice", ("NM", "Cracked-Ice", "English")),
    ],
)
def test_a_label_of_the_grammar_is_read(label: str, expected: tuple[str, str, str]) -> None:
    assert read_condition(label) == Condition(*expected)


@pytest.mark.parametrize(
    ("label", "printing", "language"),
    [
        (None, "", "English"),
        ("", "", "English"),
        ("Mint", "", "English"),
        ("Pristine Holofoil", "", "English"),
        ("Near MintFoil", "", "English"),
        ("Foil", "Foil", "English"),
        ("1st Edition Cold Foil - German", "1st Edition Cold Foil", "German"),
        ("Pristine - Japanese", "", "Japanese"),
        ("Near Mint - Klingon", "", ""),
        ("Near Mint Foil - Klingon", "Foil", ""),
        ("Foil - Klingon", "Foil", ""),
        ("1st Edition Cold Foil – Klingon", "1st Edition Cold Foil", ""),
        ("Near Mint Galaxy Foil - Klingon", "", ""),
        ("Near Mint -", "", ""),
        ("Near Mint " + "x" * (LONGEST + 1), "", "English"),
    ],
)
def test_a_label_without_a_condition_or_of_an_unknown_language_is_flagged(
    label: str | None, printing: str, language: str
) -> None:
    assert read_condition(label) == Condition(None, printing, language)


@given(conditions, suffixes, languages, st.booleans())
def test_case_and_spacing_do_not_matter(
    condition: str, suffix: str, language: str, shout: bool
) -> None:
    label = f"{condition} {suffix}" + (f" - {language}" if language else "")
    written = label.upper() if shout else label.replace(" ", "  ")
    expected = Condition(CODES[condition], suffix or "Normal", language or "English")
    assert read_condition(written) == expected


labels = st.one_of(
    st.none(),
    st.text(),
    st.builds(lambda a, b, c: f"{a} {b} - {c}", conditions, suffixes, st.text() | languages),
)


@given(st.lists(labels, max_size=8))
def test_a_column_reads_as_its_labels_do(column: list[str | None]) -> None:
    read = condition_columns(pl.Series(column, dtype=pl.String))
    assert read.columns == ["condition", "printing", "language"]
    assert [Condition(*row) for row in read.iter_rows()] == [
        read_condition(label) for label in column
    ]
