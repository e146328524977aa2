"""Loss limits as tables: slices add up, each limit breaks just beyond its edge."""

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.prices.engine import simulate
from cardsync.prices.loss.decide import By, broken_limit, confirmation_of, decide
from cardsync.prices.loss.loss_limits import PAST, SIDES, Sums, summed
from cardsync.prices.loss.risk import Size
from cardsync.prices.plans.price_effect import ShopValue, size_of

DOLLAR = 10_000


def asks(size):
    """Return whether a member confirms the change."""
    return decide(size, By()).answer == "ask"


def prices(*cards):
    """`(today, worst, quantity)` of cards 1, 2, … in dollars."""
    return pl.DataFrame(
        [
            (n, n, quantity, None, _units(today), _units(worst))
            for n, (today, worst, quantity) in enumerate(cards, 1)
        ],
        schema=dict.fromkeys(
            ("id", "marketplace_id", "quantity", "market", "today", "worst"), pl.Int64
        ),
        orient="row",
    )


def _units(dollars):
    return None if dollars is None else round(dollars * DOLLAR)


def past(**spans):
    """The sums that were added to card 1 before, in dollars: `hour=-1.5`."""
    row = {"id": 1, "quantity": 1}
    for span in ("hour", "day", "week"):
        added = _units(spans.get(span, 0))
        row |= {f"{span}_today": added, f"{span}_worst": added}
    return pl.DataFrame([row], schema=PAST) if spans else pl.DataFrame(schema=PAST)


def size(before, after, earlier=None, **more):
    earlier = past() if earlier is None else earlier
    moved = simulate.moved(prices(*before), prices(*after), SIDES)
    shop = ShopValue(more.get("shop_value", 10**9), more.pop("asked_value", 10**9))
    found = size_of(summed(moved, earlier), earlier, 2_000, shop)
    given = {"loss_budget": 10**9} | more
    return Size(**{f: getattr(found, f) for f in found.__struct_fields__} | given)


def one(before, after, worst=None, quantity=1):
    return [(before, before, quantity)], [(after, after if worst is None else worst, quantity)]


@pytest.mark.parametrize(
    ("before_after", "earlier", "limit"),
    [
        (one(10, 8), None, None),
        (one(10, 7.99), None, "card_hour"),
        (one(10, 12), None, None),
        (one(10, 12.01), None, "card_hour"),
        # A cap spreads this over days, and it is a move all the same.
        (one(10, 10, worst=7.99), None, "card_hour"),
        # Slices count as the whole, from the price before the first of them.
        (one(8.5, 8), {"hour": -1.5, "day": -1.5}, None),
        (one(8.5, 7.99), {"hour": -1.5, "day": -1.5}, "card_hour"),
        (one(11.5, 12.01), {"hour": 1.5, "day": 1.5}, "card_hour"),
        (one(8, 7), {"day": -2}, None),
        (one(8, 6.99), {"day": -2}, "card_day"),
        # Back to where it was is no move.
        (one(8, 10), {"hour": -2, "day": -2}, None),
        # A cent is much of a cheap card: such cards may fall by a fifth together.
        (one(0.5, 0.4), None, None),
        (one(0.5, 0.39), None, "hour_listed_value"),
        (one(0.5, 0.6), None, None),
        (one(0.5, 0.95), None, None),
        (one(0.9, 1.2), None, "card_hour"),
        # A card that had no price gets its first one.
        (([(None, None, 1)], [(500, 500, 1)]), None, None),
        # Without stock there is no value to lose, and a price all the same.
        (one(10, 7.99, quantity=0), None, "card_hour"),
    ],
)
def test_a_card_moves_to_its_limit_and_no_further(before_after, earlier, limit):
    before, after = before_after
    broken = broken_limit(size(before, after, past(**earlier) if earlier else None))
    assert (broken and broken.limit) == limit
    assert broken is None or "owner" in broken.error


@pytest.mark.parametrize(
    ("budget", "shop", "earlier", "limit"),
    [
        (None, 100, 0, None),
        (None, 19.99, 0, "loss_budget"),
        (1, 10, 0, None),
        (0.99, 1000, 0, "loss_budget"),
        (3, 1000, -2, None),
        (2.99, 1000, -2, "loss_budget"),
        # A rise makes up for a fall of the same card.
        (0, 1000, 1, None),
    ],
)
def test_the_shop_loses_its_budget_of_a_week_and_no_more(budget, shop, earlier, limit):
    before, after = one(10, 9)
    found = size(
        before,
        after,
        past(week=earlier) if earlier else None,
        loss_budget=None if budget is None else _units(budget),
        shop_value=_units(shop),
    )
    broken = broken_limit(found)
    assert (broken and broken.limit) == limit


def test_cards_that_this_write_leaves_alone_count_in_the_week():
    earlier = past(week=-2).with_columns(id=pl.lit(7, pl.Int64))
    before, after = one(10, 9)
    assert size(before, after, earlier).sums.week_fallen == _units(3)
    # A rise needs no budget.
    before, after = one(10, 11)
    assert size(before, after, earlier).sums == Sums(hour_before=_units(10))


@pytest.mark.parametrize(
    ("before_after", "shop", "needed"),
    [
        (one(10, 5), 1000, False),
        (one(10, 4.99), 1000, True),
        (one(10, 10, worst=4.99), 1000, True),
        (one(10, 8), 10, False),
        (one(10, 7.99), 10, True),
        (one(10, 100), 10, False),
    ],
)
def test_a_member_confirms_what_halves_a_card_or_takes_a_fifth_of_the_shop(
    before_after, shop, needed
):
    assert asks(size(*before_after, asked_value=_units(shop))) is needed


@pytest.mark.parametrize(
    ("cards", "fall", "needed"), [(99, 499, False), (100, 1, True), (1, 500, True), (100, 0, False)]
)
def test_a_member_confirms_a_large_promotion_and_no_other_change_of_that_size(cards, fall, needed):
    moved = Size(cards=cards, before=_units(fall), whole=_units(100_000), worst_whole=1)
    assert not asks(moved)
    assert asks(msgspec.structs.replace(moved, promotes=True)) is needed


@given(
    st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(1, 10_000))] * 5, st.integers(0, 9)),
        min_size=1,
        max_size=8,
    )
)
def test_no_shop_falls_by_more_than_it_has(cards):
    """What is asked now, what the rules ask before and after, and what they ask at worst."""
    columns = ("asked", "today", "worst", "today_after", "worst_after", "quantity")
    rows = [(n, n, None, *card) for n, card in enumerate(cards, 1)]
    names = ("id", "marketplace_id", "market", *columns)
    moved = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    asked = sum((card[0] or 0) * card[5] for card in cards)
    found = size_of(summed(moved, past()), past(), 2_000, ShopValue(0, asked))
    assert all(0 <= fall.by <= fall.whole for fall in found.falls)
    assert "of" in str(confirmation_of(found))


cents = st.integers(101, 100_000)


@given(cents, st.lists(st.integers(1, 2_000), min_size=1, max_size=30))
def test_whatever_the_slices_the_sum_never_passes_the_limit(first, cuts):
    price, added = first * 100, 0
    for cut in cuts:
        after = max(100, price - price * cut // 10_000 // 100 * 100)
        spans = {"hour": added / DOLLAR, "day": added / DOLLAR}
        found = size(*one(price / DOLLAR, after / DOLLAR), past(**spans))
        if broken_limit(found) is None:
            added, price = added + after - price, after
    assert price * 100 >= first * 100 * 80
