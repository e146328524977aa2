"""The pack in use: the newest one held that is not withdrawn, and never one below the highest that
was used before.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync_agent.step_ends import StepFailed
from cardsync_agent.workflow.pack_folder import NoPack, choose

CASES = [
    # held, used before, withdrawn, in use
    ({3}, 0, set(), 3),
    ({3, 5}, 0, set(), 5),
    ({3, 5}, 3, set(), 5),
    ({3, 5}, 5, set(), 5),
    ({3, 5}, 3, {5}, 3),
    ({3, 5}, 5, {3}, 5),
]
REFUSED = [
    (set(), 0, set(), "there is no pack for this marketplace yet; waiting for one"),
    (set(), 4, set(), "there is no pack for this marketplace yet; waiting for one"),
    ({3}, 3, {3}, "pack 3 was withdrawn; waiting for a newer one"),
    ({3, 5}, 5, {5}, "pack 5 was withdrawn; waiting for a newer one"),
    ({3, 5}, 4, {5}, "pack 5 was withdrawn; waiting for a newer one"),
    ({3}, 5, {5}, "pack 5 was withdrawn; waiting for a newer one"),
    (
        {3},
        5,
        set(),
        "pack 3 is older than pack 5, which was used before; waiting for a newer one",
    ),
]


@pytest.mark.parametrize(("held", "used", "killed", "chosen"), CASES)
def test_the_newest_that_may_be_used_is_in_use(held, used, killed, chosen):
    assert choose(held, used, killed) == chosen


@pytest.mark.parametrize(("held", "used", "killed", "reason"), REFUSED)
def test_without_one_the_step_fails_with_the_reason(held, used, killed, reason):
    with pytest.raises(NoPack) as refused:
        choose(held, used, killed)
    assert str(refused.value) == reason
    assert isinstance(refused.value, StepFailed)


VERSIONS = st.sets(st.integers(1, 9), max_size=4)


@given(st.lists(st.tuples(VERSIONS, VERSIONS), max_size=8))
def test_the_version_in_use_never_falls(rounds):
    used = 0
    for held, killed in rounds:
        try:
            version = choose(held, used, killed)
        except NoPack:
            continue
        assert version >= used
        assert version in held - killed
        used = version
