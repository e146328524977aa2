"""Computes two pictures of one card's prices, in percent of their width, so that the page draws
them without a script. The ladder shows the low price, the market price, the price, the target and
the rule's bounds on one scale. The fall shows how far each step of the rule moves the price. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from cardsync.platform.value_types import JsonMapping
from cardsync.prices.receipts.in_short import InShort
from cardsync.stock.cards.schemas import CardBody

# The prices are between these percentages of the width; bounds may be outside.
_FROM: Final = Decimal(12)
_TO: Final = Decimal(88)
# The least distance between two labels in a row, and between a label and the picture's edge.
_APART: Final = Decimal(19)
_END: Final = Decimal(8)
# The bars of the steps are between these percentages of the width; the third figure is the least
# width of a bar.
_FALL_FROM: Final = Decimal(2)
_FALL_TO: Final = Decimal(96)
_FALL_LEAST: Final = Decimal("1.5")
# A bound that is further from the prices than this part of their span is drawn as an arrow at the
# edge.
_NEAR: Final = Decimal("0.6")


class Mark(NamedTuple):
    """A price or a bound on the ladder. `kind` is pin, target or stop; `off` is ◂ or ▸ for an
    amount outside the scale.
    """

    name: str
    amount: Decimal
    kind: str
    above: bool
    x: str = ""
    label_x: str = ""
    off: str = ""


class Ladder(NamedTuple):
    """The prices of a card on one scale. `marks` are sorted from the lowest amount, `span` is the
    range that the rule allows, and `move` is the way from the price to the target. Both are None if
    the card lacks them.
    """

    marks: list[Mark]
    span: tuple[str, str] | None
    move: tuple[str, str] | None


def ladder_of(card: CardBody, steps: Sequence[Mapping[str, object]]) -> Ladder | None:
    """Return the ladder of a card; None if fewer than two prices are known. `steps` are the steps
    of the card's explanation, which contain the rule's bounds.
    """
    prices = _prices(card)
    if len(prices) < 2:
        return None
    bounds = _bounds(steps)
    scale = _scale([mark.amount for mark in prices], [mark.amount for mark in bounds])
    placed = sorted((_placed(mark, *scale) for mark in (*prices, *bounds)), key=lambda m: m.amount)
    above, below = (_labelled([m for m in placed if m.above is side]) for side in (True, False))
    at = {mark.name: mark.x for mark in placed}
    span = (at.get("Floor", "0%"), at.get("Ceiling", "100%")) if bounds else None
    move = (at["Price"], at["Target"]) if {"Price", "Target"} <= at.keys() else None
    return Ladder(sorted((*above, *below), key=lambda mark: mark.amount), span, move)


def _prices(card: CardBody) -> list[Mark]:
    same = card.price == card.target_price
    known = (
        _mark("Low", card.low_price, "pin", above=False),
        _mark("Market", card.market_price, "pin", above=False),
        _mark(
            "Price and target" if same else "Price",
            card.price,
            "target" if same else "pin",
            above=True,
        ),
        None if same else _mark("Target", card.target_price, "target", above=True),
    )
    return [mark for mark in known if mark]


def _bounds(steps: Sequence[JsonMapping]) -> list[Mark]:
    by_name = {step["name"]: step for step in steps}
    bounds, cap = by_name.get("bounds", {}), by_name.get("cap", {})
    floors = [
        floor for name in ("floor", "cost_floor", "hard_floor") if (floor := bounds.get(name))
    ]
    known = (
        _mark("Floor", max(floors, key=Decimal, default=None), "stop", above=False),
        _mark("Ceiling", bounds.get("ceiling"), "stop", above=False),
        _mark("Cap", cap.get("seller_limit"), "stop", above=True),
    )
    return [mark for mark in known if mark]


def _mark(name: str, amount: str | None, kind: str, *, above: bool) -> Mark | None:
    return None if amount is None else Mark(name, Decimal(amount), kind, above)


def _scale(prices: Sequence[Decimal], bounds: Iterable[Decimal]) -> tuple[Decimal, Decimal]:
    """Return the amounts at `_FROM` and at `_TO`."""
    low, high = min(prices), max(prices)
    room = (high - low) * _NEAR or high / 10 or Decimal(1)
    near = [amount for amount in bounds if low - room <= amount <= high + room]
    low, high = min([low, *near]), max([high, *near])
    return (low, high) if low < high else (low - room, high + room)


def _placed(mark: Mark, low: Decimal, high: Decimal) -> Mark:
    if mark.amount < low:
        return mark._replace(x="0%", off="◂")
    if mark.amount > high:
        return mark._replace(x="100%", off="▸")
    share = _FROM + (mark.amount - low) / (high - low) * (_TO - _FROM)
    return mark._replace(x=_percent(share))


def _labelled(marks: Sequence[Mark]) -> list[Mark]:
    """Place the labels of one row, and move apart those that would overlap."""
    places = [Decimal(mark.x.removesuffix("%")) for mark in marks]
    least = _END
    for n, place in enumerate(places):
        places[n] = max(place, least)
        least = places[n] + _APART
    most = 100 - _END
    for n in reversed(range(len(places))):
        places[n] = min(places[n], most)
        most = places[n] - _APART
    return [mark._replace(label_x=_percent(x)) for mark, x in zip(marks, places, strict=True)]


class Fall(NamedTuple):
    """A step of the rule: its effect in words, the price after it, and the amount by which it moves
    the price. `kind` is base, plus or minus. The bar begins at `x` and is `width` wide. `decides`
    is true for the last step.
    """

    words: str
    price: Decimal
    by: Decimal | None
    kind: str
    x: str
    width: str
    decides: bool


def fall_of(short: InShort | None) -> list[Fall]:
    """Return the steps from the source to the target, in whole cents, so that their amounts add up.
    The list is empty if the card has no price.
    """
    if short is None or any(move.price is None for move in short.moves):
        return []
    prices = [
        Decimal(move.price or 0).quantize(Decimal("0.01"), ROUND_HALF_UP) for move in short.moves
    ]
    low, high = min(prices), max(prices)
    room = (high - low) or Decimal(1)
    places = [_FALL_FROM + (price - low) / room * (_FALL_TO - _FALL_FROM) for price in prices]
    found = []
    for n, (move, price, place) in enumerate(zip(short.moves, prices, places, strict=True)):
        by = price - prices[n - 1] if n else None
        before = places[n - 1] if n else place
        kind = "base" if by is None else "plus" if by >= 0 else "minus"
        width = max(abs(place - before), _FALL_LEAST)
        decides = 0 < n == len(prices) - 1
        x = _percent(min(place, before))
        found.append(Fall(move.words, price, by, kind, x, _percent(width), decides))
    return found


def _percent(share: Decimal) -> str:
    return f"{share:.1f}%"
