"""Computes the bars of a chart, a histogram and a waterfall, so that a page draws them without a
script. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final, NamedTuple

from cardsync.prices.preview.schemas import MoveBin

# A day, with the amount of each series on that day (None if unknown).
Point = tuple[date, Mapping[str, str | None]]

# The top and the bottom of the bars, in percent of the picture's height. The largest amount is
# written above the bars, the days below them.
_TOP: Final = Decimal(10)
_BOTTOM: Final = Decimal(88)
# In a chart with up to this many bars, every bar has its day under it. The first day is aligned
# with the left edge, the last day with the right edge.
_NAMED: Final = 13
# The largest number of steps between a chart's lines.
_STEPS: Final = 4
# The share of a day's width that its bars take, and the largest width of a bar in percent.
_FILLED: Final = Decimal("0.7")
_WIDEST: Final = Decimal(6)


class Bar(NamedTuple):
    """A bar of a chart. `color` is the number of its series, from 1; `x`, `y`, `width` and `height`
    are percent of the picture.
    """

    day: date
    series: str
    amount: str
    color: int
    x: str
    y: str
    width: str
    height: str


class Named(NamedTuple):
    """A day under a bar. `anchor` is the part of the text that is at `x`: start, middle or end. A
    phone shows only the days with `always`.
    """

    day: date
    x: str
    anchor: str
    always: bool


class Line(NamedTuple):
    """A horizontal line at a round amount; `y` is its distance from the top."""

    amount: str
    y: str


class Bars(NamedTuple):
    """A chart. `lines` are sorted from the top; one of them is the line of zero."""

    bars: list[Bar]
    days: list[Named]
    lines: list[Line]


def bars_of(points: Sequence[Point], series: Sequence[str]) -> Bars | None:
    """Return the chart of these points, the earliest day first; None for fewer than two days."""
    if len(points) < 2:
        return None
    ordered = sorted(points, key=lambda point: point[0])
    known = [Decimal(amount) for _, by in ordered for amount in by.values() if amount is not None]
    scale = _scale_of(max([Decimal(0), *known]), min([Decimal(0), *known]))
    group = Decimal(100) / len(ordered)
    bars = [
        _bar(day, name, amount, number, group * place, group, len(series), scale)
        for place, (day, by) in enumerate(ordered)
        for number, name in enumerate(series)
        if (amount := by.get(name)) is not None
    ]
    last = len(ordered) - 1
    # A phone has room for three days.
    always = {0, last // 2, last}
    named = always if len(ordered) > _NAMED else range(len(ordered))
    days = [
        _named(ordered[place][0], group * place, group, place in always) for place in sorted(named)
    ]
    return Bars(bars, days, [Line(f"{one:f}", _percent(scale.at(one))) for one in scale.steps()])


def _named(day: date, left: Decimal, group: Decimal, always: bool) -> Named:
    middle = left + group / 2
    if not left:
        return Named(day, _percent(left), "start", always)
    if left + group > Decimal("99.9"):
        return Named(day, _percent(left + group), "end", always)
    return Named(day, _percent(middle), "middle", always)


class Column(NamedTuple):
    """A bar of a histogram. `kind` is minus, same or plus. `edge` is the move in basis points at
    the bar's outer side, None if the bar has no outer limit. `cut` is true if the bar is higher
    than the picture.
    """

    kind: str
    cards: int
    edge: int | None
    cut: bool
    x: str
    middle: str
    width: str
    y: str
    height: str


def histogram(bins: Sequence[MoveBin], same: int) -> list[Column]:
    """Return the columns of a preview's price moves. The middle column counts the unmoved prices;
    the top of this column is cut off if the other columns would otherwise be too small to see.
    """
    falls = [("minus", one.count, one.from_bp) for one in bins if one.from_bp < 0]
    rises = [("plus", one.count, one.to_bp) for one in bins if one.from_bp >= 0]
    found = [*falls, ("same", same, 0), *rises]
    most = max([count for kind, count, _ in found if kind != "same"], default=0) or same or 1
    wide = Decimal(100) / len(found)
    columns = []
    for place, (kind, cards, edge) in enumerate(found):
        high = (_BOTTOM - _TOP) * min(cards, most) / most
        left = wide * place
        inside = (left + wide / 20, left + wide / 2, wide * 9 / 10, _BOTTOM - high, high)
        columns.append(Column(kind, cards, edge, cards > most, *map(_percent, inside)))
    return columns


class _Scale(NamedTuple):
    high: Decimal
    low: Decimal
    step: Decimal

    def steps(self) -> list[Decimal]:
        """Return the amounts of the horizontal lines, the highest first."""
        return [
            self.high - self.step * n for n in range(int((self.high - self.low) / self.step) + 1)
        ]

    def at(self, amount: Decimal) -> Decimal:
        """Return an amount's distance from the top, in percent."""
        return _TOP + (self.high - amount) / (self.high - self.low) * (_BOTTOM - _TOP)


def _scale_of(most: Decimal, least: Decimal) -> _Scale:
    """Return a scale whose lines are at round amounts and that includes `most` and `least`."""
    rough = (most - least) / _STEPS or Decimal(1)
    unit = Decimal(1).scaleb(rough.adjusted())
    step = next(unit * n for n in (1, 2, Decimal("2.5"), 5, 10) if unit * n >= rough)
    high = (most / step).to_integral_value(ROUND_CEILING) * step
    low = (least / step).to_integral_value(ROUND_FLOOR) * step
    return _Scale(high if high > low else step, low, step)


def _bar(
    day: date,
    series: str,
    amount: str,
    number: int,
    left: Decimal,
    group: Decimal,
    among: int,
    scale: _Scale,
) -> Bar:
    width = min(group * _FILLED / among, _WIDEST)
    ends = sorted((scale.at(Decimal(0)), scale.at(Decimal(amount))))
    x = left + (group - width * among) / 2 + width * number
    place = (x, ends[0], width, ends[1] - ends[0])
    return Bar(day, series, amount, number + 1, *map(_percent, place))


def _percent(share: Decimal) -> str:
    return f"{share:.2f}%"


class Step(NamedTuple):
    """A bar of a waterfall. `kind` is in, out or end; `x` is percent of the width, `y` and `height`
    are pixels.
    """

    kind: str
    label: str
    amount: Decimal
    x: int
    y: str
    height: str


# The picture's top and base line, in pixels.
_FALL_TOP: Final = Decimal(24)
_FALL_ZERO: Final = Decimal(156)


def waterfall_of(received: Decimal, taken: Sequence[tuple[str, Decimal]]) -> list[Step]:
    """Return a bar for the received amount, one for each deduction, and one for the rest. If the
    rest is a loss, its bar ends below the base line.
    """
    levels = [received]
    for _, amount in taken:
        levels.append(levels[-1] - amount)
    most, least = max(*levels, Decimal(0)), min(*levels, Decimal(0))
    scale = (_FALL_ZERO - _FALL_TOP) / ((most - least) or 1)

    def step(kind: str, label: str, amount: Decimal, one: Decimal, other: Decimal) -> Step:
        top = _FALL_TOP + (most - max(one, other)) * scale
        height = max(abs(one - other) * scale, Decimal(1))
        place = 2 + 20 * len(steps)
        return Step(kind, label, amount, place, f"{top:.1f}", f"{height:.1f}")

    steps: list[Step] = []
    steps.append(step("in", "Received", received, received, Decimal(0)))
    for (label, amount), before, after in zip(taken, levels, levels[1:], strict=False):
        steps.append(step("out", label, -amount, before, after))
    steps.append(step("end", "Earned", levels[-1], levels[-1], Decimal(0)))
    return steps
