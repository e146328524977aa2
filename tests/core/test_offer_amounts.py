"""What an offer brings in cash, in credit or split, for lines of any prices."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.buying.offers.offer_amounts import (
    NEXT,
    Payment,
    Priced,
    cash_share,
    cost_each,
    need_next,
    payment,
    regraded,
    totals,
)
from cardsync.platform import errors

CENTS = st.integers(1, 100_000).map(lambda cents: Decimal(cents) / 100)
BOTH = st.builds(Priced, st.integers(0, 40), CENTS, CENTS)
LINES = st.lists(
    st.one_of(
        BOTH,
        st.builds(Priced, st.integers(0, 40), CENTS, st.none()),
        st.builds(Priced, st.integers(0, 40), st.none(), CENTS),
        st.builds(Priced, st.integers(0, 40), st.none(), st.none()),
    ),
    max_size=12,
)
ONE = Priced(4, Decimal("10.00"), Decimal("12.00"))


def parts(lines):
    """The least and the most that a split may pay in cash."""
    least = sum((x.copies * x.cash for x in lines if x.cash and x.credit is None), Decimal(0))
    return least, totals(lines).cash


@given(LINES)
def test_cash_and_credit_alone_are_the_sums(lines):
    whole = totals(lines)
    assert payment(lines, "cash", None) == Payment(whole.cash, Decimal(0))
    assert payment(lines, "credit", None) == Payment(Decimal(0), whole.credit)


@given(LINES, st.integers(0, 100))
def test_a_split_lies_between_both_ways_and_pays_no_card_twice(lines, percent):
    least, most = parts(lines)
    part = (least + (most - least) * percent / 100).quantize(Decimal("0.01"))
    part = min(max(part, least), most)
    paid = payment(lines, "split", part)
    assert paid.cash == part
    assert 0 <= paid.credit <= totals(lines).credit
    if part == most:
        alone = sum((x.copies * x.credit for x in lines if x.credit and x.cash is None), Decimal(0))
        assert paid.credit == alone
    share = cash_share(lines, part)
    assert 0 <= share <= 1
    for line in lines:
        cost = cost_each(line, "split", share)
        prices = [price for price in (line.cash, line.credit) if price is not None]
        assert (cost is None) == (not prices)
        assert cost is None or min(prices) <= cost <= max(prices)


@pytest.mark.parametrize("part", [None, Decimal("-0.01"), Decimal("40.01")])
def test_a_split_pays_no_more_cash_than_there_is(part):
    with pytest.raises(errors.InvalidPayload):
        payment([ONE], "split", part)


def test_only_a_split_has_a_part_in_cash():
    with pytest.raises(errors.InvalidPayload):
        payment([ONE], "cash", Decimal(1))


@pytest.mark.parametrize(
    ("was", "now", "brings"),
    [
        ("NM", "NM", "10.00"),
        ("NM", "LP", "8.50"),
        ("LP", "NM", "11.76"),
        ("NM", "DMG", "3.00"),
        ("NM", "U", "0.00"),
    ],
)
def test_another_condition_brings_what_it_counts(was, now, brings):
    assert regraded(Decimal("10.00"), {}, was, now) == Decimal(brings)


def test_a_condition_that_the_rule_does_not_buy_brings_nothing():
    assert regraded(Decimal(10), {"NM": 10_000}, "NM", "HP") == 0
    assert regraded(None, {"NM": 10_000}, "NM", "HP") is None


def test_what_has_ended_becomes_nothing_more():
    for state in ("in_stock", "declined", "expired"):
        for to in NEXT:
            with pytest.raises(errors.OfferStateWrong):
                need_next(state, to)
