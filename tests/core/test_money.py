"""Money: dollars to ten-thousandths and back, without a float anywhere."""

import ast
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardsync
from builders import NO_AMOUNTS
from cardsync.asgi import create_app
from cardsync.platform.money import (
    MAX_UNITS,
    dollars,
    from_units,
    read_amount,
    read_percent,
    to_units,
)
from cardsync.platform.read_json import Amount
from cardsync.platform.settings import Settings

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
    rooms = (package / "prices").iterdir()
    priced = [room for room in rooms if room.name not in ("plans", "recommendations")]
    files = [package / "platform" / "money.py"]
    files += [path for room in priced for path in [room, *room.rglob("*")] if path.suffix == ".py"]
    assert len(files) > 5
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            floats = (isinstance(node, ast.Constant) and isinstance(node.value, float)) or (
                isinstance(node, ast.Name) and node.id == "float"
            )
            assert not floats, f"{path.name}:{node.lineno} uses a float"


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ("12.50", "12.5000"),
        (" 12.5 ", "12.5000"),
        ("-.5", "-0.5000"),
        ("+3.", "3.0000"),
        ("0.00005", "0.0001"),
        (7, "7.0000"),
        (13.040000000000001, "13.0400"),
        (1e-05, "0.0000"),
        (1e7, "10000000.0000"),
        ("99999999.9999", "99999999.9999"),
        (Decimal("1.5"), "1.5000"),
    ],
)
def test_an_amount_is_a_number_of_json_or_a_plain_decimal(given, amount):
    assert str(read_amount(given)) == amount


NO_AMOUNT = [*NO_AMOUNTS, "", ".", "-", "$5", "1,5", "1 0", "0x1F", "99999999.99995", 10**8, 1e300,
    float("inf"), float("nan"), Decimal("NaN"), Decimal("1E+40000"), 10**5_000, True, None, [], {},
    "1" * 41, "5\n5"]  # fmt: skip


@pytest.mark.parametrize("given", NO_AMOUNT, ids=lambda given: repr(type(given)))
def test_what_is_no_amount_is_told_in_a_sentence(given):
    with pytest.raises(ValueError, match="must be an amount like"):
        read_amount(given)


@given(st.text() | st.floats() | st.integers() | st.decimals(allow_nan=True))
def test_whatever_is_given_is_an_amount_that_fits_or_a_sentence(anything):
    try:
        amount = read_amount(anything)
    except ValueError:
        pass
    else:
        assert abs(to_units(amount)) <= MAX_UNITS


@pytest.mark.parametrize(
    ("text", "bp"), [("50%", 5_000), (" −2,5 % ", -250), ("+0.01", 1), ("100.00", 10_000)]
)
def test_a_percentage_as_people_type_it(text, bp):
    assert read_percent(text) == bp


@pytest.mark.parametrize("text", [*NO_AMOUNTS, "", "%", "1.234", "1.2.3"])
def test_what_is_no_percentage_is_told_in_a_sentence(text):
    with pytest.raises(ValueError, match="at most two decimals"):
        read_percent(text)


def test_no_body_that_the_framework_reads_has_a_decimal_of_its_own():
    app = create_app(Settings(database_url="postgresql:///"))
    bodies = {
        handler.parsed_data_field.annotation
        for route in app.routes
        for handler in getattr(route, "route_handlers", ())
        if handler.parsed_data_field is not None
    }
    kinds = [msgspec.inspect.type_info(body) for body in bodies]
    assert len(kinds) > 30
    seen, amounts = set(), 0
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, msgspec.inspect.DecimalType):
            raise AssertionError("use read_json.Amount for money in a body")
        amounts += isinstance(kind, msgspec.inspect.CustomType) and kind.cls is Amount
        if id(kind) not in seen and getattr(kind, "cls", None) not in seen:
            seen |= {id(kind), getattr(kind, "cls", id(kind))}
            kinds += [field.type for field in getattr(kind, "fields", ())]
            kinds += getattr(kind, "types", ()) or getattr(kind, "item_types", ())
            kinds += [
                inner
                for name in ("type", "item_type", "value_type")
                if (inner := getattr(kind, name, None)) is not None
            ]
    assert amounts > 8


def test_no_other_module_reads_a_decimal_of_what_was_sent():
    """`Decimal` of a text takes infinity, underscores and exponents: what is sent is read by
    `read_amount`, and the modules named here read what was read before.
    """
    package = Path(cardsync.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        if "InvalidOperation" in path.read_text() and name not in TRUSTED:
            found.add(name)
    assert found == set()


# The cells of orders keep the scale with which they were sent.
TRUSTED = {"sales/orders/cells.py"}
