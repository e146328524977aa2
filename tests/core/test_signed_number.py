"""Numbers in an address that only the pages of one session can make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access import tokens


@given(st.integers(0, 10**18 - 1), st.text(), st.text())
def test_a_number_is_read_by_its_own_session_alone(number, mine, other):
    signed = tokens.signed_number(mine, number)
    assert tokens.read_signed_number(mine, signed) == number
    assert tokens.read_signed_number(other, signed) == (number if other == mine else None)


@pytest.mark.parametrize("text", ["", "-", "1", "1-", "-1-a", "²-a", "9" * 19 + "-a", "1-é"])
def test_other_texts_are_no_number(text):
    assert tokens.read_signed_number("session", text) is None
