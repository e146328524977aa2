"""Formats of a page, one for each kind: money in whole cents (also inside a sentence), percent,
dates, months, and the names of games.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from cardsync.catalog import product_lines
from cardsync.dashboard.formats import GAMES, Reader, zone_of
from cardsync.platform.money import percent

READER = Reader("en", UTC, datetime(2026, 7, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "–"),
        ("0", "$0.00"),
        ("10.1724", "$10.17"),
        ("10.175", "$10.18"),
        ("-1234.5", "−$1,234.50"),
        (Decimal("0.0042"), "<$0.01"),
        ("-0.0042", "−<$0.01"),
        ("0.005", "<$0.01"),
        ("9.995", "$10.00"),
    ],
)
def test_money_has_two_decimals_and_what_is_under_a_cent_is_not_zero(amount, shown):
    assert READER.money(amount) == shown


@pytest.mark.parametrize(
    ("told", "price", "shown"),
    [
        (
            "10.1724 is over the cap for the day; its limit is 9.318.",
            "9.31",
            "$10.17 is over the cap for the day; its limit is $9.31.",
        ),
        (
            "1.25% under 5.41, and 0.0042 more, is 5.3466.",
            "5.35",
            "1.25% under $5.41, and <$0.01 more, is $5.35.",
        ),
        (
            "Promotion “2.50 off” takes 10% off 10.00: 9.00.",
            "9",
            "Promotion “2.50 off” takes 10% off $10.00: $9.00.",
        ),
        ("The base is low, 558.40.", "558.40", "The base is low, $558.40."),
        ("It brings $20.736 in cash.", "20.73", "It brings $20.73 in cash."),
        ("Of $1,204.50 it takes 2.50.", None, "Of $1,204.50 it takes $2.50."),
    ],
)
def test_the_amounts_of_a_sentence_are_in_cents_and_its_shares_stay(told, price, shown):
    assert READER.in_cents(told, price) == shown


@pytest.mark.parametrize(
    ("bp", "shown"),
    [(0, "0%"), (-100, "-1%"), (1250, "12.5%"), (1, "0.01%"), (20_000, "200%")],
)
def test_basis_points_are_percent_with_the_decimals_that_they_have(bp, shown):
    assert percent(bp) == shown


def test_a_change_has_its_percent_with_one_decimal():
    change = READER.change("1.80", "2.00")
    assert (change.direction, change.amount, change.percent) == ("up", "$0.20", "11.1%")
    assert READER.percent(None) == "–"
    assert Reader("de", UTC, READER.now).percent(Decimal("11.11")) == "11,1%"


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-11-24T21:05:00Z", "November 24, 2026, 4:05 PM EST"),
        ("2026-07-01T04:00:00Z", "July 1, 2026, 12:00 AM EDT"),
        ("2026-07-01T16:30:00Z", "July 1, 2026, 12:30 PM EDT"),
        (None, "–"),
    ],
)
def test_a_time_is_in_the_zone_of_the_account(moment, shown):
    assert Reader("en", zone_of("America/New_York"), READER.now).exact(moment) == shown


def test_days_and_months_are_written_out():
    assert READER.day(date(2026, 11, 24)) == READER.day("2026-11-24") == "November 24, 2026"
    assert READER.month(date(2026, 10, 1)) == READER.month("2026-10") == "October 2026"
    assert READER.day(None) == READER.month(None) == "–"
    assert READER.ago("2025-01-02T00:00:00Z") == "January 2, 2025"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("Sales report for 2026-10", "Sales report for October 2026"),
        ("Paused since 2026-11-24, on purpose", "Paused since November 24, 2026, on purpose"),
        ("Order A-2026-10 at 2026-10-01T08:00:00Z", "Order A-2026-10 at 2026-10-01T08:00:00Z"),
        ("2026-13 is no month", "2026-13 is no month"),
    ],
)
def test_days_and_months_of_a_sentence_are_written_out(told, shown):
    assert READER.in_words(told) == shown


def test_every_line_of_the_marketplace_has_its_proper_name():
    assert set(GAMES) == set(product_lines.NAMES)
    assert READER.game("flesh_and_blood") == "Flesh and Blood"
    assert READER.game("a_new_game") == "A New Game"
    assert READER.game(None) == ""


def test_a_status_has_the_spelling_of_the_pages():
    assert READER.status("Cancelled") == "Canceled"
    assert READER.status("cancelled") == "canceled"
    assert READER.status("Completed - Paid") == "Completed - Paid"


@pytest.mark.parametrize(
    ("deadline", "shown"),
    [
        ("2026-07-01T00:22:00Z", "22 min left"),
        ("2026-07-01T05:00:00Z", "5 hr left"),
        ("2026-07-02T05:00:00Z", "29 hr left"),
        ("2026-07-04T12:00:00Z", "by Saturday"),
        ("2026-07-09T12:00:00Z", "by July 9"),
        ("2026-06-30T23:30:00Z", "30 min late"),
        ("2026-06-30T20:00:00Z", "4 hr late"),
        ("2026-06-26T12:00:00Z", "5 days late"),
    ],
)
def test_a_deadline_says_how_long_there_is(deadline, shown):
    assert READER.left(deadline) == shown


def test_amounts_and_months_of_a_chart_are_short():
    assert [READER.round(amount) for amount in ("1000", "2.5", "-50", "0")] == [
        "$1,000", "$2.50", "−$50", "$0",
    ]  # fmt: skip
    assert READER.short_month(date(2026, 11, 1)) == "Nov 2026"


def test_marked_amounts_and_times_are_escaped_and_name_the_exact_time():
    assert READER.marked_money("0.0042") == '<span class="money">&lt;$0.01</span>'
    time = READER.marked_time(datetime(2026, 6, 30, 16, 5, tzinfo=UTC))
    assert 'datetime="2026-06-30T16:05:00Z"' in time
    assert ' title="June 30, 2026, 4:05 PM UTC">8 hr ago</time>' in time
    assert READER.marked_time(None) == '<span class="muted">never</span>'
