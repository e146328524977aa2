"""The capabilities that an agent names, and the kinds of task that a claim may hand out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.agents.agentwork.task_kinds import KINDS, PRICE_TASKS, handed_out, named_kinds

some_kinds = st.none() | st.sets(st.sampled_from([*KINDS, "make_coffee"]))
flags = st.booleans()


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (None, None),
        ([], None),
        ([""], None),
        (["make_coffee"], None),
        (["fetch_orders@1, refresh_account@1"], None),
        (["refresh_account"], ["refresh_account"]),
        (["fetch_orders,refresh_account@1, refresh_orders@1"], ["refresh_orders", "refresh_account"]),
        (["refresh_orders@2"], None),
        (["refresh_orders@", "backfill_orders@1"], ["backfill_orders"]),
        (["apply_rollback", " refresh_orders @ 1"], ["refresh_orders", "apply_rollback"]),
        (["refresh_orders," + "x" * 2_000], None),
    ],
    ids=str,
)  # fmt: skip
def test_the_kinds_that_a_list_names(texts, named):
    assert named_kinds(texts) == named


@given(kinds=some_kinds, can=some_kinds, prices_held=flags, rollback_waits=flags, paid=flags)
def test_nothing_is_handed_out_that_is_not_asked_for_or_held(
    kinds, can, prices_held, rollback_waits, paid
):
    got = handed_out(kinds, can, prices_held=prices_held, rollback_waits=rollback_waits, paid=paid)
    assert [kind for kind in KINDS if kind in got] == got
    for said in (kinds, can):
        assert said is None or set(got) <= set(said)
    assert not (prices_held and set(PRICE_TASKS) & set(got))
    assert paid or "quick_add_listing" not in got
    assert not (rollback_waits and {"apply_price_updates", "quick_add_listing"} & set(got))


@given(can=some_kinds)
def test_without_holds_everything_is_handed_out_that_the_agent_can_do(can):
    got = handed_out(None, can, prices_held=False, rollback_waits=False, paid=True)
    assert set(got) == (set(KINDS) if can is None else set(can) & set(KINDS))
