"""Amounts in the files of lots and of payments: signs, commas, and what is told instead of guessed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from cardsync.platform.kit import typed_numbers
from cardsync.sales.lots.lot_csv import read_lots
from cardsync.sales.lots.payment_csv import read_payments


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ("1.50", "1.50"),
        ("$1,234.50", "1234.50"),
        ("1,50", "1.50"),
        ("1,5", "1.5"),
        ("-0,5", "-0.5"),
        ("1.234,50", "1234.50"),
        ("(1,50)", "-1.50"),
        ("($1.50)", "-1.50"),
        ("1,234,567", "1234567"),
        ("1,234", "1234"),
        ("1.234", "1.234"),
        ("1,2345", "1.2345"),
        (",50", "0.50"),
        ("12,34,56", None),
        ("1,50,", None),
        ("x", None),
        ("NaN", None),
    ],
)
def test_a_comma_before_three_digits_groups_and_any_other_comes_before_decimals(given, amount):
    assert typed_numbers.amount(given) == (None if amount is None else Decimal(amount))


def test_beside_semicolons_a_comma_comes_before_decimals_and_a_point_groups():
    table = b"sku;quantity;cost\n1;2;1,50\n2;1.002;1,234\n3;2;1.234\n4;1;1,2,3\n"
    rows = read_lots(table, date(2026, 7, 1))
    assert [lot.cost for lot in rows.lots] == [Decimal("1.50"), Decimal("1.234"), Decimal(1234)]
    assert [lot.quantity for lot in rows.lots] == [2, 1002, 2]
    assert [(row.row, row.field) for row in rows.rejected] == [(5, "cost")]
    assert rows.read_as == "separated by ;, with decimal commas"


def test_fees_that_came_back_are_taken_off_whatever_the_sign():
    table = b"Order,Commission,Processing Fee\nA,-1.50,-0.25\nA,0.50,0\nB,1.50,-0.50\nC,(2.00),\n"
    payments = read_payments(table)
    fees = {one.order_number: one.fees for one in payments.paid}
    assert fees == {"A": Decimal("1.25"), "B": Decimal("1.00"), "C": Decimal("2.00")}
