"""Collector numbers: printed forms become comparable keys, one by one as in a column."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.collector_number import CollectorNumber, number_columns, read_collector_number


@pytest.mark.parametrize(
    ("printed", "key", "total"),
    [
        ("006/165", "6", "165"),
        ("6", "6", None),
        ("TG05/TG30", "TG5", "TG30"),
        ("tg05", "TG5", None),
        ("SWSH099", "SWSH99", None),
        ("000", "0", None),
        ("100/099", "100", "99"),
        ("2017-05", "2017-5", None),
        ("157s", "157S", None),
        ("123★", "123*", None),
        ("18+", "18+", None),
        ("2 // 4", "2//4", None),
        (" #025 / 102 ", "25", "102"),
        ("%3F", "?", None),
        ("!", "!", None),
        ("", "", None),
        (None, "", None),
        ("/102", "/102", None),
        ("１２", "12", None),
    ],
)
def test_a_printed_number_has_a_key_and_perhaps_a_total(
    printed: str | None, key: str, total: str | None
) -> None:
    assert read_collector_number(printed) == CollectorNumber(key, total)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("006/165", "6", True),
        ("006/165", "6/165", True),
        ("006/165", "6/166", False),
        ("6", "60", False),
        ("6a", "6", False),
        ("6A", "6a", True),
        ("TG6", "6", False),
    ],
)
def test_totals_are_compared_where_both_give_one(one: str, other: str, same: bool) -> None:
    assert read_collector_number(one).agrees_with(read_collector_number(other)) is same
    assert read_collector_number(other).agrees_with(read_collector_number(one)) is same


printed = st.text(alphabet="0123456789abTGsw/★*#+-! 　？１é", max_size=10) | st.none()


@given(st.lists(printed, max_size=8))
def test_a_column_reads_as_its_numbers_do(numbers: list[str | None]) -> None:
    read = number_columns(pl.Series(numbers, dtype=pl.String))
    assert read.columns == ["number_key", "number_total"]
    assert [CollectorNumber(*row) for row in read.iter_rows()] == [
        read_collector_number(text) for text in numbers
    ]


@given(
    st.integers(0, 99_999),
    st.sampled_from(["", "TG", "SWSH"]),
    st.sampled_from(["", "a", "★"]),
    st.integers(0, 4),
)
def test_leading_zeros_never_matter_and_other_digits_always_do(
    number: int, letters: str, tail: str, zeros: int
) -> None:
    read = read_collector_number(f"{letters}{'0' * zeros}{number}{tail}")
    assert read == read_collector_number(f"{letters}{number}{tail}")
    assert read.key != read_collector_number(f"{letters}{number + 1}{tail}").key


@given(printed)
def test_a_key_is_its_own_key(number: str | None) -> None:
    key = read_collector_number(number).key
    assert read_collector_number(key).key in (key, key.removeprefix("#"))
