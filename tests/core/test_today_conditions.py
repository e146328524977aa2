"""The conditions of Today as a table of facts and the conditions that hold; shipping deadlines and
the days that a month is compared with.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cardsync.agents.sync.persons_turn import KINDS, Turn
from cardsync.catalog.catalog_age import Trouble
from cardsync.shop.today.conditions import conditions, same_days_before, ship_by
from cardsync.shop.today.shop_facts import Facts, FailedTask, Pending, Pull, Waiting

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def held(owner: bool = True, **facts) -> list[tuple[str, str]]:
    return [(one.kind, one.severity) for one in conditions(Facts(NOW, **facts), owner=owner)]


CASES = [
    ({}, []),
    ({"to_pull": Pending(2, NOW - DAY, None, NOW + 3 * DAY)}, [("orders_to_pull", "info")]),
    ({"to_pull": Pending(2, NOW - DAY, None, NOW + HOUR)}, [("orders_to_pull", "warn")]),
    ({"to_pull": Pending(2, NOW - DAY, None, NOW)}, [("orders_to_pull", "bad")]),
    (
        {"pull": Pull(3, 4, 0, Pending(4, NOW, Decimal(9), NOW + 3 * DAY))},
        [("pull_under_way", "info")],
    ),
    (
        {"pull": Pull(3, 4, 1, Pending(3, NOW, Decimal(9), NOW + HOUR))},
        [("pull_under_way", "warn")],
    ),
    ({"pull": Pull(3, 4, 1, Pending(3, NOW, Decimal(9), NOW))}, [("pull_under_way", "bad")]),
    ({"pull": Pull(3, 4, 4, Pending(0, NOW))}, [("pull_under_way", "info")]),
    ({"to_ship": Pending(6, NOW, Decimal(9), NOW + 3 * DAY)}, [("orders_to_ship", "info")]),
    ({"to_ship": Pending(6, NOW, Decimal(9), NOW + HOUR)}, [("orders_to_ship", "warn")]),
    ({"to_ship": Pending(6, NOW, Decimal(9), NOW)}, [("orders_to_ship", "bad")]),
    ({"missing": Pending(1, NOW, Decimal(9), NOW + 3 * DAY)}, [("cards_missing", "warn")]),
    ({"missing": Pending(1, NOW, Decimal(9), NOW)}, [("cards_missing", "bad")]),
    ({"upload_in_review": Waiting(7, NOW)}, [("upload_in_review", "bad")]),
    ({"run_in_review": Waiting(7, NOW)}, [("run_in_review", "bad")]),
    ({"held": Pending(3, NOW, Decimal(9))}, [("prices_held", "warn")]),
    ({"reviews": Pending(1, NOW, Decimal(9), NOW + DAY)}, [("prices_to_review", "warn")]),
    ({"recommended": Pending(2, NOW, Decimal(9))}, [("prices_recommended", "info")]),
    ({"price_file": Pending(3, NOW)}, [("price_file_to_approve", "warn")]),
    (
        {"failed_tasks": (FailedTask("refresh_orders", NOW), FailedTask("new_kind", NOW))},
        [("task_failed", "bad")] * 2,
    ),
    ({"agent_seen_at": NOW - HOUR}, []),
    ({"agent_seen_at": NOW - 2 * HOUR}, [("agent_silent", "warn")]),
    ({"agent_seen_at": NOW - DAY}, [("agent_silent", "bad")]),
    ({"turn": Turn("sign_in", None, NOW)}, [("your_turn", "bad")]),
    ({"turn": Turn("paused", None, NOW)}, [("your_turn", "info")]),
    ({"failed_cycles": Pending(1, NOW)}, [("sync_failing", "warn")]),
    ({"rejected_listings": Pending(1, NOW)}, [("listings_rejected", "warn")]),
    ({"unanswered_listings": Pending(1, NOW)}, [("listings_unanswered", "warn")]),
    ({"plans": Pending(1, NOW, None, NOW + HOUR), "plan_id": 5}, [("plans_waiting", "warn")]),
    ({"offers": Pending(2, NOW)}, [("offers_waiting", "warn")]),
    (
        {"offers_expiring": Pending(1, NOW, None, NOW + HOUR)},
        [("offers_expiring", "info")],
    ),
    ({"broken_rules": ("a",)}, [("rules_broken", "bad")]),
    ({"idle_rules": ("a", "b")}, [("rules_never_match", "info")]),
    ({"dropped": Pending(4, NOW, Decimal(8))}, [("cards_dropped", "info")]),
    ({"unpaid": True}, [("plan_unpaid", "warn")]),
    ({"backup": "The last backup failed: no room"}, [("backup_wrong", "bad")]),
    (
        {
            "catalogs": (
                Trouble("tcgcsv", ("gundam", "digimon"), NOW, "it is away"),
                Trouble("scryfall", ("magic",), NOW, "it is away"),
            )
        },
        [("catalog_old", "warn")] * 2,
    ),
    ({"past_due": True}, [("payment_past_due", "bad")]),
    ({"fresh": True}, [("set_up_unfinished", "info")]),
    ({"deletion": (NOW - DAY, NOW + DAY)}, [("account_to_be_deleted", "bad")]),
    ({"no_consent": True}, [("consent_missing", "warn")]),
    (
        {"pauses": ("auto_sync_paused", "automatic_pricing_paused")},
        [("auto_sync_paused", "info"), ("automatic_pricing_paused", "info")],
    ),
]


@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_a_condition_holds_as_long_as_its_facts(facts, expected):
    assert held(**facts) == expected


@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_staff_see_what_they_may_do(facts, expected):
    shown = {
        "orders_to_pull", "pull_under_way", "orders_to_ship", "cards_missing", "agent_silent", "your_turn", "sync_failing",
        "cards_dropped",
    }  # fmt: skip
    assert held(owner=False, **facts) == [one for one in expected if one[0] in shown]


def test_what_is_due_first_stands_first_and_then_what_is_worth_more():
    found = held(
        to_pull=Pending(1, NOW, Decimal(1), NOW + HOUR),
        held=Pending(1, NOW, Decimal(500)),
        rejected_listings=Pending(1, NOW, Decimal(900)),
        past_due=True,
        dropped=Pending(1, NOW, Decimal(10_000)),
    )
    assert [kind for kind, _ in found] == [
        "payment_past_due",
        "orders_to_pull",
        "listings_rejected",
        "prices_held",
        "cards_dropped",
    ]


def test_orders_that_are_due_before_a_review_ends_stand_above_it():
    found = held(
        to_pull=Pending(4, NOW, Decimal(31), NOW + DAY + HOUR),
        reviews=Pending(5, NOW, Decimal(310), NOW + 7 * DAY),
        pull=Pull(1, 2, 1, Pending(1, NOW, Decimal(2), NOW + 3 * DAY)),
        no_consent=True,
        failed_tasks=(FailedTask("refresh_orders", NOW),),
    )
    assert [kind for kind, _ in found] == [
        "task_failed",
        "orders_to_pull",
        "pull_under_way",
        "prices_to_review",
        "consent_missing",
    ]


def test_a_pull_says_how_far_it_is():
    told = Pull(1, 4, 0, Pending(4, NOW, Decimal(9), NOW + DAY))
    [one] = conditions(Facts(NOW, pull=told), owner=False)
    assert one.sentence == "Pull 1: 0 of 4 orders pulled."
    assert (one.label, one.path, one.count) == ("Continue the pull", "/pulls/1", 4)
    late = told._replace(pulled=3, left=Pending(1, NOW, Decimal(2), NOW))
    [one] = conditions(Facts(NOW, pull=late), owner=False)
    assert one.sentence == "Pull 1: 3 of 4 orders pulled. The oldest is past its shipping deadline."
    [one] = conditions(Facts(NOW, pull=Pull(1, 1, 1, Pending(0, NOW))), owner=False)
    assert (one.sentence, one.label) == ("Pull 1: 1 of 1 order pulled.", "Complete the pull")


@pytest.mark.parametrize("kind", KINDS.values())
def test_each_turn_says_what_to_do_and_where(kind):
    [one] = conditions(Facts(NOW, turn=Turn(kind, "market.example", NOW)), owner=False)
    begin, how = one.sentence.split(" (market.example). ")
    assert begin.startswith("Your turn: ")
    assert how.endswith(".")
    assert (one.since, one.path) == (NOW, "/today#sync")
    [other] = conditions(Facts(NOW, turn=Turn(kind, None, NOW)), owner=False)
    assert other.sentence == f"{begin}. {how}"


def test_one_and_many_read_well():
    for number, words in ((1, "1 order to pull"), (1_200, "1,200 orders to pull")):
        [one] = conditions(Facts(NOW, to_pull=Pending(number, NOW)), owner=True)
        assert one.sentence.startswith(words)
        assert one.count == number
    [one] = conditions(Facts(NOW, broken_rules=("a", "b", "c", "d")), owner=True)
    assert "“a”, “b”, “c”, …" in one.sentence


@pytest.mark.parametrize(
    ("placed", "due"),
    [
        (date(2026, 11, 23), date(2026, 11, 26)),  # Monday
        (date(2026, 11, 25), date(2026, 11, 30)),  # Wednesday
        (date(2026, 11, 27), date(2026, 12, 2)),  # Friday
        (date(2026, 11, 28), date(2026, 12, 2)),  # Saturday
        (date(2026, 11, 29), date(2026, 12, 2)),  # Sunday
    ],
)
def test_an_order_leaves_within_three_working_days(placed, due):
    placed_at = datetime(placed.year, placed.month, placed.day, 9, tzinfo=UTC)
    assert ship_by(placed_at, 3).date() == due
    assert ship_by(placed_at, 1) <= ship_by(placed_at, 2) < ship_by(placed_at, 3)


@pytest.mark.parametrize(
    ("today", "first", "last"),
    [
        (date(2026, 11, 23), date(2026, 10, 1), date(2026, 10, 23)),
        (date(2026, 3, 31), date(2026, 2, 1), date(2026, 2, 28)),
        (date(2026, 1, 5), date(2025, 12, 1), date(2025, 12, 5)),
    ],
)
def test_a_month_is_compared_with_the_same_days_before(today, first, last):
    assert same_days_before(today) == (first, last)
