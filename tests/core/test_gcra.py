"""Rate limits without IO: settings as written, the bucket's arithmetic, and several processes that
report to each other now and then.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access.rate_limits import gcra
from cardsync.access.rate_limits.bucket import Bucket, Verdict
from cardsync.platform.limits import Limit, read_limit

START = 1_000_000.0


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("300/min:100", Limit(300, 100)),
        ("300/min", Limit(300, 100)),
        (" 60/min:60 ", Limit(60, 60)),
        ("20/min", Limit(20, 6)),
        ("2/min", Limit(2, 1)),
        ("1/min:500", Limit(1, 500)),
        ("0", None),
    ],
)
def test_a_limit_as_written(written, limit):
    assert read_limit(written) == limit


@pytest.mark.parametrize(
    "written", ["", "off", "300", "300/s", "300/min:", "300/min:0", "0/min", "-1/min", "1.5/min",
                "1/min:1:1", "1" * 11 + "/min"]
)  # fmt: skip
def test_what_is_no_limit_is_named(written):
    with pytest.raises(ValueError, match="limit"):
        read_limit(written)


def test_a_burst_then_the_rate():
    limit, tat = Limit(60, 3), float("-inf")
    assert (gcra.remaining(limit, tat, START), gcra.seconds_until_full(tat, START)) == (3, 0)
    seen = []
    for _ in range(3):
        assert gcra.admits(limit, tat, START)
        tat = gcra.after_one(limit, tat, START)
        seen.append((gcra.remaining(limit, tat, START), gcra.seconds_until_full(tat, START)))
    assert seen == [(2, 1), (1, 2), (0, 3)]
    assert not gcra.admits(limit, tat, START)
    assert gcra.seconds_until_admitted(limit, tat, START) == 1
    assert not gcra.admits(limit, tat, START + 0.99)
    assert gcra.admits(limit, tat, START + 1)
    assert gcra.remaining(limit, tat, START + 2) == 2
    assert gcra.remaining(limit, tat, START + 3600) == 3


@pytest.mark.parametrize(
    ("spent", "unsaid"),
    [(0, 12), (20, 12), (52, 12), (53, 11), (80, 5), (95, 1), (99, 1), (100, 1)],
)
def test_the_less_is_left_the_less_goes_unsaid(spent, unsaid):
    limit = Limit(300, 100)
    assert gcra.may_go_unsaid(limit, START + spent * limit.emission, START) == unsaid


LIMITS = st.builds(Limit, st.integers(1, 100_000), st.integers(1, 500))
GAPS = st.lists(st.floats(0, 3) | st.just(0.0), max_size=300)


def moments(gaps) -> list[float]:
    now = START
    return [now := now + gap for gap in gaps]


@given(LIMITS, GAPS)
def test_never_more_than_burst_and_rate_times_time(limit, gaps):
    tat, admitted = float("-inf"), []
    for now in moments(gaps):
        left = gcra.remaining(limit, tat, now)
        assert (left > 0) == gcra.admits(limit, tat, now)
        if left:
            tat = gcra.after_one(limit, tat, now)
            admitted.append(now)
            assert gcra.remaining(limit, tat, now) == left - 1
        else:
            assert gcra.admits(limit, tat, now + gcra.seconds_until_admitted(limit, tat, now))
    for first, since in enumerate(admitted):
        for number, until in enumerate(admitted[first:], 1):
            assert number <= limit.burst + (until - since) / limit.emission + 1e-3


class Table:
    """The row in the database: the one thing that processes share."""

    def __init__(self) -> None:
        self.tat = float("-inf")

    def exchange(self, bucket: Bucket, now: float) -> None:
        said = bucket.unsaid
        self.tat = max(self.tat, now) + said * bucket.limit.emission
        bucket.learn(now, self.tat - now, said)


def ask(bucket: Bucket, table: Table, now: float) -> bool:
    while (verdict := bucket.verdict(now)) is Verdict.REPORT_FIRST:
        table.exchange(bucket, now)
    if verdict is Verdict.ADMIT:
        bucket.admit(now)
    return verdict is Verdict.ADMIT


@given(
    LIMITS,
    st.lists(st.tuples(st.integers(0, 7), st.floats(0, 0.5)), max_size=400),
    st.integers(1, 8),
)
def test_however_requests_are_spread_over_processes_the_excess_is_bounded(limit, asked, count):
    table, buckets = Table(), [Bucket("general", limit, "k1") for _ in range(count)]
    admitted, flushed_at = [], START
    for (at, _), now in zip(asked, moments([gap for _, gap in asked]), strict=True):
        if now - flushed_at >= 1:
            flushed_at = now
            for bucket in buckets:
                table.exchange(bucket, now)
        if ask(buckets[at % count], table, now):
            admitted.append(now)
    # The process that heard last knows everything but what each of the others may leave unsaid.
    excess = (count - 1) * max(1, limit.burst // 8)
    if admitted:
        assert (
            len(admitted) <= limit.burst + (admitted[-1] - START) / limit.emission + excess + 1e-3
        )


@pytest.mark.parametrize("count", [1, 2, 4, 16])
@pytest.mark.parametrize(
    "limit", [Limit(300, 100), Limit(60, 60), Limit(20, 20), Limit(5, 5), Limit(600, 3)], ids=str
)
def test_under_saturation_any_number_of_processes_admits_the_configured_rate(count, limit):
    """Five minutes, each process asked 20 times a second, told of the others once a second, each
    at its own moment.
    """
    table, buckets = Table(), [Bucket("general", limit, "k1") for _ in range(count)]
    admitted = 0
    for step in range(300 * 20):
        now = START + step / 20
        for number, bucket in enumerate(buckets):
            if step % 20 == number:
                table.exchange(bucket, now)
            admitted += ask(bucket, table, now)
    configured = limit.burst + 300 / limit.emission
    assert configured * 0.99 - 1 <= admitted <= configured * 1.01 + count


def test_requests_count_as_unsaid_until_the_answer_to_their_report_is_here():
    bucket = Bucket("general", Limit(60, 16), "k1")
    for _ in range(2):
        assert bucket.verdict(START) is Verdict.ADMIT
        bucket.admit(START)
    # Whether their report is on its way or has failed: no more is admitted on this knowledge.
    assert bucket.verdict(START) is Verdict.REPORT_FIRST
    bucket.learn(START, 16, said=2)
    assert bucket.verdict(START) is Verdict.REFUSE
    assert bucket.verdict(START + 1) is Verdict.ADMIT
