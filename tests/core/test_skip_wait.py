"""Skipping the wait: what is answered for every combination of facts, and the precedence among
the reasons.
"""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.shop.credits.skip_wait import SkipWaitFacts, decide

# Nothing in the way: the one case that costs a credit.
CHARGEABLE = SkipWaitFacts(
    charged_before=False,
    lock_held=False,
    lease_seconds=0,
    cooldown_remaining=1800,
    request_waits=False,
    balance=1,
)
# The outcome of each fact alone, strongest first (decisions.md, section 3: order of checks).
PRECEDENCE = [
    ({"charged_before": True}, "replayed"),
    ({"lock_held": True}, "sync_in_flight"),
    ({"lease_seconds": 30}, "mutex_held"),
    ({"cooldown_remaining": 0}, "no_charge_needed"),
    ({"request_waits": True}, "no_charge_needed"),
    ({"balance": 0}, "insufficient_balance"),
]


def test_with_nothing_in_the_way_it_is_charged():
    assert decide(CHARGEABLE) == "charged"


@pytest.mark.parametrize(
    ("fact", "expected"), PRECEDENCE, ids=[next(iter(fact)) for fact, _ in PRECEDENCE]
)
def test_each_fact_alone(fact, expected):
    assert decide(replace(CHARGEABLE, **fact)) == expected


@pytest.mark.parametrize("present", list(product([True, False], repeat=len(PRECEDENCE))))
def test_of_several_facts_the_strongest_decides(present):
    there = [case for case, is_there in zip(PRECEDENCE, present, strict=True) if is_there]
    facts = CHARGEABLE
    for fact, _ in there:
        facts = replace(facts, **fact)
    assert decide(facts) == (there[0][1] if there else "charged")


any_facts = st.builds(
    SkipWaitFacts,
    charged_before=st.booleans(),
    lock_held=st.booleans(),
    lease_seconds=st.integers(0, 30),
    cooldown_remaining=st.integers(0, 86_400),
    request_waits=st.booleans(),
    balance=st.integers(0, 10**9),
)


@given(any_facts)
def test_a_charge_needs_a_wait_to_skip_a_credit_and_a_free_seller(facts):
    wanted = facts.cooldown_remaining > 0 and facts.balance >= 1
    free = not (
        facts.charged_before or facts.lock_held or facts.lease_seconds > 0 or facts.request_waits
    )
    assert (decide(facts) == "charged") == (wanted and free)


@given(any_facts)
def test_after_a_charge_the_same_key_replays_and_another_is_not_needed(facts):
    if decide(facts) == "charged":
        after = replace(facts, balance=facts.balance - 1, request_waits=True)
        assert decide(after) == "no_charge_needed"
        assert decide(replace(after, charged_before=True)) == "replayed"


@given(any_facts, st.integers(0, 10**9))
def test_more_credits_only_ever_turn_a_refusal_into_a_charge(facts, more):
    before, after = decide(facts), decide(replace(facts, balance=facts.balance + more))
    assert before == after or (before, after) == ("insufficient_balance", "charged")
