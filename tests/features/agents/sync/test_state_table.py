"""The rows of interface.md's table "States and transitions" that belong to the sync protocol, each
with two callers at the same time: the result is that of one after the other. `ROWS` says which test
proves which row; those that are elsewhere stay there.
"""

import asyncio
import base64
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

from builders import a_csv, a_png, a_row, cancel, log, poll
from cardsync.agents.agentwork import tasks
from cardsync.agents.seller_state.state import release_lease, take_lease
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from world import phase, state_of

ROWS = {
    "Manual sync request | none | sync/request | not in cooldown, or not enforced | requested": [
        "test_manual_sync_request_not_in_cooldown_is_requested",
        "test_manual_sync_request_with_the_cooldown_not_enforced_is_requested",
    ],
    "Manual sync request | none | sync/request | metered, inside the cooldown | unchanged, 402": [
        "test_cooldown.test_requests_at_the_same_time_meet_the_same",
        "test_manual_sync_request_metered_inside_the_cooldown_is_unchanged",
    ],
    (
        "Manual sync request | none | sync/request | free account inside the cooldown |"
        " unchanged, 429"
    ): ["test_manual_sync_request_of_a_free_account_inside_the_cooldown_is_unchanged"],
    (
        "Manual sync request | none | sync/skip_wait | a new key, a credit,"
        " inside the cooldown | requested, charged"
    ): [
        "test_skip_wait.test_callers_with_different_keys_are_charged_once",
        "test_skip_wait.test_a_charge_and_a_poll_at_the_same_time_lose_no_sync",
    ],
    "Skip-wait | any | sync/skip_wait | the same key again | unchanged, replayed": [
        "test_skip_wait.test_callers_with_the_same_key_are_charged_once"
    ],
    "Skip-wait | any | sync/skip_wait | past the cooldown | unchanged, no_charge_needed": [
        "test_skip_wait_past_the_cooldown_is_unchanged"
    ],
    "Skip-wait | any | sync/skip_wait | a sync is running | unchanged, sync_in_flight": [
        "test_skip_wait_while_a_sync_is_running_is_unchanged"
    ],
    "Skip-wait | any | sync/skip_wait | mutex held by sync, rollback or preview | unchanged, 409": [
        "test_skip_wait_while_the_mutex_is_held_is_unchanged"
    ],
    "Sync-in-progress lock | set | sync/cancel | no live lease | cleared": [
        "test_cancel.test_two_cancels_at_once_cancel_once",
        "test_sync_in_progress_lock_set_without_a_lease_is_cleared_by_cancel",
    ],
    "Sync-in-progress lock | set | sync/cancel | a live lease | cancellation recorded": [
        "test_cancel.test_cancel_and_the_worker_at_once_end_one_way",
        "test_sync_in_progress_lock_set_under_a_live_lease_is_recorded_as_cancelled",
    ],
    "Sync-in-progress lock | not set | sync/cancel | no sync running | unchanged, 409": [
        "test_sync_in_progress_lock_not_set_is_unchanged_by_cancel"
    ],
    (
        "Sync-in-progress lock | set for over 5 minutes | sync/pending or heartbeat | stale |"
        " cleared"
    ): ["test_sync_in_progress_lock_set_for_over_5_minutes_is_cleared"],
    "upload_approved | true | DELETE sync/approve_upload | after a successful upload | false": [
        "test_approve_upload.test_two_that_clear_at_once_are_both_told_so"
    ],
    (
        "Sync log row | absent | sync/debug with sync_cycle_id | final log not yet received |"
        " placeholder failed row"
    ): [
        "test_debug_screenshots.test_a_log_and_screenshots_of_one_cycle_at_once_make_one_row",
        "test_sync_log_row_absent_becomes_a_failed_placeholder",
    ],
    "Price tasks | pending | heartbeat or claim | read-only or unpaid | cancelled": [
        "test_tasks_and_entitlements.test_two_heartbeats_at_once_cancel_once",
        "test_tasks_and_entitlements.test_a_switch_back_while_a_heartbeat_looks_loses_no_new_task",
    ],
    (
        "Claimed supported price task | claimed | heartbeat | claim older than 10 minutes |"
        " advertised"
    ): ["test_a_claimed_price_task_is_advertised_after_10_minutes"],
}
TURNS = 6


def _in_its_room(module: str) -> str:
    tests = Path(__file__).parents[3]
    [file] = tests.glob(f"features/**/{module}.py")
    return ".".join(file.relative_to(tests.parent).with_suffix("").parts)


@pytest.mark.parametrize("row", ROWS)
def test_every_row_has_its_tests(row):
    for name in ROWS[row]:
        module, _, test = name.rpartition(".")
        where = vars(import_module(_in_its_room(module))) if module else globals()
        assert callable(where.get(test)), name


async def cancelled(seller):
    status, _ = await cancel(seller)
    return status


async def ask(seller, kind="full"):
    answer = await seller.post("/api/v1/sync/request", json={"kind": kind})
    return answer.status_code, answer.json()["status"]


async def skip(seller, key):
    answer = await seller.post("/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": key})
    return answer.json()["status"]


async def heartbeat(seller):
    answer = await seller.post("/api/v1/heartbeat")
    assert answer.status_code == 200
    return answer.json()["has_pending_tasks"]


async def charges(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT amount FROM credit_transaction WHERE seller_id = :id ORDER BY id",
        id=seller.id,
    )
    [account] = await seller.service.sql(
        seller.id, "SELECT credit_balance FROM account WHERE seller_id = :id", id=seller.id
    )
    assert account["credit_balance"] == sum(row["amount"] for row in rows)
    return sum(row["amount"] < 0 for row in rows)


async def cycles(seller):
    return await seller.service.sql(
        seller.id,
        "SELECT sync_cycle_id, status, placeholder FROM sync_cycle WHERE seller_id = :id",
        id=seller.id,
    )


# Manual sync request


async def test_manual_sync_request_not_in_cooldown_is_requested(a_seller):
    for _ in range(TURNS):
        seller = await a_seller(auto_sync_paused=True, credits_metering_enabled=True)
        one, other, polled = await asyncio.gather(
            ask(seller, "orders"), ask(seller, "refunds"), poll(seller)
        )
        assert one == other == (200, "requested")
        handed_out = [polled] if polled["action"] == "sync" else []
        # A poll between the two has taken the first and leaves the second; else the newer is all
        # that is left.
        if handed_out:
            await log(seller)
        while (answer := await poll(seller))["action"] == "sync":
            handed_out.append(answer)
            await log(seller)
        kinds = [answer["kind"] for answer in handed_out]
        assert kinds in (["orders"], ["refunds"], ["orders", "refunds"], ["refunds", "orders"])
        assert len(kinds) == 1 or polled["action"] == "sync"
        assert {answer["reason"] for answer in handed_out} == {"manual_request"}


async def test_manual_sync_request_with_the_cooldown_not_enforced_is_requested(a_seller):
    seller = await a_seller.synced()
    assert set(await asyncio.gather(ask(seller, "orders"), ask(seller, "full"))) == {
        (200, "requested")
    }
    answers = await asyncio.gather(poll(seller, "agent-1"), poll(seller, "agent-2"))
    assert sorted((answer["reason"], answer.get("kind")) for answer in answers) == [
        ("in_progress", None),
        ("manual_request", "full"),
    ]


@pytest.mark.night
@pytest.mark.day
async def test_manual_sync_request_metered_inside_the_cooldown_is_unchanged(a_seller):
    """The cooldown may begin at this moment: the request comes before it and stays, or it is
    refused and leaves nothing.
    """
    await cooldown_begins_meanwhile(a_seller, (402, "cooldown"), credits_metering_enabled=True)


@pytest.mark.night
@pytest.mark.day
async def test_manual_sync_request_of_a_free_account_inside_the_cooldown_is_unchanged(a_seller):
    await cooldown_begins_meanwhile(a_seller, (429, "cooldown"), plan="free")
    seller = await a_seller.synced(plan="free")
    assert await asyncio.gather(ask(seller), ask(seller, "orders")) == [(429, "cooldown")] * 2
    assert await phase(seller) == "idle"


async def cooldown_begins_meanwhile(a_seller, refusal, **settings):
    for _ in range(TURNS):
        seller = await a_seller(**settings)
        await seller.upload(a_csv(a_row()))
        answer, _ = await asyncio.gather(ask(seller), work_off_one(seller.service.work, seller.id))
        assert answer in ((200, "requested"), refusal)
        await seller.applied()
        assert await phase(seller) == ("requested" if answer[0] == 200 else "idle")
        assert (await ask(seller, "full"))[0] == answer[0]  # asked again, it is answered again


# Skip-wait


async def test_skip_wait_past_the_cooldown_is_unchanged(a_seller):
    seller = await a_seller.synced()
    await seller.grant(2)
    clock.shift(timedelta(minutes=61))
    assert await asyncio.gather(skip(seller, "k1"), skip(seller, "k2")) == ["no_charge_needed"] * 2
    assert (await charges(seller), await phase(seller)) == (0, "idle")


async def test_skip_wait_while_a_sync_is_running_is_unchanged(a_seller):
    """Or it has just ended, with which the cooldown begins: then the wait is sold, once."""
    for _ in range(TURNS):
        seller = await a_seller()
        await seller.grant(3)
        await poll(seller)
        first, second, _ = await asyncio.gather(skip(seller, "k1"), skip(seller, "k2"), log(seller))
        assert sorted((first, second)) in (
            ["sync_in_flight"] * 2,
            ["charged", "sync_in_flight"],
            ["charged", "no_charge_needed"],
        )
        assert await charges(seller) == (first, second).count("charged")
        assert await phase(seller) == ("requested" if "charged" in (first, second) else "idle")


@pytest.mark.first(1)
@pytest.mark.parametrize("holder", ["sync", "rollback", "preview"])
async def test_skip_wait_while_the_mutex_is_held_is_unchanged(a_seller, holder):
    """Or it has just been let go: then the wait is sold."""
    seller = await a_seller.synced()
    await seller.grant(TURNS)
    sold = 0
    for turn in range(TURNS):
        async with seller.service.database.tenant(seller.id) as session:
            lease = await take_lease(session, seller.id, holder, clock.now(), 30)
        assert (
            await asyncio.gather(skip(seller, f"a{turn}"), skip(seller, f"b{turn}"))
            == ["mutex_held"] * 2
        )

        async def let_go(lease=lease):
            async with seller.service.database.tenant(seller.id) as session:
                await release_lease(session, lease)

        answer, _ = await asyncio.gather(skip(seller, f"c{turn}"), let_go())
        assert answer in ("mutex_held", "charged")
        sold += answer == "charged"
        assert await charges(seller) == sold
        if answer == "charged":
            await poll(seller)
            await log(seller, status="failed")


# Sync-in-progress lock


async def test_sync_in_progress_lock_set_without_a_lease_is_cleared_by_cancel(a_seller):
    """A poll at the same time finds the lock, or is the first of the next cycle; never of the
    cancelled one.
    """
    seller = await a_seller()
    for turn in range(TURNS):
        await ask(seller, "orders")
        assert (await poll(seller, "agent-1"))["action"] == "sync"
        await ask(seller, "refunds")
        code, polled = await asyncio.gather(cancelled(seller), poll(seller, "agent-2"))
        assert code == 200
        assert (polled["reason"], polled.get("kind")) in (
            ("in_progress", None),
            ("manual_request", "refunds"),
        )
        if polled["action"] == "wait":
            polled = await poll(seller, "agent-2")
        assert polled["kind"] == "refunds"
        assert await cancelled(seller) == 200
        assert [cycle["status"] for cycle in await cycles(seller)] == ["cancelled"] * 2 * (turn + 1)


async def test_sync_in_progress_lock_set_under_a_live_lease_is_recorded_as_cancelled(a_seller):
    seller = await a_seller(auto_sync_paused=True)
    upload = (await seller.upload(a_csv(a_row()))).json()["upload_id"]
    await seller.hold_lease("sync")
    assert await asyncio.gather(cancelled(seller), cancelled(seller)) == [202, 202]
    assert await phase(seller) == "cancelling"
    clock.shift(timedelta(seconds=31))
    # Whoever comes first ends it, and only once.
    await asyncio.gather(
        heartbeat(seller),
        poll(seller),
        cancelled(seller),
        work_off_one(seller.service.work, seller.id),
        cancelled(seller),
    )
    assert (await seller.report(upload))["state"] == "cancelled"
    assert [cycle["status"] for cycle in await cycles(seller)] == ["cancelled"]
    state = await state_of(seller)
    assert (state["lease_token"], state["cancel_requested_at"], state["uploads_open"]) == (
        None,
        None,
        0,
    )


async def test_sync_in_progress_lock_not_set_is_unchanged_by_cancel(a_seller):
    seller = await a_seller()
    assert await asyncio.gather(cancelled(seller), cancelled(seller)) == [409, 409]
    assert await cycles(seller) == []
    for _ in range(TURNS):
        await ask(seller, "orders")
        code, polled = await asyncio.gather(cancelled(seller), poll(seller))
        assert polled["action"] == "sync"
        # Before the poll there was nothing to cancel; after it there was.
        assert code in (200, 409)
        assert await phase(seller) == ("collecting" if code == 409 else "idle")
        if code == 409:
            assert await cancelled(seller) == 200


@pytest.mark.parametrize("trigger", ["manual", "scheduled"])
async def test_sync_in_progress_lock_set_for_over_5_minutes_is_cleared(a_seller, trigger):
    seller = await a_seller()
    if trigger == "manual":
        await ask(seller, "orders")
    await poll(seller, "agent-0")
    clock.shift(timedelta(minutes=5, seconds=1))
    answers = await asyncio.gather(
        poll(seller, "agent-1"), poll(seller, "agent-2"), heartbeat(seller)
    )
    actions = sorted((answer["action"], answer["reason"]) for answer in answers[:2])
    state = await state_of(seller)
    if trigger == "manual":
        assert actions == [("sync", "manual_request"), ("wait", "in_progress")]
        assert (state["lock_kind"], state["requested_kind"]) == ("orders", None)
    else:
        assert actions == [("wait", "no_sync_needed")] * 2
        assert (state["lock_kind"], state["scheduled_failures"]) == (None, 1)


# Sync log row


async def test_sync_log_row_absent_becomes_a_failed_placeholder(a_seller):
    seller = await a_seller()
    body = {"sync_cycle_id": "c1", "screenshot": base64.b64encode(a_png()).decode()}
    answers = await asyncio.gather(
        *(seller.post("/api/v1/sync/debug", json=body) for _ in range(2))
    )
    assert [answer.status_code for answer in answers] == [201, 201]
    assert await cycles(seller) == [
        {"sync_cycle_id": "c1", "status": "failed", "placeholder": True}
    ]
    await asyncio.gather(log(seller, sync_cycle_id="c1"), log(seller, sync_cycle_id="c1"))
    assert await cycles(seller) == [
        {"sync_cycle_id": "c1", "status": "success", "placeholder": False}
    ]


# Claimed supported price task


async def test_a_claimed_price_task_is_advertised_after_10_minutes(a_seller):
    seller = await a_seller()
    now = clock.now()
    async with seller.service.database.tenant(seller.id) as session:
        await tasks.enqueue_task(session, seller.id, "apply_price_updates", {}, now)
    await seller.service.sql(
        seller.id,
        "UPDATE agent_task SET status = 'claimed', claimed_at = :now,"
        " claim_expires_at = :ends WHERE seller_id = :id",
        id=seller.id, now=now, ends=now + timedelta(minutes=10),
    )  # fmt: skip
    async with seller.service.database.tenant(seller.id) as session:
        await tasks.note_due(session, seller.id)
    clock.shift(timedelta(minutes=9, seconds=59))
    assert await asyncio.gather(heartbeat(seller), heartbeat(seller)) == [False, False]
    clock.shift(timedelta(seconds=2))
    assert await asyncio.gather(heartbeat(seller), heartbeat(seller)) == [True, True]
    [task] = await seller.service.sql(
        seller.id, "SELECT status FROM agent_task WHERE seller_id = :id", id=seller.id
    )
    assert task["status"] == "claimed"
