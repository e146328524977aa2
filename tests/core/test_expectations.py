"""Expectations of rule tests: what can be written, what it reads as, and which prices fail it."""

from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.prices.rule_tests.expectations import (
    BadExpectation,
    Expectation,
    read_expectation,
)

READ = {
    "never moves": Expectation("never moves"),
    " Never  MOVES ": Expectation("never moves"),
    "never under 20.00": Expectation("never under", 200_000),
    "never over $5": Expectation("never over", 50_000),
    "equals 4.99": Expectation("equals", 49_900),
    "lands at 4.99": Expectation("equals", 49_900),
    "at most +10%": Expectation("at most", 1_000),
    "at most +2.5%": Expectation("at most", 250),
    "at most -10%": Expectation("at most", -1_000),
    "at most \u221210%": Expectation("at most", -1_000),
}


@pytest.mark.parametrize("text", READ)
def test_a_text_reads_as_an_expectation_and_back(text):
    assert read_expectation(text) == READ[text]
    assert read_expectation(READ[text].text) == READ[text]


@pytest.mark.parametrize(
    "text",
    ["", "moves", "never under", "never under -1", "never under 0", "lands at 1.00001",
     "at most 10%", "at most +0%", "at most -101%", "never moves much", "lands at ٣"],
)  # fmt: skip
def test_other_texts_are_refused_with_what_can_be_written(text):
    with pytest.raises(BadExpectation, match=r"never under 20\.00"):
        read_expectation(text)


AMOUNTS = st.one_of(st.none(), st.integers(1, 10**12 - 1))
MOVES = st.one_of(st.integers(-10_000, -1), st.integers(1, 1_000_000))
EXPECTATIONS = st.one_of(
    st.just(Expectation("never moves")),
    st.builds(
        Expectation,
        st.sampled_from(["never under", "never over", "equals"]),
        st.integers(1, 10**12 - 1),
    ),
    st.builds(Expectation, st.just("at most"), MOVES),
)


def fails(expectation: Expectation, now: int | None, then: int | None) -> bool:
    match expectation.kind:
        case "never moves":
            return now != then
        case "never under":
            return then is not None and then < expectation.amount
        case "never over":
            return then is not None and then > expectation.amount
        case "equals":
            return then is not None and then != expectation.amount
    if now is None or then is None:
        return False
    moved = (Decimal(then) - now) / now * 10_000
    return moved > expectation.amount if expectation.amount > 0 else moved < expectation.amount


@given(EXPECTATIONS, st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=20))
def test_the_condition_says_what_a_reader_of_the_text_would(expectation, prices):
    frame = pl.DataFrame(
        prices,
        schema={"current_price": pl.Int64, "asks": pl.Int64},
        orient="row",
    )
    found = frame.select(expectation.failing())
    assert found.to_series().to_list() == [fails(expectation, *pair) for pair in prices]
    assert read_expectation(expectation.text) == expectation
