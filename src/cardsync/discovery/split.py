"""The cheapest split of a basket over sellers: lines and offers come in; copies per offer, the cost
and how far from the best it may be go out. Amounts are integer ten-thousandths. Pure.

A parcel's postage depends on its value by steps, so the cheapest card is not always the cheapest
buy. The exact answer is a small integer program for HiGHS; a greedy one stands beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

import highspy
import msgspec
import numpy as np

Steps = list[tuple[int, int]]


class Offer(msgspec.Struct):
    """`line` says which wish it serves; `stock` names what several wishes share."""

    line: int
    seller: int
    stock: int
    price: int
    copies: int


class Basket(msgspec.Struct):
    """`wanted` has the copies of each line, `postage` each seller's steps, from value 0 on."""

    wanted: list[int]
    offers: list[Offer]
    postage: dict[int, Steps]


class Split(msgspec.Struct):
    """`copies` has the number to buy of each offer; `bound` is a cost that no split goes below."""

    copies: list[int]
    total: int
    bound: int
    sellers: int


def postage_of(steps: Steps, value: int) -> int:
    """Return the postage of a parcel of this value."""
    return next((cost for start, cost in reversed(steps) if value >= start), 0)


def cost_of(basket: Basket, copies: Sequence[int]) -> tuple[int, int]:
    """Return what a split costs with its postage, and its number of parcels."""
    values: dict[int, int] = defaultdict(int)
    for offer, count in zip(basket.offers, copies, strict=True):
        if count:
            values[offer.seller] += offer.price * count
    total = sum(
        value + postage_of(basket.postage[seller], value) for seller, value in values.items()
    )
    return total, len(values)


def greedy(basket: Basket) -> Split | None:
    """Buy each copy where it is cheapest, then close parcels as long as that saves something.

    None where the stock is not enough.
    """
    every = set(basket.postage)
    best = _cheapest(basket, every)
    if best is None:
        return None
    total, _ = cost_of(basket, best)
    saved = True
    while saved:
        saved = False
        used = sorted({o.seller for o, n in zip(basket.offers, best, strict=True) if n})
        for seller in used:
            tried = _cheapest(basket, set(used) - {seller})
            if tried is not None and (cost := cost_of(basket, tried)[0]) < total:
                best, total, saved = tried, cost, True
                break
    return Split(best, total, 0, cost_of(basket, best)[1])


def _cheapest(basket: Basket, sellers: set[int]) -> list[int] | None:
    left = list(basket.wanted)
    stock: dict[int, int] = {}
    for offer in basket.offers:
        stock[offer.stock] = max(stock.get(offer.stock, 0), offer.copies)
    copies = [0] * len(basket.offers)
    order = sorted(range(len(basket.offers)), key=lambda at: (basket.offers[at].price, at))
    for at in order:
        offer = basket.offers[at]
        if offer.seller in sellers and left[offer.line] and stock[offer.stock]:
            count = min(left[offer.line], stock[offer.stock])
            copies[at] = count
            left[offer.line] -= count
            stock[offer.stock] -= count
    return None if any(left) else copies


@dataclass
class _Program:
    """The integer program, column by column and row by row."""

    costs: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    rows: list[tuple[float, float, list[int], list[float]]] = field(default_factory=list)

    def column(self, cost: float, upper: float) -> int:
        self.costs.append(cost)
        self.upper.append(upper)
        return len(self.costs) - 1

    def row(self, low: float, high: float, columns: list[int], values: list[float]) -> None:
        self.rows.append((low, high, columns, values))


def optimal(
    basket: Basket,
    seconds: float,
    most_sellers: int | None = None,
    start: Sequence[int] | None = None,
) -> Split | None:
    """Return the cheapest split found in the time, or None where there is none with so few sellers.

    `start` is a split to begin from. A split that is proven best has `bound` equal to its total.
    """
    if most_sellers is None:
        worth = _worth_it(basket, start)
        if len(worth) < len(basket.offers):
            return _of_all(basket, worth, seconds, start)
    program, buys, opens = _program(basket, most_sellers)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", max(0.05, seconds))
    highs.setOptionValue("mip_rel_gap", 1e-6)
    count = len(program.costs)
    highs.addVars(count, np.zeros(count), np.array(program.upper))
    columns = np.arange(count, dtype=np.int32)
    highs.changeColsCost(count, columns, np.array(program.costs))
    highs.changeColsIntegrality(
        count, columns, np.full(count, highspy.HighsVarType.kInteger, dtype=object)
    )
    for low, high, at, values in program.rows:
        highs.addRow(low, high, len(at), np.array(at, dtype=np.int32), np.array(values))
    if start is not None:
        highs.setSolution(
            len(buys) + len(opens),
            np.array([*buys, *opens.keys()], dtype=np.int32),
            np.array(_started(basket, start, buys, opens), dtype=float),
        )
    highs.run()
    solution = list(highs.getSolution().col_value)
    info = highs.getInfo()
    if info.primal_solution_status != 2:
        return None
    copies = [round(solution[column]) for column in buys]
    total, sellers = cost_of(basket, copies)
    bound = min(total, max(0, int(np.ceil(info.mip_dual_bound - 1e-3))))
    proven = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Split(copies, total, total if proven else bound, sellers)


def _worth_it(basket: Basket, start: Sequence[int] | None) -> list[int]:
    """Return the offers that the cheapest split can need: another parcel for one copy, with its
    dearest postage, must not be cheaper.
    """
    dearest = {seller: max(cost for _, cost in steps) for seller, steps in basket.postage.items()}
    falling = {
        seller: max(cost for _, cost in steps) - min(cost for _, cost in steps)
        for seller, steps in basket.postage.items()
        if [cost for _, cost in steps] != sorted(cost for _, cost in steps)
    }
    shared: dict[int, set[int]] = defaultdict(set)
    for offer in basket.offers:
        shared[offer.stock].add(offer.line)
    limit: dict[int, int] = {}
    for offer in basket.offers:
        if offer.copies >= basket.wanted[offer.line] and len(shared[offer.stock]) == 1:
            cost = offer.price + dearest[offer.seller]
            limit[offer.line] = min(limit.get(offer.line, cost), cost)
    return [
        at
        for at, offer in enumerate(basket.offers)
        if (start is not None and start[at])
        or offer.line not in limit
        or offer.price - falling.get(offer.seller, 0) <= limit[offer.line]
    ]


def _of_all(
    basket: Basket, worth: list[int], seconds: float, start: Sequence[int] | None
) -> Split | None:
    """Solve with these offers alone, and tell it in all of them."""
    smaller = Basket(basket.wanted, [basket.offers[at] for at in worth], basket.postage)
    begin = None if start is None else [start[at] for at in worth]
    found = optimal(smaller, seconds, None, begin)
    if found is None:
        return None
    copies = [0] * len(basket.offers)
    for at, count in zip(worth, found.copies, strict=True):
        copies[at] = count
    return Split(copies, found.total, found.bound, found.sellers)


def _started(
    basket: Basket, start: Sequence[int], buys: list[int], opens: dict[int, tuple[int, int]]
) -> list[float]:
    values: dict[int, int] = defaultdict(int)
    for offer, count in zip(basket.offers, start, strict=True):
        values[offer.seller] += offer.price * count
    used = {o.seller for o, n in zip(basket.offers, start, strict=True) if n}
    found = [float(start[at]) for at in range(len(buys))]
    for seller, step in opens.values():
        steps = basket.postage[seller]
        at = max(n for n, (begin, _) in enumerate(steps) if values[seller] >= begin)
        found.append(float(seller in used and step == at))
    return found


def _program(
    basket: Basket, most_sellers: int | None
) -> tuple[_Program, list[int], dict[int, tuple[int, int]]]:
    """Build the program: copies of each offer, and for each seller the step that its parcel is in.

    Return it with the offers' columns, and the columns of the steps with seller and step.
    """
    program = _Program()
    buys = [
        program.column(offer.price, min(offer.copies, basket.wanted[offer.line]))
        for offer in basket.offers
    ]
    by_line: dict[int, list[int]] = defaultdict(list)
    by_seller: dict[int, list[int]] = defaultdict(list)
    by_stock: dict[int, list[int]] = defaultdict(list)
    for at, offer in enumerate(basket.offers):
        by_line[offer.line].append(at)
        by_seller[offer.seller].append(at)
        by_stock[offer.stock].append(at)
    for line, wanted in enumerate(basket.wanted):
        program.row(wanted, wanted, [buys[at] for at in by_line[line]], [1.0] * len(by_line[line]))
    for shared in by_stock.values():
        if len(shared) > 1:
            copies = max(basket.offers[at].copies for at in shared)
            program.row(0, copies, [buys[at] for at in shared], [1.0] * len(shared))
    opens: dict[int, tuple[int, int]] = {}
    every: list[int] = []
    for seller, offers in by_seller.items():
        every += _parcel(program, basket, seller, offers, buys, opens)
    if most_sellers is not None:
        program.row(0, most_sellers, every, [1.0] * len(every))
    return program, buys, opens


def _parcel(
    program: _Program,
    basket: Basket,
    seller: int,
    offers: list[int],
    buys: list[int],
    opens: dict[int, tuple[int, int]],
) -> list[int]:
    """Add one seller's steps: at most one is open, and the parcel's value lies within it."""
    steps = basket.postage[seller]
    most = sum(
        basket.offers[at].price
        * min(basket.offers[at].copies, basket.wanted[basket.offers[at].line])
        for at in offers
    )
    reached = [n for n, (begin, _) in enumerate(steps) if begin <= most]
    columns = []
    for step in reached:
        column = program.column(steps[step][1], 1)
        opens[column] = (seller, step)
        columns.append(column)
    program.row(0, 1, columns, [1.0] * len(columns))
    ends = [steps[n + 1][0] - 1 if n + 1 < len(steps) else most for n in reached]
    prices = [float(basket.offers[at].price) for at in offers]
    cells = [buys[at] for at in offers]
    # The value is at most the end of the open step, and at least its beginning.
    program.row(
        -highspy.kHighsInf,
        0,
        [*cells, *columns],
        [*prices, *(-float(min(end, most)) for end in ends)],
    )
    begins = [float(steps[n][0]) for n in reached]
    if any(begins):
        program.row(
            0, highspy.kHighsInf, [*cells, *columns], [*prices, *(-begin for begin in begins)]
        )
    # A copy is bought only of an open parcel: this bounds the program far better than the value.
    for at in offers:
        copies = min(basket.offers[at].copies, basket.wanted[basket.offers[at].line])
        program.row(
            -highspy.kHighsInf,
            0,
            [buys[at], *columns],
            [1.0, *([-float(copies)] * len(columns))],
        )
    return columns


class Wish(msgspec.Struct):
    """The process of the solver is asked for this."""

    basket: Basket
    seconds: float
    max_sellers: int | None = None
    fewest_parcels: bool = False


class Answer(msgspec.Struct):
    """`steps` are the cheapest totals with at most 1, 2, 3 … sellers, where there are any."""

    best: Split | None
    greedy: Split | None
    steps: list[tuple[int, int]]


# With every number of sellers up to this the price is told.
_STEPS = 6


def solve(wish: Wish) -> Answer:
    """Find the best split in the time; a third of it goes to the prices of fewer parcels."""
    began = monotonic()
    basket = wish.basket
    simple = greedy(basket)
    if simple is None:
        return Answer(None, None, [])
    start = (
        simple.copies if wish.max_sellers is None or simple.sellers <= wish.max_sellers else None
    )
    best = optimal(basket, wish.seconds * 0.67, wish.max_sellers, start)
    steps: list[tuple[int, int]] = []
    fewest: Split | None = None
    most = best.sellers if best is not None else 0
    for count in range(1, min(most, _STEPS + 1)):
        left = wish.seconds - (monotonic() - began)
        if left < 0.05:
            break
        found = optimal(basket, left / 2, count)
        if found is not None and found.sellers <= count:
            steps.append((count, found.total))
            fewest = fewest or found
    if best is not None:
        steps.append((best.sellers, best.total))
    if wish.fewest_parcels and fewest is not None:
        best = fewest
    return Answer(best, simple, steps)
