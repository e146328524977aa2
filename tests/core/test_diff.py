"""The changes of an upload: a hash is as good as the whole row."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from cardsync.imports.diff import values_hash
from cardsync.stock.cards.changes import AMOUNTS

amounts = st.one_of(st.none(), st.integers(0, 10**12 - 1))
rows = st.tuples(*[amounts] * len(AMOUNTS), st.integers(0, 2**31 - 1))


def hash_of(*rows, my_store_priced=False):
    schema = {**dict.fromkeys(AMOUNTS, pl.Int64), "quantity": pl.Int32}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return values_hash(frame.with_columns(my_store_priced=pl.lit(my_store_priced))).to_list()


@given(rows, st.integers(0, len(AMOUNTS)), st.integers(0, 2**31 - 1))
def test_any_single_change_of_a_row_changes_its_hash(row, at, value):
    changed = (*row[:at], value, *row[at + 1 :])
    before, after = hash_of(row, changed)
    assert (before == after) == (row == changed)
    assert 0 not in (before, after)


def test_hashes_are_the_same_for_ever():
    assert hash_of((1, 2, 3, 4, 5, 6), (None,) * 5 + (0,)) == [
        1120746232680978847,
        -8778371334536726885,
    ]


@given(rows, st.integers(1, 10**12 - 1))
def test_whose_price_it_is_changes_the_hash(row, price):
    row = (price, *row[1:])
    assert hash_of(row, my_store_priced=True) != hash_of(row)


def test_rows_that_differ_in_many_ways_do_not_collide():
    near = [
        (a, b, c, None, d, q)
        for a in range(8)
        for b in range(8)
        for c in range(8)
        for d in range(8)
        for q in range(8)
    ]
    assert len(set(hash_of(*near))) == len(near)
