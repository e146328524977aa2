"""The effect of applied reviews: what each card and its matched cards brought within thirty days
comes in; the difference with its interval, or that the sales do not suffice, goes out. Pure.

A value is the net of a card's sales after fees, in ten-thousandths. The mean difference between a
card and the mean of its matched cards has a 95 % interval (normal, from the differences' spread).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

Verdict = Literal["more", "less", "no_difference", "not_enough_sales"]
LEAST_CARDS: Final = 10
LEAST_SOLD: Final = 10
_Z: Final = Decimal("1.96")
_REASONS: Final[dict[Verdict, str]] = {
    "more": "Cards with the recommended price brought more than the cards left alone.",
    "less": "Cards with the recommended price brought less than the cards left alone.",
    "no_difference": "The interval holds zero: no difference is shown.",
    "not_enough_sales": (
        "There are not enough sales to say: ten matched cards and ten that sold are needed."
    ),
}


@dataclass(frozen=True)
class Pair:
    """A card with an applied review, and the cards that were left alone; a card brought zero if none
    of it was sold.
    """

    brought: int
    sold: bool
    alone: Sequence[int]
    alone_sold: int


@dataclass(frozen=True)
class Effect:
    """Amounts are ten-thousandths a card; without matched cards they are None."""

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
    """Compare; a card without any matched card is left out."""
    matched = [pair for pair in pairs if pair.alone]
    sold = sum(pair.sold for pair in matched)
    others = sum(len(pair.alone) for pair in matched)
    others_sold = sum(pair.alone_sold for pair in matched)
    if not matched:
        return _told("not_enough_sales", (0, 0, 0, 0), (None, None, None, None, None))
    count = len(matched)
    counts = (count, sold, others, others_sold)
    beside = [Decimal(sum(pair.alone)) / len(pair.alone) for pair in matched]
    net = Decimal(sum(pair.brought for pair in matched)) / count
    control = sum(beside, Decimal(0)) / count
    differences = [pair.brought - mean for pair, mean in zip(matched, beside, strict=True)]
    if count < LEAST_CARDS or sold + others_sold < LEAST_SOLD:
        return _told(
            "not_enough_sales",
            counts,
            (round(net), round(control), None, None, None),
        )
    difference = net - control
    spread = sum(((one - difference) ** 2 for one in differences), Decimal(0)) / (count - 1)
    half = _Z * (spread / count).sqrt()
    low, high = difference - half, difference + half
    verdict: Verdict = "more" if low > 0 else "less" if high < 0 else "no_difference"
    return _told(
        verdict,
        counts,
        (round(net), round(control), round(difference), round(low), round(high)),
    )


_HELD_REASONS: Final[dict[Verdict, str]] = {
    "more": "Cards that followed the rule brought more than the cards that were held out.",
    "less": "Cards that followed the rule brought less than the cards that were held out.",
    "no_difference": "The interval holds zero: no difference is shown.",
    "not_enough_sales": (
        "There are not enough sales to say: ten cards in each group and ten that sold are needed."
    ),
}


@dataclass(frozen=True)
class Brought:
    """The net that a drawn card brought within thirty days, and whether any of it was sold."""

    net: int
    sold: bool


def effect_of_draw(followed: Sequence[Brought], held: Sequence[Brought]) -> Effect:
    """Compare the cards that followed a rule with those that were held out. Chance drew both, so
    the difference of their means is the rule's effect; its interval is Welch's, for large groups.
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
    told = (round(net), round(control), round(difference), round(low), round(high))
    return Effect(*counts, *told, verdict, _HELD_REASONS[verdict])


def _mean(group: Sequence[Brought]) -> tuple[Decimal, Decimal]:
    """Return the mean and the variance of the mean; NaN for an empty group."""
    if not group:
        return Decimal("NaN"), Decimal(0)
    mean = Decimal(sum(one.net for one in group)) / len(group)
    if len(group) == 1:
        return mean, Decimal(0)
    spread = sum(((one.net - mean) ** 2 for one in group), Decimal(0)) / (len(group) - 1)
    return mean, spread / len(group)


def _rounded(value: Decimal) -> int | None:
    return None if value.is_nan() else round(value)


_Counts = tuple[int, int, int, int]
_Amounts = tuple[int | None, int | None, int | None, int | None, int | None]


def _told(
    verdict: Verdict,
    counts: _Counts,
    amounts: _Amounts,
) -> Effect:
    return Effect(*counts, *amounts, verdict, _REASONS[verdict])
