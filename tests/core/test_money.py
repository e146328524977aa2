"""Money: dollars to ten-thousandths and back, without a float anywhere."""

import ast
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardsync
from cardsync.money import MAX_UNITS, dollars, from_units, to_units

all_units = st.integers(-MAX_UNITS, MAX_UNITS)


@pytest.mark.parametrize(
    ("amount", "units"),
    [
        ("0", 0),
        ("1", 10_000),
        ("1.20", 12_000),
        ("0.0001", 1),
        ("0.00004", 0),
        ("0.00005", 1),
        ("0.00015", 2),
        ("0.00025", 3),
        ("-0.00005", -1),
        ("99999999.9999", MAX_UNITS),
        ("1E+3", 10_000_000),
    ],
)
def test_a_fifth_decimal_rounds_half_up(amount, units):
    assert to_units(Decimal(amount)) == units


@given(all_units)
def test_units_survive_the_way_to_decimal_and_back(units):
    amount = from_units(units)
    assert to_units(amount) == units
    assert amount.as_tuple().exponent == -4


@given(st.decimals("-99999999.9999", "99999999.9999", places=4))
def test_decimals_survive_the_way_to_units_and_back(amount):
    assert from_units(to_units(amount)) == amount


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (0, "0.00"),
        (1, "0.0001"),
        (100, "0.01"),
        (12_000, "1.20"),
        (12_340, "1.234"),
        (12_345, "1.2345"),
        (-5_000, "-0.50"),
        (MAX_UNITS, "99999999.9999"),
    ],
)
def test_dollars_have_at_least_two_decimals_and_no_idle_zeros_behind_them(units, text):
    assert dollars(units) == text


@given(all_units)
def test_dollars_say_exactly_the_amount(units):
    assert Decimal(dollars(units)) == from_units(units)


def test_the_modules_that_handle_prices_hold_no_float():
    package = Path(cardsync.__file__).parent
    files = [package / "money.py", *(package / "pricing").rglob("*.py")]
    assert len(files) > 5
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            floats = (isinstance(node, ast.Constant) and isinstance(node.value, float)) or (
                isinstance(node, ast.Name) and node.id == "float"
            )
            assert not floats, f"{path.name}:{node.lineno} uses a float"
