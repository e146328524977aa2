"""Places the prices of one card on one scale, in percent of its width, so that the page draws them
without a script: low, market, price and target, and the bounds that its rule sets; and the steps
from the source to the target, each as far as it moves the price. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from cardsync.platform.value_types import JsonMapping
from cardsync.prices.receipts.in_short import InShort
from cardsync.stock.cards.schemas import CardBody

# The prices are between these shares of the width; bounds may be outside.
_FROM: Final = Decimal(12)
_TO: Final = Decimal(88)
# The distance between two labels of a row, and the distance from the ends.
_APART: Final = Decimal(19)
_END: Final = Decimal(8)
# The shares between which the bars of the steps are, and the least width of a bar.
_FALL_FROM: Final = Decimal(2)
_FALL_TO: Final = Decimal(96)
_FALL_LEAST: Final = Decimal("1.5")
# A bound that is further from the prices than this part of their span is at the end, as an arrow.
_NEAR: Final = Decimal("0.6")


class Mark(NamedTuple):
    """`kind` is pin, target or stop; `off` is ◂ or ▸ for an amount outside the scale."""

    name: str
    amount: Decimal
    kind: str
    above: bool
    x: str = ""
    label_x: str = ""
    off: str = ""


class Ladder(NamedTuple):
    """`marks` are sorted from the lowest amount; `span` is the range that the rule allows, and
    `move` the way from the price to the target; each is None if it is missing.
    """

    marks: list[Mark]
    span: tuple[str, str] | None
    move: tuple[str, str] | None


def ladder_of(card: CardBody, steps: Sequence[Mapping[str, object]]) -> Ladder | None:
    """Return the scale; None if fewer than two prices are known. `steps` are the steps of the
    card's explanation, which contain the bounds.
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
    """Return the amounts at `_FROM` and `_TO`."""
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
    """Place the labels of a row's marks, side by side where the marks are too close."""
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
    """A step: its effect in words, the amount, and the price after it. `kind` is base, plus or
    minus; the bar begins at `x` and is `width` wide. `decides` is true for the last step that moves
    the price.
    """

    words: str
    price: Decimal
    by: Decimal | None
    kind: str
    x: str
    width: str
    decides: bool


def fall_of(short: InShort | None) -> list[Fall]:
    """Return the steps from the source to the target, in whole cents, so that they add up; none if
    the card has no price.
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
