"""The query of GET /api/orders as a filter, and windows of dates as tallied periods."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync import errors
from cardsync.orders.filters import OrderFilter, periods, read_filter, status_group


def read(**given) -> OrderFilter:
    return read_filter({name: value if isinstance(value, list) else [value] for name, value in given.items()})


def test_nothing_given_is_the_newest_fifty():
    wanted = read_filter({})
    assert wanted == OrderFilter()
    assert (wanted.page, wanted.per_page, wanted.offset) == (1, 50, 0)
    assert (wanted.sort, wanted.direction, wanted.items_per_order) == ("date", "desc", 20)
    assert wanted.tallied


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("page", "3", 3), ("page", "0", 1), ("page", "-7", 1), ("page", "two", 1), ("page", "", 1), ("page", "1.5", 1),
        ("page", "9" * 30, 1_000_000_000), ("page", "9" * 5000, 1),
        ("per_page", "200", 200), ("per_page", "201", 200), ("per_page", "0", 1), ("per_page", "-1", 1), ("per_page", "x", 50),
        ("items_per_order", "0", 0), ("items_per_order", "-5", 0), ("items_per_order", "200", 200), ("items_per_order", "999", 200),
        ("items_per_order", "all", 20),
    ],
)  # fmt: skip
def test_numbers_are_clamped_and_what_is_none_takes_the_default(name, value, expected):
    assert getattr(read(**{name: value}), name) == expected


def test_items_full_wins_over_items_per_order():
    assert read(items="full", items_per_order="3").items_per_order is None


@pytest.mark.parametrize("name", ["refund", "unfeedbacked"])
@pytest.mark.parametrize(("value", "on"), [("true", True), ("1", True), ("True", True), ("false", False), ("0", False)])
def test_switches(name, value, on):
    wanted = read(**{name: value})
    assert (wanted.refunded, wanted.unfeedbacked) == (on and name == "refund", on and name == "unfeedbacked")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sort", "price"), ("direction", "down"), ("shipping_type", "ups"), ("ship_mark", "done"), ("items", "all"), ("refund", "yes"),
        ("unfeedbacked", "2"), ("date_from", "07/03/2026"), ("date_from", "2026-02-30"), ("date_to", "20260703"), ("date_to", "2026-W01-1"),
        ("date_to", "2026-7-3"), ("pull_session", "open"), ("pull_session", "-1"), ("pull_session", "1.0"), ("pull_session", "9" * 19),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_the_parameters_name(name, value):
    with pytest.raises(errors.InvalidPayload, match=f"^{name}: '"):
        read(**{name: value})


@pytest.mark.parametrize(
    "name",
    ["page", "sort", "direction", "status", "status[]", "search", "date_from", "date_to", "product_line", "refund", "unfeedbacked",
     "shipping_type", "ship_mark", "pull_session", "items_per_order", "items"],
)  # fmt: skip
def test_a_blank_value_is_none(name):
    assert read(**{name: ""}) == OrderFilter()


@pytest.mark.parametrize(
    ("given", "statuses"),
    [
        ({"status": "Completed"}, ("Completed",)),
        ({"status[]": ["Completed", "Refunded"]}, ("Completed", "Refunded")),
        ({"status": "Completed", "status[]": ["Refunded", "Completed"]}, ("Completed", "Refunded")),
        ({"status": ["Canceled", "cancelled"]}, ("Cancelled",)),
        ({"status": "all"}, ()),
        ({"status": "Unknown"}, ("Unknown",)),
    ],
)
def test_statuses(given, statuses):
    assert read(**given).statuses == statuses


def test_both_spellings_of_cancelled_are_one_group():
    assert [status_group(word) for word in ("Canceled", "Cancelled", " CANCELED ", "Shipped")] == [
        "Cancelled", "Cancelled", "Cancelled", "Shipped",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "line"), [("magic", "magic"), ("Pokemon Japan", "pokemon_japan"), ("Other", "Other")]
)
def test_a_product_line_is_known_by_its_label_too(value, line):
    assert read(product_line=value).product_line == line


def test_the_last_of_several_values_counts_and_unknown_parameters_do_not():
    assert read(page=["2", "3"], colour="blue").page == 3


def test_a_nul_is_replaced_because_the_database_takes_none():
    assert read(search="a\0b").search == "a\ufffdb"


def test_blanks_are_searched_for_as_they_are():
    assert read(search=" ann").search == " ann"


@pytest.mark.parametrize(
    ("given", "tallied"),
    [
        ({"status": "Completed", "date_from": "2026-01-01", "refund": "true", "shipping_type": "pwe"}, True),
        ({"search": "a"}, False), ({"product_line": "magic"}, False), ({"unfeedbacked": "true"}, False),
        ({"ship_mark": "pending"}, False), ({"pull_session": "none"}, False), ({"pull_session": "0"}, False),
    ],
)  # fmt: skip
def test_what_is_counted_already(given, tallied):
    assert read(**given).tallied is tallied


def days_of(period: str, first: date, last: date) -> set[date]:
    """The days of all periods that begin between the two."""
    day, found = first, set()
    while day <= last:
        if period == "day":
            found.add(day)
        elif day.day == 1:
            following = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
            found |= {day + timedelta(days=n) for n in range((following - day).days)}
        day += timedelta(days=1)
    return found


DAYS = st.dates(date(2023, 11, 1), date(2024, 4, 30))


@given(DAYS, DAYS)
def test_periods_make_up_a_window_exactly_and_whole_months_are_taken_whole(first, last):
    made = periods(first, last)
    listed = [day for part in made for day in sorted(days_of(*part))]
    wanted = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    assert sorted(listed) == wanted
    days = sum((b - a).days + 1 for period, a, b in made if period == "day")
    assert days <= 60


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (None, None, [("month", date.min, date(9999, 12, 1))]),
        (date(2026, 7, 1), None, [("month", date(2026, 7, 1), date(9999, 12, 1))]),
        (None, date(2026, 7, 31), [("month", date.min, date(2026, 7, 1))]),
        (date(9999, 12, 30), None, [("day", date(9999, 12, 30), date.max)]),
        (date(2026, 7, 3), date(2026, 7, 3), [("day", date(2026, 7, 3), date(2026, 7, 3))]),
        (date(2026, 7, 4), date(2026, 7, 3), []),
    ],
)
def test_open_and_empty_windows(first, last, expected):
    assert periods(first, last) == expected
