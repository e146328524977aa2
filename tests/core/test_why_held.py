"""The sentences that say why a price is held, as a table of reasons with their figures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest

from cardsync.prices.engine.market_steps import GATE_PASSED, VERDICT
from cardsync.prices.recommendations.schemas import HeldShown
from cardsync.prices.recommendations.why_held import GATES, SENTENCES, Held, gate_hold
from cardsync.stock.cards.schemas import GateHold

CASES = [
    (
        Held("rise", 150_100),
        "An increase to 15.01 is over your limit and needs approval.",
    ),
    (Held("drop", 50_000), "A drop to 5.00 is over your limit and needs approval."),
    (Held("first_price", 10_000), "Its first price, 1.00, needs approval."),
    (
        Held("holdout", 11_000, datetime(2026, 12, 3, tzinfo=UTC)),
        "It's in its rule's control group until 2026-12-03; the rule would set 1.10.",
    ),
    (Held("cap"), "The change is bigger than its rule's cap allows, so the price stays the same."),
    (
        Held("cap", 2_900, period="week", stays=False),
        "Its rule sets 0.29. The weekly cap limits how far the price moves at once.",
    ),
    (
        Held("cap", 2_900, period="sync"),
        "Its rule sets 0.29, which is beyond the cap per sync, so the price stays the same.",
    ),
    *(
        (
            Held("gate", verdict=verdict),
            f"Waiting for market data, so the price stays the same. {why}",
        )
        for verdict, why in GATES.items()
    ),
]


@pytest.mark.parametrize(("held", "sentence"), CASES)
def test_a_reason_has_its_sentence(held, sentence):
    assert held.sentence == sentence


def test_each_reason_has_one_word_on_pages():
    words = {held.reason: HeldShown(held.reason, "", None).word for held, _ in CASES}
    reviewed = dict.fromkeys(("rise", "drop", "first_price"), "needs review")
    assert words == reviewed | {
        "holdout": "control group",
        "cap": "limited by daily cap",
        "gate": "waiting for market data",
    }


def test_no_reason_is_without_a_case():
    assert {held.reason for held, _ in CASES} == set(SENTENCES)


@pytest.mark.parametrize(
    ("verdict", "told"),
    [("buy_out", "said"), ("too_few_sales", "said"), ("taken", ""), ("not_lower", ""), (None, "")],
)
def test_a_gate_holds_unless_it_passed_or_asked_no_less(verdict, told):
    step = {"name": "market_gate", "verdict": verdict, "summary": "said"}
    assert gate_hold([{"name": "formula"}, step]) == told


def test_every_verdict_that_holds_has_its_reason():
    verdicts = {*VERDICT.categories} - {*GATE_PASSED}
    assert set(GATES) == verdicts == set(get_args(GateHold))


def test_without_a_gate_none_holds():
    assert gate_hold([]) == ""
