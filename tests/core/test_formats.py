"""Amounts on a page: dollars and whole cents, also inside a sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from cardsync.dashboard.formats import Reader

READER = Reader("en", UTC, datetime(2026, 7, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "–"),
        ("0", "$0.00"),
        ("10.1724", "$10.17"),
        ("10.175", "$10.18"),
        ("-1234.5", "−$1,234.50"),
        (Decimal("0.0042"), "$0.0042"),
    ],
)
def test_money_has_two_decimals_unless_it_is_under_a_cent(amount, shown):
    assert READER.money(amount) == shown


@pytest.mark.parametrize(
    ("told", "price", "shown"),
    [
        (
            "10.1724 is beyond the cap of the day; its limit is 9.318.",
            "9.31",
            "10.17 is beyond the cap of the day; its limit is 9.31.",
        ),
        ("5.41 -1.25 % and +0.0042 is 5.3466.", "5.35", "5.41 -1.25 % and +0.0042 is 5.35."),
        ("The base is low, 558.40.", "558.40", "The base is low, 558.40."),
    ],
)
def test_the_amounts_of_a_sentence_are_in_cents_and_its_shares_stay(told, price, shown):
    assert READER.in_cents(told, price) == shown
