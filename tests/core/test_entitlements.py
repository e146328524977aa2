"""What a plan allows: an unpaid account is held read-only whatever is stored."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.accounts.entitlements import PLANS, entitlements, is_paid

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("plan", "trial_ends_at", "paid"),
    [
        ("free", None, False),
        ("free", NOW + SECOND, False),
        ("paid", None, True),
        ("paid", NOW - SECOND, True),
        ("complimentary", None, True),
        ("founder", None, True),
        ("trial", None, True),
        ("trial", NOW + SECOND, True),
        ("trial", NOW, False),
        ("trial", NOW - SECOND, False),
        ("no such plan", None, False),
    ],
)
def test_is_paid(plan, trial_ends_at, paid):
    assert is_paid(plan, trial_ends_at, NOW) is paid


@pytest.mark.parametrize(
    ("plan", "stored_mode", "stored_approval", "mode", "approved"),
    [
        ("founder", "full", False, "full", False),
        ("founder", "full", True, "full", True),
        ("founder", "read_only", True, "read_only", True),
        ("free", "full", True, "read_only", False),
        ("free", "read_only", False, "read_only", False),
    ],
)
def test_entitlements(plan, stored_mode, stored_approval, mode, approved):
    allowed = entitlements(plan, None, stored_mode, upload_approved=stored_approval, now=NOW)
    assert (allowed.sync_mode, allowed.upload_approved) == (mode, approved)


@given(
    plan=st.sampled_from(PLANS),
    ends=st.none() | st.datetimes(timezones=st.just(UTC)),
    mode=st.sampled_from(["full", "read_only"]),
    approved=st.booleans(),
)
def test_no_unpaid_account_ever_pushes_and_a_paid_one_is_as_stored(plan, ends, mode, approved):
    allowed = entitlements(plan, ends, mode, upload_approved=approved, now=NOW)
    if allowed.paid:
        assert (allowed.sync_mode, allowed.upload_approved) == (mode, approved)
    else:
        assert (allowed.sync_mode, allowed.upload_approved) == ("read_only", False)
