"""The agent's waits: the back-off schedule, the rests between polls, and how waiting for an answer
ends.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync_agent import clock
from cardsync_agent.client import TryAgain
from cardsync_agent.pace import GaveUp, Pace, Stop, Stopped, backoff, persist, spread

SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.integers(0, 10_000), st.none() | st.floats(0, 3600))
def test_backoff_stays_between_the_servers_word_and_the_cap(
    seed: int, attempt: int, retry_after: float | None
) -> None:
    delay = backoff(attempt, Pace(), retry_after, Random(seed))
    at_least = retry_after or 0.0
    assert at_least <= delay <= at_least + min(300.0, 2.0 ** min(attempt, 9))


@settings(max_examples=30)
@given(SEEDS, st.integers(0, 20))
def test_the_jitter_is_full(seed: int, attempt: int) -> None:
    """Agents that lost the server in the same moment come back over the whole span, evenly."""
    most = min(300.0, 2.0**attempt)
    chance = Random(seed)
    delays = sorted(backoff(attempt, Pace(), None, chance) / most for _ in range(1000))
    assert all(abs(delays[int(share * 1000)] - share) < 0.08 for share in (0.1, 0.5, 0.9))


@given(SEEDS, st.floats(0.01, 3600))
def test_a_rest_is_never_shorter_and_not_the_same_for_all(seed: int, seconds: float) -> None:
    chance = Random(seed)
    rests = {spread(seconds, chance) for _ in range(20)}
    assert all(seconds <= rest <= seconds * 1.1 for rest in rests)
    assert len(rests) > 10


def test_the_schedule_begins_anew_with_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(clock, "monotonic", lambda: now)
    monkeypatch.setattr(clock, "sleep", sleep)
    for _ in range(2):
        troubles = [TryAgain("away")] * 12

        def call(troubles: list[TryAgain] = troubles) -> str:
            if troubles:
                raise troubles.pop()
            return "here"

        assert (
            persist(call, Pace(), Stop(), lambda trouble, delay: slept.append(delay), None)
            == "here"
        )
    assert slept[0] <= 1.0
    assert slept[12] <= 1.0
    assert now == pytest.approx(sum(slept))


def test_persist_repeats_until_answered_gives_up_or_is_stopped() -> None:
    pace, stop, told = Pace(retry_first=0.001, retry_most=0.001), Stop(), []
    answers = [TryAgain("away"), TryAgain("away"), "here"]

    def call() -> str:
        answer = answers.pop(0) if answers else TryAgain("away")
        if isinstance(answer, TryAgain):
            raise answer
        return answer

    def on_retry(trouble: TryAgain, delay: float) -> None:
        told.append(delay)

    assert persist(call, pace, stop, on_retry, None) == "here"
    assert len(told) == 2
    with pytest.raises(GaveUp, match="away"):
        persist(call, pace, stop, on_retry, 0.01)
    stop.requested = True
    with pytest.raises(Stopped):
        persist(call, pace, stop, on_retry, None)
