"""Numbers that people type are read by one module, each page's and each query's alike."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardsync
from cardsync.platform import limits
from cardsync.platform.kit.typed_numbers import amount, clamped, read_id, whole, wholes

NO_NUMBERS = ("", " ", "two", "1.5", "1,000", "+5", "٣", "²", "1_0", "- 5", "9" * 19, "9" * 5_000)


@given(st.integers(0, 10**18 - 1), st.integers(0, 10**18), st.integers(0, 10**18))
def test_a_whole_number_is_read_within_its_bounds(number, least, most):
    expected = number if least <= number <= most else None
    assert whole(str(number), most, least) == expected


@given(st.integers(1 - 10**18, 10**18 - 1))
def test_an_id_may_be_that_of_a_custom_listing(number):
    assert read_id(str(number)) == number


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_whole_number_is_none(text):
    assert (whole(text), read_id(text), wholes(["1", text])) == (None, None, [])


def test_only_ids_have_a_sign():
    assert (whole("-5"), read_id("-5"), wholes(["-5"])) == (None, -5, [])
    assert wholes(["7", "012"]) == [7, 12]


def test_the_number_of_a_query_is_brought_into_its_bounds():
    read = [clamped(text, 50, 200) for text in ("7", "0", "-3", "201", "", None, "two")]
    assert read == [7, 1, 1, 200, 50, 50, 50]


def test_an_amount_is_read_as_people_write_it():
    assert amount("$1,234.50") == Decimal("1234.50")
    assert amount("1.234,50", ",") == Decimal("1234.50")
    assert amount("(1.50)") == Decimal("-1.50")
    assert [amount(text) for text in ("", "free", "1e3", "9" * 9)] == [None] * 4


def test_no_page_reads_a_number_by_itself():
    pages = [*(Path(cardsync.__file__).parent / "dashboard").rglob("*.py")]
    own = re.compile(r"\.is(?:digit|decimal|numeric)\(|\bint\((?:text|form|given|request)\b")
    assert {path.name for path in pages if own.search(path.read_text())} == set()
    assert len(pages) > 50
    assert limits.LARGEST_ID > 10**18
