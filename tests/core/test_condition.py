"""Condition labels: every label of the grammar reads, nothing else does, and a column reads as
its labels do.
"""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.condition import (
    CODES,
    LANGUAGES,
    PRINTINGS,
    Condition,
    condition_columns,
    read_condition,
)

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
    ],
)
def test_a_label_of_the_grammar_is_read(label: str, expected: tuple[str, str, str]) -> None:
    assert read_condition(label) == Condition(*expected, readable=True)


@pytest.mark.parametrize(
    ("label", "language"),
    [
        (None, "English"),
        ("", "English"),
        ("Mint", "English"),
        ("Pristine Holofoil", "English"),
        ("Near Mint Cold Foil", "English"),
        ("Near Mint 1st Edition Foil", "English"),
        ("Near MintFoil", "English"),
        ("Foil", "English"),
        ("Pristine - Japanese", "Japanese"),
        ("Near Mint - Klingon", ""),
        ("Near Mint -", ""),
    ],
)
def test_any_other_label_is_flagged_and_nothing_is_guessed(
    label: str | None, language: str
) -> None:
    assert read_condition(label) == Condition(None, "", language, False)


@given(conditions, suffixes, languages, st.booleans())
def test_case_and_spacing_do_not_matter(
    condition: str, suffix: str, language: str, shout: bool
) -> None:
    label = f"{condition} {suffix}" + (f" - {language}" if language else "")
    written = label.upper() if shout else label.replace(" ", "  ")
    expected = Condition(CODES[condition], suffix or "Normal", language or "English", True)
    assert read_condition(written) == expected


labels = st.one_of(
    st.none(),
    st.text(),
    st.builds(lambda a, b, c: f"{a} {b} - {c}", conditions, suffixes, st.text() | languages),
)


@given(st.lists(labels, max_size=8))
def test_a_column_reads_as_its_labels_do(column: list[str | None]) -> None:
    read = condition_columns(pl.Series(column, dtype=pl.String))
    assert read.columns == ["condition", "printing", "language", "condition_readable"]
    assert [Condition(*row) for row in read.iter_rows()] == [
        read_condition(label) for label in column
    ]
