"""What a look at a product shows: cases checked by hand, with the clock moved over every edge, and any
market against a plain loop.
"""

from datetime import timedelta
from statistics import median

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.catalog.market import sums
from cardsync.catalog.market.verdicts import SALES_WEEK, SALES_WINDOW, SUPPLY_SINCE

NOW = 1_800_000_000_000_000
TICK = timedelta(microseconds=1)
PRODUCT, OWN, OTHER = 7, 1, 2


def micro(span: timedelta) -> int:
    return span // TICK


def days(count: float) -> timedelta:
    return timedelta(days=count)


def frame(columns, rows):
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.Int64), orient="row")


def look(sales_at=NOW, listings_at=NOW, product=PRODUCT):
    return frame(sums.LOOKS, [(product, sales_at, listings_at)])


def summed(*sold, looks=None):
    """Rows of (cell, median, sales, sales of the week, newest); a sale is (ago, price, cell)."""
    rows = [(PRODUCT, NOW - micro(ago), cell, price) for ago, price, cell in sold]
    found = sums.summed(frame(sums.SALES, rows), look() if looks is None else looks)
    return sorted(row[1:] for row in found.iter_rows())


THREE = ((days(1), 10_000, OWN), (days(2), 30_000, OWN), (days(3), 11_000, OWN))


@pytest.mark.parametrize(
    ("sold", "told"),
    [
        ((), []),
        (THREE, [(OWN, 11_000, 3, 3, NOW - micro(days(1)))]),
        # Between two prices it is their mean, rounded half-up.
        (THREE[::2], [(OWN, 10_500, 2, 2, NOW - micro(days(1)))]),
        (((days(1), 3, OWN), (days(1), 4, OWN)), [(OWN, 4, 2, 2, NOW - micro(days(1)))]),
        # Thirty days and a week, exactly, and a moment more.
        (((days(30), 5, OWN),), [(OWN, 5, 1, 0, NOW - micro(days(30)))]),
        (((days(30) + TICK, 5, OWN),), []),
        (((days(7), 5, OWN),), [(OWN, 5, 1, 1, NOW - micro(days(7)))]),
        (((days(7) + TICK, 5, OWN),), [(OWN, 5, 1, 0, NOW - micro(days(7) + TICK))]),
        # A sale at the look was seen by it, and a later one was not.
        (((days(0), 5, OWN),), [(OWN, 5, 1, 1, NOW)]),
        (((-TICK, 5, OWN),), []),
        # A cell counts its own.
        (
            ((days(1), 5, OWN), (days(9), 8, OTHER)),
            [(OWN, 5, 1, 1, NOW - micro(days(1))), (OTHER, 8, 1, 0, NOW - micro(days(9)))],
        ),
    ],
)
def test_sales_of_thirty_days_before_the_look_are_summed(sold, told):
    assert summed(*sold) == told


def test_without_a_look_at_its_sales_a_product_has_no_sums():
    assert summed(*THREE, looks=look(sales_at=None)) == []
    assert summed(*THREE, looks=look(product=8)) == []


def snapshots(*rows):
    """A row is (ago, cell, copies); it has half as many listings, the lowest at 100 x the copies."""
    told = [
        (PRODUCT, NOW - micro(ago), cell, -(-copies // 2), copies, 100 * copies)
        for ago, cell, copies in rows
    ]
    return frame(sums.LISTINGS, told)


def test_the_newest_snapshot_is_listed_and_no_other():
    seen = snapshots((days(0), OWN, 4), (days(1), OWN, 9), (days(1), OTHER, 2), (-TICK, OWN, 8))
    assert sums.listed(seen, look()).rows() == [(PRODUCT, OWN, 400, 2)]
    assert sums.listed(seen, look(listings_at=None)).is_empty()


@pytest.mark.parametrize(
    ("seen", "fell"),
    [
        # Four fifths, exactly, and one copy fewer.
        ([(days(1), OWN, 10), (days(0), OWN, 2)], True),
        ([(days(1), OWN, 10), (days(0), OWN, 3)], False),
        # A cell without a row holds nothing.
        ([(days(1), OWN, 10), (days(0), OTHER, 9)], True),
        ([(days(1), OTHER, 1), (days(0), OWN, 9)], True),
        # The time in which a fall still counts, exactly, and a moment more.
        ([(SUPPLY_SINCE, OWN, 10), (days(0), OWN, 1)], True),
        ([(SUPPLY_SINCE + TICK, OWN, 10), (days(0), OWN, 1)], False),
        ([(days(1), OWN, 1), (days(0), OWN, 10)], False),
        ([(days(0), OWN, 1)], False),
        ([], False),
    ],
)
def test_a_product_fell_of_which_a_cell_holds_much_less(seen, fell):
    assert sums.fallen(snapshots(*seen), look()).to_list() == [PRODUCT] * fell


def test_a_cell_that_was_only_listed_or_only_sold_has_a_count_of_zero_in_the_other():
    listed = frame(sums.LISTED, [(PRODUCT, OWN, 500, 3)])
    sold = frame(sums.SUMMED, [(PRODUCT, OTHER, 600, 2, 1, NOW)])
    told = sums.figures(listed, sold).sort("cell").rows()
    assert told == [
        (PRODUCT, OWN, 500, 3, None, 0, 0, None),
        (PRODUCT, OTHER, None, 0, 600, 2, 1, NOW),
    ]


MOMENT = st.integers(-2, 40 * 24).map(lambda hours: NOW - hours * micro(timedelta(hours=1)))
PRODUCTS = st.integers(1, 3)
SOLD = st.lists(st.tuples(PRODUCTS, MOMENT, st.integers(1, 2), st.integers(1, 10**9)), max_size=40)
SEEN = st.lists(
    st.tuples(PRODUCTS, MOMENT, st.integers(1, 2), st.integers(0, 60)),
    max_size=30,
    unique_by=lambda row: row[:3],
)
CLOCKS = st.dictionaries(PRODUCTS, st.tuples(st.none() | MOMENT, st.none() | MOMENT))


@given(SOLD, CLOCKS)
def test_any_sales_are_those_of_a_plain_loop(sold, clocks):
    looks = frame(sums.LOOKS, [(product, *both) for product, both in clocks.items()])
    expected = []
    for product, (at, _) in clocks.items():
        for cell in (1, 2):
            own = [
                (sold_at, price)
                for of, sold_at, of_cell, price in sold
                if (of, of_cell) == (product, cell)
                and at is not None
                and at - micro(SALES_WINDOW) <= sold_at <= at
            ]
            if own:
                # Twice the median is a whole number.
                middle = (int(2 * median(price for _, price in own)) + 1) // 2
                week = sum(sold_at >= at - micro(SALES_WEEK) for sold_at, _ in own)
                newest = max(sold_at for sold_at, _ in own)
                expected.append((product, cell, middle, len(own), week, newest))
    found = sums.summed(frame(sums.SALES, sold), looks)
    assert sorted(found.iter_rows()) == sorted(expected)


@given(SEEN, CLOCKS)
def test_any_fall_is_that_of_a_plain_loop(seen, clocks):
    looks = frame(sums.LOOKS, [(product, *both) for product, both in clocks.items()])
    copies = {row[:3]: row[3] for row in seen}
    fallen = {
        product
        for (product, at, cell), before in copies.items()
        if (now := clocks.get(product, (None, None))[1]) is not None
        and now - micro(SUPPLY_SINCE) <= at < now
        and copies.get((product, now, cell), 0) * 5 <= before
    }
    rows = [(*row, 1, number, 100) for *row, number in seen]
    assert set(sums.fallen(frame(sums.LISTINGS, rows), looks)) == fallen
