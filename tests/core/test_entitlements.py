"""The rights of an account, row by row: its plan, its settings, the reasons that hold its prices
back, the end of its price tasks.
"""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardsync.access.entitlements import entitlements, is_paid
from cardsync.agents.agentwork.tasks import advertised, lost
from cardsync.platform.limits import PLANS

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
# A paying account with nothing in its way.
OPEN = {
    "plan": "paid",
    "trial_ends_at": None,
    "sync_mode": "full",
    "upload_approved": False,
    "past_due": False,
    "write_consent": True,
    "automatic_pricing_paused": False,
    "suspended": False,
}
ACCOUNTS = st.fixed_dictionaries(
    {
        "plan": st.sampled_from([*PLANS, "no such plan"]),
        "trial_ends_at": st.none() | st.datetimes(timezones=st.just(UTC)),
        "sync_mode": st.sampled_from(["full", "read_only"]),
        **dict.fromkeys(
            (
                "upload_approved",
                "past_due",
                "write_consent",
                "automatic_pricing_paused",
                "suspended",
            ),
            st.booleans(),
        ),
    }
)


def allowed(**differs):
    return entitlements(SimpleNamespace(**(OPEN | differs)), NOW)


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
    assert allowed(plan=plan, trial_ends_at=trial_ends_at).paid is paid


@pytest.mark.parametrize(
    ("plan", "stored_mode", "stored_approval", "mode", "approved"),
    [
        ("founder", "full", False, "full", False),
        ("founder", "full", True, "full", True),
        ("founder", "read_only", True, "read_only", True),
        ("complimentary", "full", True, "full", True),
        ("free", "full", True, "read_only", False),
        ("free", "read_only", False, "read_only", False),
    ],
)
def test_sync_mode_and_approval(plan, stored_mode, stored_approval, mode, approved):
    found = allowed(plan=plan, sync_mode=stored_mode, upload_approved=stored_approval)
    assert (found.sync_mode, found.upload_approved) == (mode, approved)


@pytest.mark.parametrize(
    ("differs", "holds", "price_tasks"),
    [
        ({}, (), "advertised"),
        ({"plan": "trial", "trial_ends_at": NOW + SECOND}, (), "advertised"),
        ({"plan": "complimentary"}, (), "advertised"),
        ({"plan": "founder"}, (), "advertised"),
        # Held back, and there again when the reason goes.
        ({"past_due": True}, ("past_due",), "queued"),
        ({"write_consent": False}, ("consent_missing",), "queued"),
        ({"automatic_pricing_paused": True}, ("automatic_pricing_paused",), "queued"),
        ({"suspended": True}, (), "queued"),
        # Held read-only: gone for good.
        ({"sync_mode": "read_only"}, (), "cancelled"),
        ({"plan": "free"}, ("not_entitled",), "cancelled"),
        ({"plan": "trial", "trial_ends_at": NOW}, ("not_entitled",), "cancelled"),
        ({"plan": "free", "suspended": True}, ("not_entitled",), "cancelled"),
        ({"sync_mode": "read_only", "past_due": True}, ("past_due",), "cancelled"),
        (
            {
                "plan": "free",
                "write_consent": False,
                "past_due": True,
                "automatic_pricing_paused": True,
            },
            ("not_entitled", "consent_missing", "past_due", "automatic_pricing_paused"),
            "cancelled",
        ),
    ],
)
def test_what_holds_prices_back(differs, holds, price_tasks):
    found = allowed(**differs)
    assert (found.holds, found.price_tasks) == (holds, price_tasks)


@pytest.mark.parametrize(
    ("due", "price_due", "price_tasks", "tells", "loses"),
    [
        (None, None, "advertised", False, False),
        (NOW, None, "advertised", True, False),
        (NOW, None, "queued", True, False),
        (NOW, None, "cancelled", True, False),
        (NOW + SECOND, None, "advertised", False, False),
        (None, NOW, "advertised", True, False),
        (None, NOW, "queued", False, False),
        (None, NOW, "cancelled", False, True),
        (NOW, NOW, "cancelled", True, True),
        # A claim that has not run out.
        (None, NOW + SECOND, "advertised", False, False),
        (None, NOW + SECOND, "cancelled", False, False),
    ],
)
def test_what_the_heartbeat_tells_of(due, price_due, price_tasks, tells, loses):
    assert advertised(due, price_due, None, price_tasks, None, NOW) is tells
    assert lost(price_due, price_tasks, NOW) is loses
    # Behind a rollback price pushes wait, and what it holds back else is not due.
    behind = advertised(due, price_due, None, price_tasks, NOW + SECOND, NOW)
    assert behind is (due == NOW)


@given(account=ACCOUNTS)
def test_no_unpaid_account_ever_pushes_and_a_paid_one_is_as_stored(account):
    found = entitlements(SimpleNamespace(**account), NOW)
    stored = account["sync_mode"], account["upload_approved"]
    assert (found.sync_mode, found.upload_approved) == (
        stored if found.paid else ("read_only", False)
    )
    assert ("not_entitled" in found.holds) is not found.paid


@given(account=ACCOUNTS)
def test_price_tasks_are_cancelled_exactly_where_the_account_is_held_read_only(account):
    found = entitlements(SimpleNamespace(**account), NOW)
    assert (found.price_tasks == "cancelled") is (found.sync_mode == "read_only")
    if found.price_tasks == "advertised":
        assert not found.holds
        assert not account["suspended"]


@given(account=ACCOUNTS)
def test_past_due_never_changes_the_mode(account):
    modes = {
        entitlements(SimpleNamespace(**account | {"past_due": due}), NOW).sync_mode
        for due in (True, False)
    }
    assert len(modes) == 1
