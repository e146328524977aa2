"""Splits of baskets: the best one equals brute force on small baskets, whatever the postage, and
lists what the stock cannot serve.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.network.optimum import answers, solve
from cardsync.network.split import Basket, Offer, Split, Wish, cost_of, filled, greedy

STEPS = [[], [(0, 0)], [(0, 127)], [(0, 127), (500, 320)], [(0, 200), (400, 0)], [(300, 90)]]


@st.composite
def baskets(draw) -> Basket:
    """Draw small baskets; some offers of different lines are of one stock."""
    lines = draw(st.integers(1, 3))
    wanted = [draw(st.integers(1, 2)) for _ in range(lines)]
    offers = []
    for stock in range(draw(st.integers(1, 4))):
        seller, price = draw(st.integers(0, 2)), draw(st.integers(1, 400))
        copies = draw(st.integers(1, 3))
        of_lines = draw(st.sets(st.integers(0, lines - 1), min_size=1, max_size=2))
        offers += [Offer(line, seller, stock, price, copies) for line in sorted(of_lines)]
    return Basket(wanted, offers, {seller: draw(st.sampled_from(STEPS)) for seller in range(3)})


def every_split(basket: Basket) -> list[tuple[int, int]]:
    """Return cost and sellers of every split that serves the basket."""
    found = []
    ranges = [range(min(o.copies, basket.wanted[o.line]) + 1) for o in basket.offers]
    for copies in product(*ranges):
        lines = [0] * len(basket.wanted)
        stocks: dict[int, int] = {}
        for offer, count in zip(basket.offers, copies, strict=True):
            lines[offer.line] += count
            stocks[offer.stock] = stocks.get(offer.stock, 0) + count
        held = {offer.stock: offer.copies for offer in basket.offers}
        if lines == basket.wanted and all(n <= held[stock] for stock, n in stocks.items()):
            found.append(cost_of(basket, copies))
    return found


def obeys(basket: Basket, split: Split) -> bool:
    lines = [0] * len(basket.wanted)
    for offer, count in zip(basket.offers, split.copies, strict=True):
        lines[offer.line] += count
    return lines == basket.wanted and cost_of(basket, split.copies) == (split.total, split.sellers)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(baskets())
def test_the_best_split_is_that_of_brute_force(basket):
    every = every_split(basket)
    answer = solve(Wish(basket, 10))
    if not every:
        assert (answer.best, answer.greedy, answer.steps) == (None, None, [])
        return
    assert answer.best is not None
    assert answer.greedy is not None
    assert obeys(basket, answer.best)
    assert obeys(basket, answer.greedy)
    least = min(total for total, _ in every)
    assert (answer.best.total, answer.best.bound) == (least, least)
    assert answer.greedy.bound <= least <= answer.greedy.total
    told = {}
    for count in range(1, 4):
        totals = [total for total, sellers in every if sellers <= count]
        if totals and min(totals) < min(told.values(), default=least + 10**9):
            told[count] = min(totals)
    assert dict(answer.steps) == told


@pytest.mark.hypothesis
@settings(deadline=None)
@given(baskets(), st.integers(1, 3), st.booleans())
def test_wishes_for_few_sellers_are_obeyed(basket, most, fewest):
    every = every_split(basket)
    answer = solve(Wish(basket, 10, most, fewest))
    cap = min([most, *(sellers for _, sellers in every)]) if fewest else most
    allowed = [total for total, sellers in every if sellers <= cap]
    if not allowed:
        assert answer.best is None
        # Where more sellers could serve it, the steps say for how much.
        assert bool(answer.steps) == bool(every)
        return
    assert answer.best is not None
    assert obeys(basket, answer.best)
    assert answer.best.sellers <= cap
    assert answer.best.total == answer.best.bound == min(allowed)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(baskets(), st.sampled_from([0, 0.1]), st.none() | st.integers(1, 3), st.booleans())
def test_each_answer_has_steps_however_early_it_is_taken(basket, seconds, most, fewest):
    """The first one is the simple split, which is all that there is where the time is over."""
    for answer in answers(Wish(basket, seconds, most, fewest)):
        assert bool(answer.steps) == (answer.greedy is not None)
        assert answer.steps == sorted(answer.steps)
        if answer.greedy is not None:
            assert min(total for _, total in answer.steps) <= answer.greedy.total
        if answer.best is not None:
            assert (answer.best.sellers, answer.best.total) in answer.steps


@pytest.mark.hypothesis
@settings(deadline=None)
@given(baskets())
def test_a_line_is_short_only_where_it_must_be(basket):
    copies, short = filled(basket, {0, 1, 2})
    assert bool(short) == (not every_split(basket))
    bought = [0] * len(basket.wanted)
    for offer, count in zip(basket.offers, copies, strict=True):
        bought[offer.line] += count
    assert [n + short.get(line, 0) for line, n in enumerate(bought)] == basket.wanted
    left = [at for at in range(len(basket.wanted)) if at not in short]
    rest = Basket(
        [basket.wanted[at] for at in left],
        [
            Offer(left.index(o.line), o.seller, o.stock, o.price, o.copies)
            for o in basket.offers
            if o.line in left
        ],
        basket.postage,
    )
    assert greedy(rest) is not None


def test_lines_that_share_stock_give_way_to_each_other():
    """The first line takes the cheapest copy, which is the only one that serves the second."""
    offers = [Offer(0, 0, 0, 100, 1), Offer(1, 0, 0, 100, 1), Offer(0, 1, 1, 300, 1)]
    basket = Basket([1, 1], offers, {})
    answer = solve(Wish(basket, 5))
    assert answer.best is not None
    assert (answer.best.copies, answer.best.total) == ([0, 1, 1], 400)
    assert answer.greedy is not None
    assert answer.greedy.total == 400


def test_the_fewest_parcels_are_found_beyond_six():
    """Each of nine sellers alone has one line; a tenth has two of them, dearer."""
    offers = [Offer(line, line, line, 100, 1) for line in range(9)]
    offers += [Offer(0, 9, 9, 5_000, 1), Offer(1, 9, 10, 5_000, 1)]
    answer = solve(Wish(Basket([1] * 9, offers, {}), 10, fewest_parcels=True))
    assert answer.best is not None
    assert (answer.best.sellers, answer.best.total) == (8, 10_700)
    assert answer.steps == [(8, 10_700), (9, 900)]


def test_every_number_of_sellers_between_has_its_price():
    """Four sellers, each cheapest for one line; the first has all lines, the second two."""
    offers = [Offer(line, 0, line, 1_000 + line, 1) for line in range(4)]
    offers += [Offer(line, 1, 10 + line, 500, 1) for line in (1, 2)]
    offers += [Offer(2, 2, 20, 100, 1), Offer(3, 3, 21, 100, 1)]
    answer = solve(Wish(Basket([1] * 4, offers, {}), 10))
    assert answer.steps == brute(offers)
    assert [sellers for sellers, _ in answer.steps] == [1, 2, 3, 4]


def brute(offers: list[Offer]) -> list[tuple[int, int]]:
    every = every_split(Basket([1] * 4, offers, {}))
    steps: list[tuple[int, int]] = []
    for count in range(1, 5):
        least = min((total for total, sellers in every if sellers <= count), default=None)
        if least is not None and (not steps or least < steps[-1][1]):
            steps.append((count, least))
    return steps


def test_a_solver_without_time_still_answers():
    offers = [Offer(line, seller, line * 9 + seller, 100 + (line * 7 + seller * 13) % 50, 2)
              for line in range(60) for seller in range(30)]  # fmt: skip
    basket = Basket([2] * 60, offers, {seller: [(0, 120)] for seller in range(30)})
    for wish in (
        Wish(basket, 0),
        Wish(basket, 0, 3),
        Wish(basket, 0, 1),
        Wish(basket, 0, None, True),
    ):
        answer = solve(wish)
        assert answer.best is not None
        assert obeys(basket, answer.best)
        assert answer.best.sellers <= (wish.max_sellers or len(offers))
        assert answer.best.bound <= answer.best.total
