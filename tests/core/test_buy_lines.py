"""What a shop pays for the lines of an offer: a table of cases, and properties over random offers."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.buying.engine.buy_rules import (
    BUY_PRESETS,
    Band,
    Budget,
    BulkPrice,
    BuyRule,
    ListStep,
    Step,
    live_buy_rules,
)
from cardsync.buying.engine.buy_sentences import sentences
from cardsync.buying.engine.value_lines import WHOLE_SHOP, left_of, value_lines
from cardsync.buying.engine.wanted_lines import (
    Bought,
    BudgetLeft,
    KnownPrice,
    LineFacts,
    Spent,
    WantedLine,
)
from cardsync.prices.engine.rules import InvalidRule

DOLLAR = 10_000
RULE = BuyRule(
    id=7,
    name="Magic",
    priority=1,
    state="published",
    bands=(Band(0, 4_000, 5_000), Band(10 * DOLLAR, 5_000, 6_000)),
    bulk_below=DOLLAR,
    bulk=(BulkPrice(100, 200), BulkPrice(500, 600, "Rare"), BulkPrice(300, 300, "", "pokemon")),
)


def line(copies: int = 1, condition: str = "NM", number: int = 1, product: int = 1) -> WantedLine:
    return WantedLine(number, product, condition, "Normal", "English", copies)


def facts(market: int | None = 20 * DOLLAR, **given: object) -> LineFacts:
    return LineFacts(**{"rule_id": 7, "market": market, "rarity": "Common"} | given)


def value(rule: BuyRule, wanted: WantedLine, known: LineFacts, left: BudgetLeft | None = None):
    budgets = {} if left is None else {rule.id: left}
    return value_lines([(wanted, known)], [rule], budgets)[0]


@pytest.mark.parametrize(
    ("rule", "wanted", "known", "bought"),
    [
        (RULE, line(3), facts(), [Bought(3, 10 * DOLLAR, 12 * DOLLAR)]),
        (RULE, line(1, "LP"), facts(), [Bought(1, 85_000, 102_000)]),
        (RULE, line(1, "HP"), facts(12 * DOLLAR), [Bought(1, 24_000, 30_000)]),
        (replace(RULE, base="low"), line(), facts(low=9_999), [Bought(1, 100, 200)]),
        (RULE, line(), facts(5_000, rarity="rare"), [Bought(1, 500, 600)]),
        (RULE, line(), facts(5_000, game="pokemon"), [Bought(1, 300, 300)]),
        (
            replace(RULE, lists=(ListStep(4, 1_000, "Hot"),)),
            line(),
            facts(lists=frozenset({4})),
            [Bought(1, 110_000, 132_000)],
        ),
        (
            replace(RULE, days_steps=(Step(30, 1_000), Step(90, 5_000))),
            line(),
            facts(days_to_sell=89),
            [Bought(1, 90_000, 108_000)],
        ),
        (
            replace(RULE, stock_steps=(Step(2, 1_000), Step(4, 5_000)), most_copies=5),
            line(9),
            facts(in_stock=1),
            [
                Bought(1, 100_000, 120_000),
                Bought(2, 90_000, 108_000),
                Bought(1, 50_000, 60_000),
            ],
        ),
    ],
)
def test_a_line_brings(rule, wanted, known, bought):
    assert list(value(rule, wanted, known).bought) == bought


@pytest.mark.parametrize(
    ("rule", "wanted", "known", "reason"),
    [
        (RULE, line(), facts(rule_id=None), "no_rule"),
        (replace(RULE, broken=True), line(), facts(), "broken_rule"),
        (RULE, line(), facts(None), "no_price"),
        (replace(RULE, conditions=(("NM", 10_000),)), line(1, "LP"), facts(), "condition"),
        (replace(RULE, bulk=()), line(), facts(50), "no_bulk_price"),
        (replace(RULE, bulk=(BulkPrice(0, 0),)), line(), facts(50), "pays_nothing"),
        (replace(RULE, most_copies=3), line(), facts(in_stock=2, on_order=1), "limit"),
    ],
)
def test_a_line_is_not_bought(rule, wanted, known, reason):
    valued = value(rule, wanted, known)
    assert (valued.reason, valued.left, valued.bought) == (reason, 1, ())
    assert sentences(valued)[-1].endswith(".")


def test_a_budget_buys_in_both_ways_then_in_one_then_not():
    valued = value(RULE, line(5), facts(), BudgetLeft(25 * DOLLAR, 36 * DOLLAR))
    assert valued.bought == (
        Bought(2, 10 * DOLLAR, 12 * DOLLAR),
        Bought(1, None, 12 * DOLLAR),
    )
    assert (valued.left, valued.reason) == (2, "budget")


def test_what_was_paid_today_leaves_less():
    budget = Budget(offer_cash=100, day_cash=150, day_credit=40)
    assert left_of(budget) == BudgetLeft(100, 40)
    assert left_of(budget, Spent(cash=80, credit=50)) == BudgetLeft(70, 0)


def test_an_explanation_says_each_step_in_a_sentence():
    rule = replace(RULE, stock_steps=(Step(2, 1_000),), most_copies=3)
    said = sentences(value(rule, line(2), facts(in_stock=2)))
    assert said == [
        "The buy rule “Magic” sets the price.",
        "The market price of a Near Mint copy is $20.00.",
        "A Near Mint copy counts 100% of that, $20.00.",
        (
            "From $10.00 on, the rule pays 50% in cash and 60% in credit: "
            "$10.00 in cash, $12.00 in credit."
        ),
        (
            "With 2 in stock, on order and in this offer, the rule pays 10% less for the next copy (from 2 copies): "
            "$9.00 in cash, $10.80 in credit."
        ),
        "With 3 in stock, on order and in this offer, the limit of 3 is reached.",
    ]


def test_presets_pay_more_the_hungrier_they_are():
    def paid(name: str) -> int:
        known = facts(low=20 * DOLLAR, rule_id=0)
        return value(BUY_PRESETS[name], line(), known).cash  # type: ignore[index]

    assert 0 < paid("conservative") < paid("standard") < paid("hungry")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"bands": (Band(1, 0, 0),)}, "bands"),
        ({"bands": (Band(0, 0, 0), Band(0, 1, 1))}, "bands"),
        ({"stock_steps": (Step(3, 200), Step(4, 100))}, "stock_steps"),
        ({"conditions": (("GOOD", 1),)}, "conditions"),
        ({"base": "average"}, "base"),
        ({"bulk": (BulkPrice(1, 1), BulkPrice(2, 2))}, "bulk"),
    ],
)
def test_a_rule_that_contradicts_itself_names_its_field(given, field):
    with pytest.raises(InvalidRule) as refused:
        replace(RULE, **given)
    assert refused.value.field == field


def test_the_first_live_rule_governs():
    rules = [replace(RULE, id=1, priority=5), replace(RULE, id=2, priority=2, enabled=False)]
    rules.append(replace(RULE, id=3, priority=4))
    assert [rule.id for rule in live_buy_rules(rules)] == [3, 1]


AMOUNTS = st.integers(0, 60 * DOLLAR)
LEFTS = st.builds(BudgetLeft, st.none() | AMOUNTS, st.none() | AMOUNTS)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, ...]:
    starts = sorted(draw(st.sets(st.integers(0, 12), max_size=3)))
    less = sorted(draw(st.lists(st.integers(0, 10_000), min_size=3, max_size=3)))
    return tuple(map(Step, starts, less))


@st.composite
def one_rule(draw: st.DrawFn, rule_id: int) -> BuyRule:
    return replace(
        RULE,
        id=rule_id,
        bulk_below=draw(st.sampled_from([None, DOLLAR])),
        most_copies=draw(st.none() | st.integers(0, 10)),
        stock_steps=draw(steps()),
        days_steps=draw(steps()),
        bands=(Band(0, draw(st.integers(0, 20_000)), draw(st.integers(0, 20_000))),),
    )


@st.composite
def rules_of(draw: st.DrawFn) -> list[BuyRule]:
    return [draw(one_rule(rule_id)) for rule_id in (1, 2)]


@st.composite
def offers(draw: st.DrawFn) -> list[tuple[WantedLine, LineFacts]]:
    # A product has one stock, whichever of the offer's lines names it.
    stock = [draw(st.integers(0, 8)) for _ in range(3)]
    made = []
    for number in range(draw(st.integers(1, 6))):
        product = draw(st.integers(0, 2))
        condition = draw(st.sampled_from(["NM", "LP", "DMG"]))
        known = LineFacts(
            rule_id=draw(st.sampled_from([1, 2, None])),
            market=draw(st.none() | AMOUNTS),
            in_stock=stock[product],
            days_to_sell=draw(st.none() | st.integers(0, 20)),
        )
        made.append((line(draw(st.integers(1, 9)), condition, number, product), known))
    return made


@given(offers(), rules_of(), LEFTS, LEFTS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_an_offer_never_exceeds_budget_limit_or_steps(
    offer, rules, shop: BudgetLeft, first: BudgetLeft, chance: random.Random
):
    budgets = {WHOLE_SHOP: shop, 1: first}
    valued = value_lines(offer, rules, budgets)
    for left, lines in ((shop, valued), (first, [v for v in valued if v.rule and v.rule.id == 1])):
        assert left.cash is None or sum(v.cash for v in lines) <= left.cash
        assert left.credit is None or sum(v.credit for v in lines) <= left.credit
    by_line = {v.line: v for v in valued}
    for product in range(3):
        _check_copies(product, offer, by_line)
    shuffled = list(offer)
    chance.shuffle(shuffled)
    again = {v.line: v for v in value_lines(shuffled, rules, budgets)}
    assert again == by_line


@given(offers(), rules_of(), LEFTS, LEFTS, st.sets(st.integers(0, 5)))
@settings(max_examples=100, deadline=None)
def test_lines_that_nobody_asks_about_bring_the_same(
    offer, rules, shop: BudgetLeft, first: BudgetLeft, asked: set[int]
):
    budgets = {WHOLE_SHOP: shop, 1: first}
    whole = value_lines(offer, rules, budgets)
    said = [one if one.line in asked else one._replace(why=()) for one in whole]
    assert value_lines(offer, rules, budgets, asked) == said


def _check_copies(product, offer, by_line) -> None:
    """Each copy pays at most what the steps leave of it when it is the next one in stock."""
    of_it = [(w, k, by_line[w.line]) for w, k in offer if w.product_id == product]
    of_it.sort(key=lambda one: (-_sells_for(one[1], one[0].condition), one[0].line))
    held = of_it[0][1].in_stock if of_it else 0
    for wanted, known, valued in of_it:
        assert valued.copies + valued.left == wanted.copies
        assert (valued.reason is None) == (valued.left == 0)
        for part in valued.bought:
            for _ in range(part.copies):
                rule = valued.rule
                assert rule.most_copies is None or held < rule.most_copies
                most = _sells_for(known, wanted.condition) * rule.bands[0].cash_bp / 10_000
                is_bulk = rule.bulk_below and _sells_for(known, wanted.condition) < DOLLAR
                reached = [step.less_bp for step in rule.stock_steps if step.start <= held]
                if not is_bulk and part.cash is not None:
                    assert part.cash <= most * (1 - max(reached, default=0) / 10_000) + 1e-6
                held += 1


def _sells_for(known: LineFacts, condition: str) -> int:
    return (known.market or 0) * dict(RULE.conditions)[condition] // 10_000


def of(condition: str, finish: str = "Normal", **prices: int) -> KnownPrice:
    return KnownPrice(condition, finish, **{name: each * DOLLAR for name, each in prices.items()})


@pytest.mark.parametrize(
    ("base", "wanted", "own", "others", "taken"),
    [
        # The rule's own base of a Near Mint copy comes first, then the market price of one.
        ("market", line(), {"market": 5}, [of("LP", market=4)], ("market", "NM", "Normal", 5)),
        ("target", line(), {"market": 5}, [of("LP", target=9)], ("market", "NM", "Normal", 5)),
        ("low", line(), {"market": 5, "low": 3}, [], ("low", "NM", "Normal", 3)),
        # Then the nearest condition to the copy's.
        (
            "market",
            line(),
            {},
            [of("MP", market=2), of("LP", market=4)],
            ("market", "LP", "Normal", 4),
        ),
        (
            "market",
            line(condition="HP"),
            {},
            [of("MP", market=2), of("LP", market=4)],
            ("market", "MP", "Normal", 2),
        ),
        (
            "target",
            line(),
            {},
            [of("LP", market=4), of("HP", target=1)],
            ("target", "HP", "Normal", 1),
        ),
        # A condition that the rule has no percentage for says nothing.
        ("market", line(), {}, [of("DMG", market=2)], None),
        # Another finish counts by choice alone, also before the copy's own.
        ("market", line(), {}, [of("NM", "Foil", market=9)], None),
        (
            "market",
            line()._replace(price_of="Foil"),
            {"market": 5},
            [of("NM", "Foil", market=9)],
            ("market", "NM", "Foil", 9),
        ),
        ("market", line()._replace(price_of="Foil"), {"market": 5}, [], None),
    ],
)
def test_an_unknown_price_is_taken_from_the_nearest_that_is_known(base, wanted, own, others, taken):
    shares = (("NM", 10_000), ("LP", 8_500), ("MP", 7_000), ("HP", 5_000))
    known = facts(**{"market": None} | {name: each * DOLLAR for name, each in own.items()})
    rule = replace(RULE, base=base, conditions=shares, bulk_below=None)
    valued = value(rule, wanted, known._replace(others=tuple(others)))
    if taken is None:
        assert (valued.taken, valued.reason, valued.bought) == (None, "no_price", ())
    else:
        *whose, dollars = taken
        assert valued.taken == (*whose, dollars * DOLLAR)
        assert valued.bought
        if whose[1:] != ["NM", "Normal"]:
            assert f"${dollars}.00" in sentences(valued)[1]


@given(st.sampled_from(["LP", "MP", "HP"]), st.integers(1, 1_000), st.integers(1, 1_000))
def test_the_own_condition_brings_the_same_by_itself_as_by_a_near_mint_copy(grade, dollars, foil):
    """A copy priced by its own condition brings what one would whose Near Mint price says the same;
    another finish changes nothing.
    """
    rule = replace(RULE, bulk_below=None)
    share = dict(rule.conditions)[grade]
    others = (of(grade, market=dollars * share), of("NM", "Foil", market=foil))
    by_own = value(rule, line(condition=grade), facts(None, others=others))
    by_mint = value(rule, line(condition=grade), facts(dollars * DOLLAR * 10_000))
    assert by_own.bought == by_mint.bought
