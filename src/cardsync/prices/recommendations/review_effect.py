"""Computes the effect of applied reviews: the difference between the net of each card and of its
matched cards within thirty days, with its interval, or a finding that the sales do not suffice.
Pure.

A value is the net of a card's sales after fees, in ten-thousandths. The mean difference between a
card and the mean of its matched cards has a 95 % interval (normal, from the spread of both groups).
One matched card may be compared with many cards. The matched card is counted once, and its weight
in the interval reflects how often it was used, because ten comparisons with the same card are no
more evidence than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal, NamedTuple

Verdict = Literal["more", "less", "no_difference", "not_enough_sales"]
LEAST_CARDS: Final = 10
LEAST_SOLD: Final = 10
_Z: Final = Decimal("1.96")
_REASONS: Final[dict[Verdict, str]] = {
    "more": "Cards with the suggested price earned more than the cards left alone.",
    "less": "Cards with the suggested price earned less than the cards left alone.",
    "no_difference": "The range includes zero: there is no clear difference.",
    "not_enough_sales": (
        "Not enough sales to tell. At least ten cards, ten similar cards and ten sales are needed."
    ),
}


@dataclass(frozen=True)
class Pair:
    """A card with an applied review, and the net of each matched card, whose price was not changed,
    by the card's id. The net is zero if the card did not sell.
    """

    brought: int
    sold: bool
    alone: Mapping[int, int]
    alone_sold: AbstractSet[int]


@dataclass(frozen=True)
class Effect:
    """The effect of reviews or of a rule. Amounts are ten-thousandths of a dollar per card; without
    matched cards they are None.
    """

    cards: int
    cards_sold: int
    control_cards: int
    control_sold: int
    net: int | None
    control: int | None
    difference: int | None
    low: int | None
    high: int | None
    verdict: Verdict
    reason: str


def effect_of(pairs: Sequence[Pair]) -> Effect:
    """Compare the cards with their matched cards. A card without matched cards is left out."""
    matched = [pair for pair in pairs if pair.alone]
    if not matched:
        return _sentence("not_enough_sales", (0, 0, 0, 0), (None, None, None, None, None))
    others = _weighed(matched)
    sold = sum(pair.sold for pair in matched)
    others_sold = len(frozenset[int]().union(*(pair.alone_sold for pair in matched)))
    count = len(matched)
    counts = (count, sold, len(others), others_sold)
    net = Decimal(sum(pair.brought for pair in matched)) / count
    control = sum((one.weight * one.brought for one in others), Decimal(0))
    if min(count, len(others)) < LEAST_CARDS or sold + others_sold < LEAST_SOLD:
        return _sentence(
            "not_enough_sales",
            counts,
            (round(net), round(control), None, None, None),
        )
    difference = net - control
    spread = _spread([Decimal(pair.brought) for pair in matched]) / count
    used = sum((one.weight**2 for one in others), Decimal(0))
    spread += _spread([one.brought for one in others]) * used
    half = _Z * spread.sqrt()
    low, high = difference - half, difference + half
    verdict: Verdict = "more" if low > 0 else "less" if high < 0 else "no_difference"
    return _sentence(
        verdict,
        counts,
        (round(net), round(control), round(difference), round(low), round(high)),
    )


class _Other(NamedTuple):
    """A matched card: its weight in the mean of all matched cards, and the net of its sales. If the
    card was compared with several reviews, the net is a mean.
    """

    weight: Decimal
    brought: Decimal


def _weighed(matched: Sequence[Pair]) -> list[_Other]:
    weights = dict[int, Decimal]()
    sums = dict[int, Decimal]()
    for pair in matched:
        weight = Decimal(1) / (len(matched) * len(pair.alone))
        for card, brought in pair.alone.items():
            weights[card] = weights.get(card, Decimal(0)) + weight
            sums[card] = sums.get(card, Decimal(0)) + weight * brought
    return [_Other(weight, sums[card] / weight) for card, weight in weights.items()]


def _spread(values: Sequence[Decimal]) -> Decimal:
    """Return the variance of a sample of at least two values."""
    mean = sum(values, Decimal(0)) / len(values)
    return sum(((one - mean) ** 2 for one in values), Decimal(0)) / (len(values) - 1)


_HELD_REASONS: Final[dict[Verdict, str]] = {
    "more": "Cards that followed the rule earned more than the control group.",
    "less": "Cards that followed the rule earned less than the control group.",
    "no_difference": "The range includes zero: there is no clear difference.",
    "not_enough_sales": (
        "Not enough sales to tell. At least ten cards in each group and ten sales are needed."
    ),
}


@dataclass(frozen=True)
class NetOfCard:
    """The net of a drawn card's sales within thirty days, and whether any copy was sold."""

    net: int
    sold: bool


def effect_of_draw(followed: Sequence[NetOfCard], held: Sequence[NetOfCard]) -> Effect:
    """Compare the cards that followed a rule with the held-out cards. Both groups were drawn at
    random, so the difference of their means is the rule's effect. Its interval is Welch's, for
    large groups.
    """
    counts = (
        len(followed),
        sum(one.sold for one in followed),
        len(held),
        sum(one.sold for one in held),
    )
    net, net_spread = _mean(followed)
    control, control_spread = _mean(held)
    if min(len(followed), len(held)) < LEAST_CARDS or counts[1] + counts[3] < LEAST_SOLD:
        amounts = (_rounded(net), _rounded(control), None, None, None)
        return Effect(*counts, *amounts, "not_enough_sales", _HELD_REASONS["not_enough_sales"])
    difference = net - control
    half = _Z * (net_spread + control_spread).sqrt()
    low, high = difference - half, difference + half
    verdict: Verdict = "more" if low > 0 else "less" if high < 0 else "no_difference"
    rounded = (round(net), round(control), round(difference), round(low), round(high))
    return Effect(*counts, *rounded, verdict, _HELD_REASONS[verdict])


def _mean(group: Sequence[NetOfCard]) -> tuple[Decimal, Decimal]:
    """Return the mean and the variance of the mean. The mean of an empty group is NaN."""
    if not group:
        return Decimal("NaN"), Decimal(0)
    mean = Decimal(sum(one.net for one in group)) / len(group)
    if len(group) == 1:
        return mean, Decimal(0)
    return mean, _spread([Decimal(one.net) for one in group]) / len(group)


def _rounded(value: Decimal) -> int | None:
    return None if value.is_nan() else round(value)


_Counts = tuple[int, int, int, int]
_Amounts = tuple[int | None, int | None, int | None, int | None, int | None]


def _sentence(
    verdict: Verdict,
    counts: _Counts,
    amounts: _Amounts,
) -> Effect:
    return Effect(*counts, *amounts, verdict, _REASONS[verdict])
