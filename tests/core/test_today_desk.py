"""Today as a desk: work in groups by when it is due and then by money, and lines of at least two
days.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cardsync.platform.clock import rfc3339
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.shop.today.desk import by_due, line_of, week_before
from cardsync.shop.today.schemas import ConditionBody, SalesBody, SoldBody, SoldDay
from cardsync.shop.today.shop_facts import Condition

# In New York it is still the evening of the 22nd.
NOW = datetime(2026, 11, 23, 3, tzinfo=UTC)
ZONE = "America/New_York"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TODAY = date(2026, 11, 23)


def a_condition(severity="info", deadline=None, money=None, title="x"):
    one = Condition("cards_dropped", severity, title, "See", "/cards", deadline=deadline)
    return struct_of(ConditionBody, one, money=money)


@pytest.mark.parametrize(
    ("severity", "deadline", "group"),
    [
        ("bad", None, "Due today"),
        ("bad", NOW + 9 * DAY, "Due today"),
        ("warn", NOW - DAY, "Due today"),
        ("info", NOW + HOUR, "Due today"),
        # After midnight of the shop's own day.
        ("info", NOW + 3 * HOUR, "This week"),
        ("info", NOW + 7 * DAY, "This week"),
        ("warn", None, "This week"),
        ("warn", NOW + 9 * DAY, "Anytime"),
        ("info", NOW + 9 * DAY, "Anytime"),
        ("info", None, "Anytime"),
    ],
)
def test_work_is_in_the_group_of_its_deadline(severity, deadline, group):
    [found] = by_due([a_condition(severity, deadline)], NOW, ZONE)
    assert found.title == group
    assert found.runs == (group == "Due today")


def test_within_a_group_the_most_money_is_first_and_the_unknown_last():
    those = [
        a_condition(title=title, money=money)
        for title, money in (("a", None), ("b", "5"), ("c", "70.5"), ("d", None))
    ]
    urgent = a_condition("bad", title="e")
    first, last = by_due([*those, urgent], NOW, ZONE)
    assert [one.title for one in first.work] == ["e"]
    assert [one.title for one in last.work] == ["c", "b", "a", "d"]
    assert by_due([], NOW, ZONE) == []


def test_a_condition_says_its_sentence_in_two_parts():
    one = Condition("plan_unpaid", "warn", "No plan", "See", "/account", detail="Nothing is sent.")
    assert one.sentence == "No plan. Nothing is sent."
    assert Condition("plan_unpaid", "warn", "No plan", "See", "/account").sentence == "No plan."
    shown = struct_of(ConditionBody, one, money=None)
    assert (shown.detail, shown.deadline) == ("Nothing is sent.", None)
    assert a_condition(deadline=NOW).deadline == rfc3339(NOW)


@pytest.mark.parametrize(
    ("days", "ends"),
    [
        ([], None),
        ([(1, "5")], None),
        # A day before the thirty is not drawn.
        ([(40, "1"), (3, "5")], None),
        ([(40, "1"), (3, "5"), (0, "7")], ("5", "7")),
        ([(3, "5"), (1, "2")], ("5", "2")),
    ],
)
def test_a_line_has_at_least_two_days(days, ends):
    line = line_of(((TODAY - ago * DAY, Decimal(amount)) for ago, amount in days), TODAY)
    found = None if line is None else (str(line.first), str(line.last))
    assert found == ends


def test_the_same_weekday_a_week_ago_is_known_or_not():
    none = SoldBody(0, "0.00")
    days = [SoldDay(TODAY - DAY * ago, 1, f"{ago}.00") for ago in (7, 1, 0)]
    sales = SalesBody(TODAY, none, none, TODAY, TODAY, none, days)
    assert week_before(sales) == "7.00"
    sales.days = days[1:]
    assert week_before(sales) is None
