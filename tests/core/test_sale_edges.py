"""The starts and ends of sales, as a table: those that were on, the sales now, the passed edge."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cardsync.prices.engine.rules import Sale
from cardsync.prices.runs.sale_edges import in_force, next_edge, passed

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


def a_sale(id: int, starts: timedelta, ends: timedelta, *, enabled: bool = True) -> Sale:
    return replace(Sale(id, "Sale", 10, -1000, NOW + starts, NOW + ends), enabled=enabled)


ON, OVER, AHEAD = a_sale(1, -HOUR, HOUR), a_sale(2, -2 * HOUR, -HOUR), a_sale(3, HOUR, 2 * HOUR)


@pytest.mark.parametrize(
    ("before", "asked", "sales", "trigger"),
    [
        ([], [], [], None),
        ([], [], [ON], "sale_started"),
        ([], [1], [ON], "sale_started"),
        ([1], [1], [ON], None),
        ([], [], [OVER], None),
        ([], [2], [OVER], "sale_ended"),
        ([2], [], [OVER], "sale_ended"),
        ([], [], [AHEAD], None),
        ([2], [], [ON, OVER], "sale_ended"),
        ([1, 2], [], [ON, OVER], "sale_ended"),
        ([1], [], [], "sale_ended"),
        ([1], [], [replace(ON, enabled=False)], "sale_ended"),
        ([1], [], [ON, a_sale(4, -TICK, HOUR)], "sale_started"),
    ],
    ids=[
        "no sales", "it started", "an upload knew it first", "known", "it came and went",
        "it went with targets", "it ended",
        "not yet", "one ended, one started",
        "one ended of two", "deleted", "switched off", "another one started",
    ],
)  # fmt: skip
def test_an_edge_is_passed_when_other_sales_are_on_than_before(before, asked, sales, trigger):
    assert passed(before, asked, sales, NOW) == trigger


@pytest.mark.parametrize(
    ("starts", "ends", "on"),
    [(timedelta(), HOUR, [9]), (TICK, HOUR, []), (-HOUR, timedelta(), []), (-HOUR, TICK, [9])],
    ids=["from its start on", "just before", "not at its end", "until just before"],
)
def test_a_sale_is_on_from_its_start_until_before_its_end(starts, ends, on):
    assert in_force([a_sale(9, starts, ends)], NOW) == on


@pytest.mark.parametrize(
    ("sales", "edge"),
    [
        ([], None),
        ([OVER], None),
        ([ON], HOUR),
        ([a_sale(5, timedelta(), HOUR)], HOUR),
        ([replace(ON, enabled=False)], None),
        ([AHEAD, a_sale(6, -HOUR, TICK)], TICK),
    ],
    ids=[
        "no sales",
        "over",
        "its end",
        "an edge at this moment is passed",
        "switched off",
        "the nearest",
    ],
)
def test_the_next_edge_is_the_nearest_ahead(sales, edge):
    assert next_edge(sales, NOW) == (None if edge is None else NOW + edge)
