"""The query of GET /api/orders as a filter, and windows of dates as tallied blocks of days."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.platform import errors
from cardsync.sales.orders.order_filter import (
    BLOCKS_FROM,
    Blocks,
    OrderFilter,
    blocks,
    read_filter,
    status_group,
)


def read(**given) -> OrderFilter:
    return read_filter(
        {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    )


def test_nothing_given_is_the_newest_fifty():
    wanted = read_filter({})
    assert wanted == OrderFilter()
    assert (wanted.page, wanted.per_page, wanted.offset) == (1, 50, 0)
    assert (wanted.sort, wanted.direction, wanted.items_per_order) == ("date", "desc", 20)
    assert wanted.tallied


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("page", "3", 3), ("page", "0", 1), ("page", "-7", 1), ("page", "two", 1), ("page", "", 1),
        ("page", "1.5", 1),
        ("page", "9" * 30, 1_000_000_000), ("page", "9" * 5000, 1),
        ("per_page", "200", 200), ("per_page", "201", 200), ("per_page", "0", 1),
        ("per_page", "-1", 1), ("per_page", "x", 50),
        ("items_per_order", "0", 0), ("items_per_order", "-5", 0), ("items_per_order", "200", 200),
        ("items_per_order", "999", 200),
        ("items_per_order", "all", 20),
    ],
)  # fmt: skip
def test_numbers_are_clamped_and_what_is_none_takes_the_default(name, value, expected):
    assert getattr(read(**{name: value}), name) == expected


def test_items_full_wins_over_items_per_order():
    assert read(items="full", items_per_order="3").items_per_order is None


@pytest.mark.parametrize("name", ["refund", "unfeedbacked"])
@pytest.mark.parametrize(
    ("value", "on"), [("true", True), ("1", True), ("True", True), ("false", False), ("0", False)]
)
def test_switches(name, value, on):
    wanted = read(**{name: value})
    assert (wanted.refunded, wanted.unfeedbacked) == (
        on and name == "refund",
        on and name == "unfeedbacked",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sort", "price"), ("direction", "down"), ("shipping_type", "ups"), ("ship_mark", "done"),
        ("items", "all"), ("refund", "yes"),
        ("unfeedbacked", "2"), ("date_from", "07/03/2026"), ("date_from", "2026-02-30"),
        ("date_to", "20260703"), ("date_to", "2026-W01-1"),
        ("date_to", "2026-7-3"), ("pull_session", "open"), ("pull_session", "-1"),
        ("pull_session", "1.0"), ("pull_session", "9" * 19),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_the_parameters_name(name, value):
    with pytest.raises(errors.InvalidPayload, match=f"^{name}: '"):
        read(**{name: value})


@pytest.mark.parametrize(
    "name",
    ["page", "sort", "direction", "status", "search", "date_from", "date_to",
     "product_line", "refund", "unfeedbacked",
     "shipping_type", "ship_mark", "pull_session", "items_per_order", "items"],
)  # fmt: skip
def test_a_blank_value_is_none(name):
    assert read(**{name: ""}) == OrderFilter()


@pytest.mark.parametrize(
    ("given", "statuses"),
    [
        ({"status": "Completed"}, ("Completed",)),
        ({"status": ["Completed", "Refunded", "Completed"]}, ("Completed", "Refunded")),
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
        ({"status": "Completed", "date_from": "2026-01-01", "refund": "true",
          "shipping_type": "pwe"}, True),
        ({"search": "a"}, False), ({"product_line": "magic"}, False),
        ({"unfeedbacked": "true"}, False),
        ({"ship_mark": "pending"}, False), ({"pull_session": "none"}, False),
        ({"pull_session": "0"}, False),
    ],
)  # fmt: skip
def test_what_is_counted_already(given, tallied):
    assert read(**given).tallied is tallied


DAYS = st.dates(date(1999, 6, 1), date(2000, 9, 30))


def days_of(window: Blocks) -> list[date]:
    return [
        BLOCKS_FROM + timedelta(days=32 * block + day - 1)
        for block in range(window.first, window.last + 1)
        for begin, end in [window.edges.get(block, (1, 32))]
        for day in range(begin, end + 1)
    ]


@given(DAYS, DAYS)
def test_blocks_make_up_a_window_exactly(first, last):
    window = blocks(first, last)
    assert days_of(window) == [first + timedelta(days=n) for n in range((last - first).days + 1)]
    assert set(window.edges) <= {window.first, window.last}


@given(DAYS)
def test_an_open_window_ends_with_the_last_block_there_can_be(day):
    since, until = blocks(day, None), blocks(None, day)
    assert (since.last, until.first) == (blocks(None, date.max).last, blocks(date.min, None).first)
    assert set(since.edges) <= {since.first}
    assert set(until.edges) <= {until.last}
    assert since.first == until.last


def test_everything_is_a_window_of_whole_blocks():
    assert blocks(None, None).edges == {}
