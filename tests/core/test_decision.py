"""The decision whether a cycle runs now: every rule as a table of cases, and what must hold for any
facts at all.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.agents.seller_state.sync_kinds import KINDS, is_stale, merge_kinds, read_kind
from cardsync.agents.sync.decision import Lock, SyncFacts, decide, due_at, in_quiet_hours, phase

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
INTERVAL = 6 * HOUR
RETRY = 5 * MINUTE
QUIET = SyncFacts(
    now=NOW,
    requested_kind=None,
    lock=None,
    agent_id="a",
    auto_sync_paused=False,
    first_sync_due=False,
    next_due_at=NOW + HOUR,
)


def a_lock(**values) -> Lock:
    return replace(
        Lock(kind="full", trigger="scheduled", first_sync=False, agent_id="a", uploaded=False),
        **values,
    )


# The difference from a quiet account, and the decision: (action, reason, sync_requested, kind,
# first_sync).
CASES = {
    "nothing to do": ({}, ("wait", "no_sync_needed", False, None, False)),
    "due this very moment": ({"next_due_at": NOW}, ("sync", "scheduled", False, "full", False)),
    "a microsecond early": (
        {"next_due_at": NOW + timedelta(microseconds=1)},
        ("wait", "no_sync_needed", False, None, False),
    ),
    "never synced is due at once": (
        {"next_due_at": None},
        ("sync", "scheduled", False, "full", False),
    ),
    "due and history missing": (
        {"next_due_at": None, "first_sync_due": True},
        ("sync", "scheduled", False, "full", True),
    ),
    "not due, history missing": (
        {"first_sync_due": True},
        ("wait", "no_sync_needed", False, None, False),
    ),
    "paused": ({"auto_sync_paused": True}, ("wait", "auto_sync_paused", False, None, False)),
    "paused beats due": (
        {"auto_sync_paused": True, "next_due_at": None},
        ("wait", "auto_sync_paused", False, None, False),
    ),
    "a request": ({"requested_kind": "orders"}, ("sync", "manual_request", True, "orders", False)),
    "a request beats paused": (
        {"requested_kind": "full", "auto_sync_paused": True},
        ("sync", "manual_request", True, "full", False),
    ),
    "a request beats due": (
        {"requested_kind": "pricing", "next_due_at": None},
        ("sync", "manual_request", True, "pricing", False),
    ),
    "a first sync by request": (
        {"requested_kind": "full", "first_sync_due": True},
        ("sync", "manual_request", True, "full", True),
    ),
    "due in quiet hours": (
        {"next_due_at": NOW, "in_quiet_hours": True},
        ("wait", "no_sync_needed", False, None, False),
    ),
    "never synced, in quiet hours": (
        {"next_due_at": None, "first_sync_due": True, "in_quiet_hours": True},
        ("wait", "no_sync_needed", False, None, False),
    ),
    "paused in quiet hours": (
        {"auto_sync_paused": True, "in_quiet_hours": True},
        ("wait", "auto_sync_paused", False, None, False),
    ),
    "a request in quiet hours": (
        {"requested_kind": "sales", "in_quiet_hours": True},
        ("sync", "manual_request", True, "sales", False),
    ),
    "the holder of a scheduled cycle in quiet hours": (
        {"lock": a_lock(), "in_quiet_hours": True},
        ("sync", "scheduled", False, "full", False),
    ),
    "a request waits while the holder hears the same": (
        {"lock": a_lock(), "requested_kind": "orders"},
        ("sync", "scheduled", True, "full", False),
    ),
    "somebody else's lock": (
        {"lock": a_lock(agent_id="b")},
        ("wait", "in_progress", False, None, False),
    ),
    "a lock beats a request": (
        {"lock": a_lock(agent_id="b"), "requested_kind": "full"},
        ("wait", "in_progress", True, None, False),
    ),
    "a lock beats paused": (
        {"lock": a_lock(agent_id="b"), "auto_sync_paused": True},
        ("wait", "in_progress", False, None, False),
    ),
    "a lock of nobody": (
        {"lock": a_lock(agent_id=None)},
        ("wait", "in_progress", False, None, False),
    ),
    "nobody polls a lock of nobody": (
        {"lock": a_lock(agent_id=None), "agent_id": None},
        ("wait", "in_progress", False, None, False),
    ),
    "the holder hears the same again": (
        {"lock": a_lock(kind="orders", trigger="manual", first_sync=True)},
        ("sync", "manual_request", True, "orders", True),
    ),
    "the holder of a scheduled cycle": (
        {"lock": a_lock()},
        ("sync", "scheduled", False, "full", False),
    ),
    "what is due now does not change a cycle handed out": (
        {"lock": a_lock(first_sync=False), "first_sync_due": True},
        ("sync", "scheduled", False, "full", False),
    ),
    "the holder after an upload": (
        {"lock": a_lock(uploaded=True)},
        ("wait", "in_progress", False, None, False),
    ),
}


@pytest.mark.parametrize(("differs", "expected"), CASES.values(), ids=CASES.keys())
def test_decision(differs, expected):
    decision = decide(replace(QUIET, **differs))
    assert (
        decision.action,
        decision.reason,
        decision.sync_requested,
        decision.kind,
        decision.first_sync,
    ) == expected


moments = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
kinds = st.sampled_from(KINDS)
agents = st.sampled_from([None, "a", "b"])
locks = st.builds(
    Lock,
    kind=kinds,
    trigger=st.sampled_from(["manual", "scheduled"]),
    first_sync=st.booleans(),
    agent_id=agents,
    uploaded=st.booleans(),
)
any_facts = st.builds(
    SyncFacts,
    now=moments,
    requested_kind=st.none() | kinds,
    lock=st.none() | locks,
    agent_id=agents,
    auto_sync_paused=st.booleans(),
    first_sync_due=st.booleans(),
    next_due_at=st.none() | moments,
    in_quiet_hours=st.booleans(),
)


@given(any_facts)
def test_precedence_holds_for_any_facts(facts):
    decision = decide(facts)
    due = facts.next_due_at is None or facts.now >= facts.next_due_at
    if facts.lock is not None:
        mine = (
            facts.agent_id is not None
            and facts.agent_id == facts.lock.agent_id
            and not facts.lock.uploaded
        )
        assert (decision.action == "sync") == mine
        assert mine or decision.reason == "in_progress"
    elif facts.requested_kind is not None:
        assert (decision.action, decision.reason) == ("sync", "manual_request")
    elif facts.auto_sync_paused:
        assert (decision.action, decision.reason) == ("wait", "auto_sync_paused")
    else:
        begins = due and not facts.in_quiet_hours
        assert (decision.action, decision.reason) == (
            ("sync", "scheduled") if begins else ("wait", "no_sync_needed")
        )


@given(any_facts)
def test_a_wait_carries_neither_kind_nor_first_sync(facts):
    decision = decide(facts)
    if decision.action == "wait":
        assert (decision.kind, decision.first_sync) == (None, False)
    else:
        assert decision.kind in KINDS


@given(any_facts)
def test_a_waiting_request_always_shows(facts):
    if facts.requested_kind is not None:
        assert decide(facts).sync_requested


@pytest.mark.parametrize(
    ("last", "failures", "failed", "expected"),
    [
        (None, 0, None, None),
        (NOW, 0, None, NOW + INTERVAL),
        (NOW, 0, NOW, NOW + INTERVAL),
        (None, 1, NOW, NOW + 5 * MINUTE),
        (None, 2, NOW, NOW + 10 * MINUTE),
        (None, 3, NOW, NOW + 20 * MINUTE),
        (None, 7, NOW, NOW + 320 * MINUTE),
        (None, 8, NOW, NOW + INTERVAL),
        (None, 10**6, NOW, NOW + INTERVAL),
        (NOW - 7 * HOUR, 1, NOW, NOW + 5 * MINUTE),
        (NOW - HOUR, 1, NOW, NOW + 5 * HOUR),
    ],
)
def test_due_at(last, failures, failed, expected):
    assert due_at(last, INTERVAL, failures, failed, RETRY) == expected


intervals = st.timedeltas(timedelta(minutes=30), timedelta(days=30))


@given(last=st.none() | moments, interval=intervals, failures=st.integers(1, 10**9), failed=moments)
def test_a_failure_delays_by_at_least_one_retry_and_at_most_the_interval(
    last, interval, failures, failed
):
    due = due_at(last, interval, failures, failed, RETRY)
    assert due >= failed + min(RETRY, interval)
    assert due <= max(failed, last or failed) + interval


@given(last=moments, interval=intervals, failures=st.integers(0, 10**9), failed=st.none() | moments)
def test_nothing_is_due_before_the_interval_is_over(last, interval, failures, failed):
    assert due_at(last, interval, failures, failed, RETRY) >= last + interval


@given(last=st.none() | moments, interval=intervals, failures=st.integers(1, 40), failed=moments)
def test_one_more_failure_is_never_due_earlier(last, interval, failures, failed):
    once, again = (due_at(last, interval, n, failed, RETRY) for n in (failures, failures + 1))
    assert again >= once


NEW_YORK = "America/New_York"


@pytest.mark.parametrize(
    ("hours", "zone", "now", "expected"),
    [
        (None, NEW_YORK, "2026-11-21T03:00Z", False),
        # 22:00-06:00 in New York's winter is 03:00-11:00 UTC.
        ("22:00-06:00", NEW_YORK, "2026-11-21T02:59:59Z", False),
        ("22:00-06:00", NEW_YORK, "2026-11-21T03:00Z", True),
        ("22:00-06:00", NEW_YORK, "2026-11-21T05:00Z", True),
        ("22:00-06:00", NEW_YORK, "2026-11-21T10:59:59.999999Z", True),
        ("22:00-06:00", NEW_YORK, "2026-11-21T11:00Z", False),
        # In its summer 02:00-10:00.
        ("22:00-06:00", NEW_YORK, "2026-07-21T02:00Z", True),
        ("22:00-06:00", NEW_YORK, "2026-07-21T10:00Z", False),
        ("22:00-06:00", "Asia/Kolkata", "2026-11-21T16:29Z", False),
        ("22:00-06:00", "Asia/Kolkata", "2026-11-21T16:30Z", True),
        # Within one day.
        ("09:30-17:00", "Europe/Berlin", "2026-11-21T08:29Z", False),
        ("09:30-17:00", "Europe/Berlin", "2026-11-21T08:30Z", True),
        ("09:30-17:00", "Europe/Berlin", "2026-11-21T16:00Z", False),
        ("00:00-06:00", "UTC", "2026-11-21T00:00Z", True),
        ("18:00-00:00", "UTC", "2026-11-21T23:59Z", True),
        ("18:00-00:00", "UTC", "2026-11-21T00:00Z", False),
        ("08:00-08:00", "UTC", "2026-11-21T08:00Z", False),
        # 8 March 2026: at 02:00 EST, 07:00 UTC, the clock jumps to 03:00.
        ("22:00-06:00", NEW_YORK, "2026-03-08T09:59Z", True),
        ("22:00-06:00", NEW_YORK, "2026-03-08T10:00Z", False),
        ("22:00-02:30", NEW_YORK, "2026-03-08T06:59Z", True),
        ("22:00-02:30", NEW_YORK, "2026-03-08T07:00Z", False),
        ("02:30-06:00", NEW_YORK, "2026-03-08T06:59Z", False),
        ("02:30-06:00", NEW_YORK, "2026-03-08T07:00Z", True),
        ("02:15-02:45", NEW_YORK, "2026-03-08T07:20Z", False),
        # 1 November 2026: at 02:00 EDT, 06:00 UTC, it goes back to 01:00.
        ("22:00-06:00", NEW_YORK, "2026-11-01T10:59Z", True),
        ("22:00-06:00", NEW_YORK, "2026-11-01T11:00Z", False),
        ("01:00-01:30", NEW_YORK, "2026-11-01T05:15Z", True),
        ("01:00-01:30", NEW_YORK, "2026-11-01T05:45Z", False),
        ("01:00-01:30", NEW_YORK, "2026-11-01T06:15Z", True),
        ("01:00-01:30", NEW_YORK, "2026-11-01T06:30Z", False),
    ],
)
def test_in_quiet_hours(hours, zone, now, expected):
    assert in_quiet_hours(datetime.fromisoformat(now), hours, zone) is expected


clock_times = st.times().map(lambda time: f"{time:%H:%M}")


@given(
    moments,
    clock_times,
    clock_times,
    st.sampled_from([NEW_YORK, "Europe/Berlin", "Australia/Lord_Howe", "UTC"]),
)
def test_every_moment_is_either_in_some_hours_or_in_the_others(now, begin, end, zone):
    inside, outside = (
        in_quiet_hours(now, hours, zone) for hours in (f"{begin}-{end}", f"{end}-{begin}")
    )
    assert (inside != outside) if begin != end else not (inside or outside)


@pytest.mark.parametrize(
    ("age", "lease_is_live", "uploads_open", "expected"),
    [
        (timedelta(seconds=300), False, 0, False),
        (timedelta(seconds=300, microseconds=1), False, 0, True),
        (timedelta(days=1), True, 0, False),
        (timedelta(days=1), False, 1, False),
        (timedelta(days=1), True, 3, False),
        (None, False, 0, True),
        (None, False, 1, False),
        (timedelta(seconds=-5), False, 0, False),
    ],
)
def test_is_stale(age, lease_is_live, uploads_open, expected):
    stale = is_stale(
        None if age is None else NOW - age,
        lease_is_live=lease_is_live,
        uploads_open=uploads_open,
        now=NOW,
        stale_after=timedelta(seconds=300),
    )
    assert stale is expected


IDLE = {
    "lock_held": False,
    "requested": False,
    "uploads_open": 0,
    "lease_is_live": False,
    "work_phase": None,
    "cancelling": False,
    "push": None,
    "in_review": False,
}


@pytest.mark.parametrize(
    ("differs", "expected"),
    [
        ({}, "idle"),
        ({"requested": True}, "requested"),
        ({"lock_held": True}, "collecting"),
        ({"lock_held": True, "requested": True}, "collecting"),
        ({"lock_held": True, "in_review": True}, "collecting"),
        ({"uploads_open": 1}, "queued"),
        ({"lock_held": True, "uploads_open": 1}, "queued"),
        ({"uploads_open": 1, "lease_is_live": True, "work_phase": "importing"}, "importing"),
        ({"uploads_open": 1, "lease_is_live": True, "work_phase": "repricing"}, "repricing"),
        ({"uploads_open": 1, "lease_is_live": False, "work_phase": "repricing"}, "queued"),
        ({"lease_is_live": True, "work_phase": "importing", "cancelling": True}, "cancelling"),
        ({"cancelling": True}, "idle"),
        ({"in_review": True}, "awaiting_review"),
        ({"in_review": True, "requested": True}, "awaiting_review"),
        ({"push": "push_queued"}, "push_queued"),
        ({"push": "push_queued", "requested": True}, "requested"),
        ({"push": "pushing", "requested": True}, "pushing"),
        ({"push": "pushing", "lock_held": True}, "collecting"),
        ({"push": "push_queued", "in_review": True}, "awaiting_review"),
    ],
)
def test_phase(differs, expected):
    assert phase(**(IDLE | differs)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_kind_is_read_as_it_is(kind):
    assert read_kind(kind) == kind


@pytest.mark.parametrize(
    "value", [None, "", "Full", "everything", 7, True, [], ["orders"], {"kind": "orders"}, 1.5]
)
def test_any_other_kind_is_full(value):
    assert read_kind(value) == "full"


@pytest.mark.parametrize(
    ("waiting", "new", "expected"),
    [
        (None, "orders", "orders"),
        (None, "full", "full"),
        ("orders", "pricing", "pricing"),
        ("full", "orders", "full"),
        ("orders", "full", "full"),
        ("orders", "orders", "orders"),
    ],
)
def test_merge_kinds(waiting, new, expected):
    assert merge_kinds(waiting, new) == expected
