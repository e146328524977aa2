"""Computes the cost of a split of a basket among sellers, and finds simple splits. Amounts are
integer ten-thousandths. Pure.

The postage of a parcel depends on its value in steps, so buying each card where it is cheapest is
not always the cheapest split. `optimum.py` finds the best split.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

Steps = list[tuple[int, int]]


class Offer(msgspec.Struct):
    """An offer for the line `line` of the basket. Offers with the same `stock` are the same copies,
    offered for several lines.
    """

    line: int
    seller: int
    stock: int
    price: int
    copies: int


class Basket(msgspec.Struct):
    """A basket. `wanted` has the copies of each line, `postage` the postage steps of each seller. A
    parcel below the first step has no postage.
    """

    wanted: list[int]
    offers: list[Offer]
    postage: dict[int, Steps]

    def __post_init__(self) -> None:
        sellers = {offer.seller for offer in self.offers}
        self.postage = {seller: _whole(self.postage.get(seller, [])) for seller in sellers}


def _whole(steps: Steps) -> Steps:
    """Return the steps in the order of their values. The first step begins at value 0."""
    ordered = sorted((start, cost) for start, cost in steps)
    return ordered if ordered and ordered[0][0] <= 0 else [(0, 0), *ordered]


class Split(msgspec.Struct):
    """A split. `copies` has the number of copies to buy from each offer. No split of the basket
    costs less than `bound`.
    """

    copies: list[int]
    total: int
    bound: int
    sellers: int


class Wish(msgspec.Struct):
    """The solver's task: a basket, the time limit in seconds, and the buyer's limits."""

    basket: Basket
    seconds: float
    max_sellers: int | None = None
    fewest_parcels: bool = False


class Answer(msgspec.Struct):
    """The solver's answer. `best` is None if no split is within the buyer's limits. `steps` are the
    cheapest totals that were found, by number of sellers, from the fewest sellers on.
    """

    best: Split | None
    greedy: Split | None
    steps: list[tuple[int, int]]


def postage_of(steps: Steps, value: int) -> int:
    """Return the postage of a parcel of this value."""
    return next((cost for start, cost in reversed(steps) if value >= start), 0)


def cost_of(basket: Basket, copies: Sequence[int]) -> tuple[int, int]:
    """Return the cost of a split, including postage, and its number of parcels."""
    values: dict[int, int] = defaultdict(int)
    for offer, count in zip(basket.offers, copies, strict=True):
        if count:
            values[offer.seller] += offer.price * count
    total = sum(
        value + postage_of(basket.postage[seller], value) for seller, value in values.items()
    )
    return total, len(values)


def greedy(basket: Basket) -> Split | None:
    """Return a split that buys each copy where it is cheapest, and then omits parcels while that
    saves money.

    Return None if the stock does not suffice.
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
    """Omit each parcel whose omission saves money, and return the copies of the offers. Return None
    if no omission saves money.
    """
    used = sorted({o.seller for o, n in zip(basket.offers, best, strict=True) if n})
    # No parcel is added, so offers of sellers without a parcel are ignored.
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
    """Return a split with few parcels. Sellers are added one by one, each time the seller who has
    the most of the missing copies.

    Return None if all sellers together do not have enough copies.
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
    """Return a lower bound of the cost: the cost of the cheapest copies of each line, without
    postage, if lines did not share stock.
    """
    left = list(basket.wanted)
    total = 0
    for offer in sorted(basket.offers, key=lambda offer: offer.price):
        count = min(left[offer.line], offer.copies)
        left[offer.line] -= count
        total += count * offer.price
    return total


def filled(basket: Basket, sellers: set[int]) -> tuple[list[int], dict[int, int]]:
    """Buy each copy where it is cheapest among these sellers. Return the copies of each offer, and
    the number of missing copies by line.

    Lines that share stock exchange copies, so that as few copies as possible are missing.
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
    """The state of `filled`: the missing copies of each line, and the remaining copies of each
    stock.
    """

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
        """Give `line` copies of another line, which gets copies from another stock instead. Return
        whether that was possible. This is an augmenting path of a maximum flow.
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
