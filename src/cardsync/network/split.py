"""Computes the cost of a split of a basket over sellers, and finds a simple one. Amounts are
integer ten-thousandths. Pure.

A parcel's postage depends on its value in steps, so the cheapest card is not always the cheapest
purchase. `optimum.py` finds the best split.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

Steps = list[tuple[int, int]]


class Offer(msgspec.Struct):
    """`line` is the line of the basket that the offer serves. `stock` identifies the stock that
    several lines share.
    """

    line: int
    seller: int
    stock: int
    price: int
    copies: int


class Basket(msgspec.Struct):
    """`wanted` has the copies of each line, `postage` each seller's steps. A seller without steps,
    or a parcel below the first step, has no postage.
    """

    wanted: list[int]
    offers: list[Offer]
    postage: dict[int, Steps]

    def __post_init__(self) -> None:
        sellers = {offer.seller for offer in self.offers}
        self.postage = {seller: _whole(self.postage.get(seller, [])) for seller in sellers}


def _whole(steps: Steps) -> Steps:
    """Return the steps in order, from value 0 on."""
    ordered = sorted((start, cost) for start, cost in steps)
    return ordered if ordered and ordered[0][0] <= 0 else [(0, 0), *ordered]


class Split(msgspec.Struct):
    """`copies` has the number to buy of each offer. `bound` is a lower bound of the cost of every
    split.
    """

    copies: list[int]
    total: int
    bound: int
    sellers: int


class Wish(msgspec.Struct):
    """The solver's task: a basket, the time it may take, and the buyer's limits."""

    basket: Basket
    seconds: float
    max_sellers: int | None = None
    fewest_parcels: bool = False


class Answer(msgspec.Struct):
    """`steps` are the cheapest totals found by number of sellers, from the fewest that can serve
    the basket. `best` is None if no split meets the wish.
    """

    best: Split | None
    greedy: Split | None
    steps: list[tuple[int, int]]


def postage_of(steps: Steps, value: int) -> int:
    """Return the postage of a parcel of this value."""
    return next((cost for start, cost in reversed(steps) if value >= start), 0)


def cost_of(basket: Basket, copies: Sequence[int]) -> tuple[int, int]:
    """Return the cost of a split with its postage, and its number of parcels."""
    values: dict[int, int] = defaultdict(int)
    for offer, count in zip(basket.offers, copies, strict=True):
        if count:
            values[offer.seller] += offer.price * count
    total = sum(
        value + postage_of(basket.postage[seller], value) for seller, value in values.items()
    )
    return total, len(values)


def greedy(basket: Basket) -> Split | None:
    """Buy each copy where it is cheapest, then drop parcels while that saves money.

    None if the stock does not suffice.
    """
    best, short = filled(basket, set(basket.postage))
    if short:
        return None
    total, sellers = cost_of(basket, best)
    while (cheaper := _fewer_parcels(basket, best, total)) is not None:
        best = cheaper
        total, sellers = cost_of(basket, best)
    return Split(best, total, floor_of(basket), sellers)


def _fewer_parcels(basket: Basket, best: Sequence[int], total: int) -> list[int] | None:
    """Go through the parcels once and drop each whose removal saves money. None if no removal does."""
    used = sorted({o.seller for o, n in zip(basket.offers, best, strict=True) if n})
    # No parcel is added again, so offers of other sellers are ignored.
    places = [at for at, offer in enumerate(basket.offers) if offer.seller in set(used)]
    fewer = Basket(basket.wanted, [basket.offers[at] for at in places], basket.postage)
    left, kept = set(used), None
    for seller in used:
        tried, short = filled(fewer, left - {seller})
        cost, _ = (total, 0) if short else cost_of(fewer, tried)
        if cost < total:
            total, kept = cost, tried
            left.discard(seller)
    if kept is None:
        return None
    copies = dict(zip(places, kept, strict=True))
    return [copies.get(at, 0) for at in range(len(basket.offers))]


def covering(basket: Basket) -> Split | None:
    """Return a split with few parcels: the next seller is always the one who can supply most of the
    remaining copies.

    None if all sellers together cannot supply everything.
    """
    held: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for offer in basket.offers:
        held[offer.seller][offer.line] += offer.copies
    left = list(basket.wanted)
    chosen: set[int] = set()
    while any(left):
        served = {
            seller: sum(min(left[line], most) for line, most in lines.items())
            for seller, lines in held.items()
            if seller not in chosen
        }
        seller = min(served, key=lambda one: (-served[one], one), default=None)
        if seller is None or not served[seller]:
            return None
        chosen.add(seller)
        for line, most in held[seller].items():
            left[line] -= min(left[line], most)
    copies, short = filled(basket, chosen)
    total, sellers = cost_of(basket, copies)
    return None if short else Split(copies, total, floor_of(basket), sellers)


def floor_of(basket: Basket) -> int:
    """Return the cost of the cheapest copies if each line were alone and postage were zero."""
    left = list(basket.wanted)
    total = 0
    for offer in sorted(basket.offers, key=lambda offer: offer.price):
        count = min(left[offer.line], offer.copies)
        left[offer.line] -= count
        total += count * offer.price
    return total


def filled(basket: Basket, sellers: set[int]) -> tuple[list[int], dict[int, int]]:
    """Buy each copy where it is cheapest among these sellers. Return the copies of each offer, and
    the missing copies of each line that the stock cannot serve.

    Lines that share stock exchange copies, so a line is short only if it must be.
    """
    filling = _Filling(basket, sellers)
    for at in sorted(filling.usable, key=lambda at: (basket.offers[at].price, at)):
        offer = basket.offers[at]
        count = min(filling.lacking[offer.line], filling.stock[offer.stock])
        filling.copies[at] = count
        filling.lacking[offer.line] -= count
        filling.stock[offer.stock] -= count
    short = {}
    for line, lacking in enumerate(filling.lacking):
        while filling.lacking[line] and filling.give_way(line):
            pass
        if lacking and filling.lacking[line]:
            short[line] = filling.lacking[line]
    return filling.copies, short


class _Filling:
    """The state of a distribution: each line's missing copies, and the rest of each stock."""

    def __init__(self, basket: Basket, sellers: set[int]) -> None:
        self.offers = basket.offers
        self.usable = [at for at, offer in enumerate(basket.offers) if offer.seller in sellers]
        self.lacking = list(basket.wanted)
        self.copies = [0] * len(basket.offers)
        self.stock: dict[int, int] = {}
        self.of_line: dict[int, list[int]] = defaultdict(list)
        self.of_stock: dict[int, list[int]] = defaultdict(list)
        for at in self.usable:
            offer = basket.offers[at]
            self.stock[offer.stock] = max(self.stock.get(offer.stock, 0), offer.copies)
            self.of_line[offer.line].append(at)
            self.of_stock[offer.stock].append(at)

    def give_way(self, line: int) -> bool:
        """Let another line take copies from elsewhere, so that this one gets some; return whether
        that was possible. This is an augmenting step of a maximal flow.
        """
        reached: dict[int, list[tuple[int, int]]] = {line: []}
        waiting = [line]
        for other in waiting:
            for at in self.of_line[other]:
                stock = self.offers[at].stock
                if self.stock[stock]:
                    self._move([*reached[other], (at, at)], line, stock)
                    return True
                for held in self.of_stock[stock]:
                    behind = self.offers[held].line
                    if self.copies[held] and behind not in reached:
                        reached[behind] = [*reached[other], (at, held)]
                        waiting.append(behind)
        return False

    def _move(self, way: Iterable[tuple[int, int]], line: int, stock: int) -> None:
        moved = list(way)
        counts = [self.copies[held] for at, held in moved if at != held]
        count = min([self.lacking[line], self.stock[stock], *counts])
        for at, held in moved:
            self.copies[at] += count
            if at != held:
                self.copies[held] -= count
        self.lacking[line] -= count
        self.stock[stock] -= count
