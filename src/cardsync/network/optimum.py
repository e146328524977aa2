"""Finds the cheapest split of a basket within a time limit, with a bound on its distance from the
best split, and the costs of splits with fewer parcels. Pure.

The split is the solution of a small integer program, which the library HiGHS solves. HiGHS blocks
its process and can't be stopped, so `solver.py` runs this module in a separate process, which reads
a wish from standard input and writes answers to standard output.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import highspy
import msgspec
import numpy as np

from cardsync.network.split import (
    Answer,
    Basket,
    Split,
    Wish,
    cost_of,
    covering,
    filled,
    floor_of,
    greedy,
)
from cardsync.platform import clock


@dataclass
class _Program:
    """An integer program: its variables (columns) with costs, and its constraints (rows)."""

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
    """Return the cheapest split that is found within `seconds`, or None if no split has at most
    `most_sellers` sellers.

    The search begins with the split `start`. If a split is proven to be the cheapest, its `bound`
    is its total.
    """
    until = clock.monotonic() + seconds
    if len(basket.offers) > _SMALL:
        start = _begun(basket, until, most_sellers, start)
    return _exact(basket, _left(until), most_sellers, start)


# A basket with more offers than this is first solved with a few of them.
_SMALL = 500


def _begun(
    basket: Basket,
    until: float,
    most_sellers: int | None,
    start: Sequence[int] | None,
) -> Sequence[int] | None:
    """Return a better split to begin the search with. To find it, solve with only the offers that
    the relaxed program uses, and then with all offers of their sellers.
    """
    used = _relaxed(basket, _left(until) * 0.5, most_sellers)
    if not used:
        return start
    best = None if start is None else cost_of(basket, start)[0]
    of = {basket.offers[at].seller for at in used}
    every = [at for at, offer in enumerate(basket.offers) if offer.seller in of]
    for some, share in ((used, 0.3), (every, 0.4)):
        own = sorted({*some, *_bought(start)})
        found = _of_some(basket, own, _left(until) * share, most_sellers, start)
        if found is not None and (best is None or found.total < best):
            best, start = found.total, found.copies
    return start


def _bought(copies: Sequence[int] | None) -> list[int]:
    return [at for at, count in enumerate(copies or ()) if count]


def _relaxed(basket: Basket, seconds: float, most_sellers: int | None) -> list[int]:
    """Return the offers that are bought if fractions of copies and parcels are allowed."""
    program, buys, _ = _program(basket, most_sellers)
    highs = _model(program, seconds)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return []
    solution = list(highs.getSolution().col_value)
    return [at for at, column in enumerate(buys) if solution[column] > 1e-6]


def _model(program: _Program, seconds: float) -> highspy.Highs:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", max(_SHORTEST, seconds))
    highs.setOptionValue("mip_rel_gap", 1e-6)
    count = len(program.costs)
    highs.addVars(count, np.zeros(count), np.array(program.upper))
    highs.changeColsCost(count, np.arange(count, dtype=np.int32), np.array(program.costs))
    for low, high, at, values in program.rows:
        highs.addRow(low, high, len(at), np.array(at, dtype=np.int32), np.array(values))
    return highs


def _exact(
    basket: Basket,
    seconds: float,
    most_sellers: int | None,
    start: Sequence[int] | None,
) -> Split | None:
    program, buys, opens = _program(basket, most_sellers)
    highs = _model(program, seconds)
    count = len(program.costs)
    whole = np.full(count, highspy.HighsVarType.kInteger, dtype=object)
    highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), whole)
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
    # If the time was short, HiGHS may have no finite bound.
    sought = info.mip_dual_bound
    known = int(np.ceil(sought - 1e-3)) if np.isfinite(sought) else 0
    bound = min(total, max(floor_of(basket), known))
    proven = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return Split(copies, total, total if proven else bound, sellers)


def _of_some(
    basket: Basket,
    some: list[int],
    seconds: float,
    most_sellers: int | None,
    start: Sequence[int] | None,
) -> Split | None:
    """Solve with only the offers at the positions `some`. The returned split has 0 copies of all
    other offers.
    """
    smaller = Basket(basket.wanted, [basket.offers[at] for at in some], basket.postage)
    begin = None if start is None else [start[at] for at in some]
    found = _exact(smaller, seconds, most_sellers, begin)
    if found is None:
        return None
    copies = [0] * len(basket.offers)
    for at, count in zip(some, found.copies, strict=True):
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
    """Build the program. Its variables are the copies of each offer, and for each seller and each
    postage step, whether the seller's parcel is in that step.

    Return the program, the columns of the offers, and the seller and step by the column of the
    step.
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
    """Add the postage steps of one seller: the parcel is in at most one step, and its value is
    within that step.
    """
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
    # The value of the parcel is at most the end of its step and at least its beginning.
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
    # Copies can be bought only if the seller's parcel is in a step of the postage. The constraints
    # on the value imply this, but the additional constraints make the bound of the relaxed program
    # much better.
    for at in offers:
        copies = min(basket.offers[at].copies, basket.wanted[basket.offers[at].line])
        program.row(
            -highspy.kHighsInf,
            0,
            [buys[at], *columns],
            [1.0, *([-float(copies)] * len(columns))],
        )
    return columns


# The cheapest total is computed for this many numbers of sellers, from the fewest that can serve
# the basket on.
_STEPS = 6
_SHORTEST = 0.05


def solve(wish: Wish) -> Answer:
    """Return the last and best answer of `answers`."""
    *_, last = answers(wish)
    return last


def answers(wish: Wish) -> Iterator[Answer]:
    """Yield a simple answer, then answers with the best split that was found so far, and at last an
    answer with the totals of splits with fewer parcels.
    """
    until = clock.monotonic() + wish.seconds
    basket, cap = wish.basket, wish.max_sellers
    simple = greedy(basket)
    if simple is None:
        yield Answer(None, None, [])
        return
    cover = covering(basket)
    splits = [simple] if cover is None else [cover, simple]
    allowed = [split for split in splits if cap is None or split.sellers <= cap]
    best = min(allowed, key=lambda split: split.total, default=None)
    yield Answer(best, simple, _steps(splits))
    if cap is None and not wish.fewest_parcels:
        best = optimal(basket, _left(until) * 0.67, None, simple.copies) or simple
        splits.append(best)
        yield Answer(best, simple, _steps(splits))
    few = min(splits, key=lambda split: (split.sellers, split.total))
    least = _fewest(basket, _left(until) * 0.3, few)
    splits.append(least)
    if wish.fewest_parcels and (cap is None or least.sellers <= cap):
        cap = least.sellers
    if cap is not None:
        best = _within(basket, _left(until) * 0.6, cap, splits)
        splits += [best] if best is not None else []
        yield Answer(best, simple, _steps(splits))
    begin = least
    most = best.sellers if cap is None and best is not None else simple.sellers
    for count in range(least.sellers, min(most, least.sellers + _STEPS)):
        if count != cap and _left(until) > _SHORTEST:
            begin = optimal(basket, _left(until) / 2, count, begin.copies) or begin
            splits.append(begin)
    if best is not None:
        allowed = [split for split in splits if cap is None or split.sellers <= cap]
        cheapest = min(allowed, key=lambda split: split.total)
        best = msgspec.structs.replace(cheapest, bound=min(best.bound, cheapest.total))
    yield Answer(best, simple, _steps(splits))


def _left(until: float) -> float:
    return max(0.0, until - clock.monotonic())


def _fewest(basket: Basket, seconds: float, known: Split) -> Split:
    """Return a split with as few parcels as can be found within `seconds`. For that, each parcel
    costs 1 and each card 0.
    """
    free = [msgspec.structs.replace(offer, price=0) for offer in basket.offers]
    counted = Basket(basket.wanted, free, {seller: [(0, 1)] for seller in basket.postage})
    found = optimal(counted, seconds, None, known.copies)
    if found is None or found.sellers >= known.sellers:
        return known
    used = {o.seller for o, n in zip(basket.offers, found.copies, strict=True) if n}
    copies, _ = filled(basket, used)
    total, sellers = cost_of(basket, copies)
    return Split(copies, total, floor_of(basket), sellers)


def _within(basket: Basket, seconds: float, cap: int, known: list[Split]) -> Split | None:
    """Return the cheapest split with at most `cap` sellers that is found within `seconds`."""
    allowed = [split for split in known if split.sellers <= cap]
    begin = min(allowed, key=lambda split: split.total, default=None)
    return optimal(basket, seconds, cap, begin.copies if begin else None) or begin


def _steps(splits: list[Split]) -> list[tuple[int, int]]:
    """Return the cheapest total by number of sellers. A number of sellers is omitted if fewer
    sellers cost as little.
    """
    steps: list[tuple[int, int]] = []
    for sellers, total in sorted((split.sellers, split.total) for split in splits):
        if not steps or total < steps[-1][1]:
            steps.append((sellers, total))
    return steps


def main() -> None:
    """Read a wish, and write each answer as a line."""
    wish = msgspec.json.decode(sys.stdin.buffer.read(), type=Wish)
    for answer in answers(wish):
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
