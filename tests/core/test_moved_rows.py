"""Rows of imported prices: the quick reading of plain ones agrees with the reading one by one, and
packed rows come back as they were.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform.errors import InvalidPayload
from cardsync.prices.rollback.packed_rows import pack, unpack
from cardsync.prices.rollback.repricing_events import moved_rows

plain = st.decimals("1", "99999999.9999", places=2).map(str)
odd = st.one_of(
    st.none(),
    st.sampled_from(["0.99", "0", "0.001", "1.00\n2.00", "1\n", "", "1.2.3", "1e3", "-1", " 1"]),
    st.integers(0, 100),
    st.text(max_size=4),
)
rows = st.lists(st.tuples(st.integers(-(2**63) + 1, 2**63 - 1), plain, plain), max_size=6)


def one_by_one(given_rows):
    """Read each row by itself, so that a price of another row decides nothing."""
    kept = {}
    for row in given_rows:
        for moved in moved_rows([row, (7, None, None)]):
            kept[moved["id"]] = moved
    return kept


@given(rows)
def test_plain_rows_are_read_at_once_as_one_by_one(given_rows):
    assert {row["id"]: row for row in moved_rows(given_rows)} == one_by_one(given_rows)


@given(rows, st.tuples(st.integers(1, 9), odd, odd))
def test_a_row_that_is_odd_changes_nothing_for_the_others(given_rows, strange):
    try:
        alone = one_by_one([strange])
    except InvalidPayload:
        with pytest.raises(InvalidPayload, match=rf"rows\[{len(given_rows)}\]"):
            moved_rows([*given_rows, strange])
        return
    found = {row["id"]: row for row in moved_rows([*given_rows, strange])}
    assert found == one_by_one(given_rows) | alone


def test_the_last_row_of_a_card_counts():
    assert moved_rows([(1, "1.00", "2.00"), (1, "1.00", "3.00")]) == [
        {"id": 1, "old": "1.00", "price": "3.00"}
    ]


def test_an_id_beyond_sixty_four_bits_is_refused():
    with pytest.raises(InvalidPayload, match="marketplace_id: must be an id"):
        moved_rows([(2**63, "1.00", "2.00")])


@given(rows)
def test_packed_rows_come_back(given_rows):
    moved = moved_rows(given_rows)
    assert unpack(pack(moved)) == moved
    assert unpack(msgspec.json.encode(moved)) == moved


def test_nothing_packed_is_nothing():
    assert pack([]) is None
    assert unpack(None) == []
