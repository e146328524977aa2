"""A receipt in two lines: only what moved the price, and which limits applied."""

from __future__ import annotations

import pytest

from cardsync.prices.engine.engine import PRICE_STEPS
from cardsync.prices.receipts.in_short import InShort, Move, in_short


def step(name, before, after, **own):
    return {"name": name, "input": before, "output": after, "summary": "", **own}


def market(price, current="1.00"):
    return step("price_source", current, price, source="market")


def formula(before, after, bp=-100, amount=None):
    return step("formula", before, after, adjust_bp=bp, adjust_amount=amount)


def change(price):
    return step("change", price, price)


CASES = {
    "one step, and cents": (
        [market("153.60"), formula("153.60", "152.064"), step("bounds", "152.064", "152.064"),
         step("rounding", "152.064", "152.06"), change("152.06")],
        InShort([Move("Market", "153.60"), Move("1% under", "152.06")], "No limits applied."),
    ),
    "the market itself": (
        [market("5.00"), formula("5.00", "5.00", 0), change("5.00")],
        InShort([Move("Market", "5.00")], "No limits applied."),
    ),
    "an amount": (
        [market("5.00"), formula("5.00", "5.75", 1000, "0.25"), change("5.75")],
        InShort([Move("Market", "5.00"), Move("10% above, 0.25 more", "5.75")],
                "No limits applied."),
    ),
    "the cap": (
        [market("0.93"), formula("0.93", "0.9207"),
         step("cap", "0.9207", "0.8625", held=False, period="day"),
         step("rounding", "0.8625", "0.86"), change("0.86")],
        InShort([Move("Market", "0.93"), Move("1% under", "0.9207"),
                 Move("daily limit", "0.86")],
                "Limits applied: daily limit."),
    ),
    "a floor, and an ending that moves by more than a cent": (
        [market("1.00"), formula("1.00", "0.99"),
         step("bounds", "0.99", "1.50", bound="floor"), step("rounding", "1.50", "1.99"),
         change("1.99")],
        InShort([Move("Market", "1.00"), Move("1% under", "0.99"),
                 Move("the rule's floor", "1.50"), Move("rounded", "1.99")],
                "Limits applied: the rule's floor."),
    ),
    "a first price that needs review": (
        [market("9.00", None), formula("9.00", "8.91"), step("review", "8.91", None),
         step("change", None, None)],
        InShort([Move("Market", "9.00"), Move("1% under", "8.91"),
                 Move("kept until you approve it", None)],
                "Limits applied: kept until you approve it."),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "said"), CASES.values(), ids=list(CASES))
def test_only_what_moved_the_price_is_said(steps, said):
    assert in_short([step("eligibility", "1.00", "1.00"), *steps]) == said


@pytest.mark.parametrize(
    "steps",
    [[], [step("eligibility", "1.00", "1.00")], [market(None)], [market("5.00")]],
    ids=["pinned", "no rule", "no source", "blocked"],
)
def test_a_card_that_was_not_priced_has_no_receipt_in_short(steps):
    assert in_short(steps) is None


def test_every_step_of_the_engine_has_words():
    own = {"bound": "floor", "held": True, "period": "day", "days": 40, "adjust_bp": 100,
           "adjust_amount": None}  # fmt: skip
    for each in PRICE_STEPS:
        name = "change" if each.output == "target" else each.output.removeprefix("after_")
        moved = step(name, "5.00", "7.00", **own)
        tail = [] if name == "change" else [change("7.00")]
        found = in_short([market("5.00"), moved, *tail])
        assert found.moves[-1].price == "7.00"
        assert found.moves[-1].words
