"""Bars of a chart: each amount has its height, and an unknown one has no bar."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from cardsync.dashboard.bars import bars_of, histogram
from cardsync.prices.preview.schemas import MoveBin

OCTOBER, NOVEMBER, DECEMBER = date(2026, 10, 1), date(2026, 11, 1), date(2026, 12, 1)


def share(text):
    assert text.endswith("%")
    return Decimal(text.removesuffix("%"))


def test_a_chart_needs_two_days():
    assert bars_of([], ["Gross"]) is None
    assert bars_of([(OCTOBER, {"Gross": "5.00"})], ["Gross"]) is None


def test_heights_are_as_the_amounts_and_an_unknown_one_has_no_bar():
    points = [
        (NOVEMBER, {"Gross": "200.00", "Net": None}),
        (OCTOBER, {"Gross": "100.00", "Net": "50.00"}),
    ]
    found = bars_of(points, ["Gross", "Net"])
    assert [(bar.day, bar.series, bar.amount) for bar in found.bars] == [
        (OCTOBER, "Gross", "100.00"),
        (OCTOBER, "Net", "50.00"),
        (NOVEMBER, "Gross", "200.00"),
    ]
    assert [share(bar.height) for bar in found.bars] == [39, Decimal("19.5"), 78]
    assert [line.amount for line in found.lines] == ["200", "150", "100", "50", "0"]
    assert [each.day for each in found.days] == [OCTOBER, NOVEMBER]


def test_a_loss_is_below_the_line_of_zero():
    points = [(OCTOBER, {"Net": "10.00"}), (NOVEMBER, {"Net": "-10.00"})]
    gain, loss = bars_of(points, ["Net"]).bars
    lines = bars_of(points, ["Net"]).lines
    assert [line.amount for line in lines] == ["10", "5", "0", "-5", "-10"]
    zero = share(lines[2].y)
    assert share(gain.y) + share(gain.height) == zero == share(loss.y)


@given(st.lists(st.decimals(-1000, 1000, places=2), min_size=2, max_size=40))
def test_every_bar_is_inside_of_the_picture(amounts):
    points = [
        (date(2020 + at // 12, at % 12 + 1, 1), {"A": str(a)}) for at, a in enumerate(amounts)
    ]
    found = bars_of(points, ["A"])
    assert len(found.bars) == len(amounts)
    assert sum(each.always for each in found.days) <= 3
    assert len(found.days) <= 13
    first, *_, last = found.days
    assert (share(first.x), first.anchor, first.always) == (0, "start", True)
    assert (round(share(last.x)), last.anchor, last.always) == (100, "end", True)
    known = [Decimal(line.amount) for line in found.lines]
    assert 0 in known
    assert len(known) <= 7
    assert min(known) <= min(amounts)
    assert max(known) >= max(amounts)
    for bar in found.bars:
        assert 0 <= share(bar.x) <= Decimal("100.01") - share(bar.width)
        assert 0 <= share(bar.y) <= Decimal("88.02") - share(bar.height)


def test_a_histogram_has_those_that_stay_in_its_middle_and_cuts_them_rather_than_the_moves():
    bins = [MoveBin(-500, 0, 4), MoveBin(0, 500, 2), MoveBin(500, None, 0)]
    found = histogram(bins, 90)
    assert [(one.kind, one.cards, one.edge, one.cut) for one in found] == [
        ("minus", 4, -500, False),
        ("same", 90, 0, True),
        ("plus", 2, 500, False),
        ("plus", 0, None, False),
    ]
    four, same, two, none = (share(one.height) for one in found)
    assert (four, four, Decimal(0)) == (same, two * 2, none)
    assert all(share(one.y) + share(one.height) == Decimal(88) for one in found)
    assert [share(one.middle) for one in found] == [Decimal(f"{n}.5") for n in (12, 37, 62, 87)]
    alone = histogram([MoveBin(-500, 0, 0), MoveBin(0, 500, 0)], 3)
    assert [one.cut for one in alone] == [False] * 3
