"""The sync decision as an agent sees it: reasons, the lock and its ends, requests, the schedule,
cycle logs.
"""

import asyncio
import base64
import json
from datetime import timedelta

import pytest

from builders import a_csv, a_png, a_row, log, poll
from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.platform import clock

pytestmark = pytest.mark.day

MINUTE = timedelta(minutes=1)
HISTORY = ["fetch_orders", "fetch_order_items", "fetch_shipping", "fetch_refunds", "fetch_feedback"]


async def ask(seller, **body) -> None:
    answer = await seller.post("/api/v1/sync/request", json=body)
    assert (answer.status_code, answer.json()) == (200, {"status": "requested"})


async def in_progress(seller) -> bool:
    return (await seller.get("/api/v1/status")).json()["sync_in_progress"]


async def a_synced_seller(a_seller, **settings):
    """A seller whose first cycle, history and all, has just ended."""
    seller = await a_seller(**settings)
    assert (await poll(seller))["first_sync"] is True
    await seller.import_csv(a_csv(a_row()))
    await seller.applied()
    await log(seller, "success", sync_cycle_id="first")
    assert (await poll(seller))["reason"] == "no_sync_needed"
    return seller


def wait(reason: str, *, requested: bool = False) -> dict:
    return {"action": "wait", "reason": reason, "sync_requested": requested}


def sync(reason: str, *, kind: str = "full", first: bool = False) -> dict:
    return {
        "action": "sync", "reason": reason, "sync_requested": reason == "manual_request",
        "first_sync": first, "kind": kind,
    }  # fmt: skip


# Reasons


async def test_a_seller_who_never_synced_is_due_at_once(a_seller):
    assert await poll(await a_seller()) == sync("scheduled", first=True)


@pytest.mark.night
async def test_after_a_cycle_there_is_nothing_to_do(a_seller):
    seller = await a_synced_seller(a_seller)
    assert await poll(seller) == wait("no_sync_needed")


async def test_a_request_is_handed_out_at_the_next_poll(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller)
    assert await poll(seller) == sync("manual_request")


async def test_while_one_agent_runs_a_cycle_another_waits(a_seller):
    seller = await a_seller()
    await poll(seller, "agent-1")
    assert await poll(seller, "agent-2") == wait("in_progress")


async def test_an_agent_without_an_id_waits_for_its_own_cycle_too(a_seller):
    seller = await a_seller()
    assert (await poll(seller, None))["action"] == "sync"
    assert await poll(seller, None) == wait("in_progress")


async def test_a_paused_seller_is_not_synced_by_the_schedule(a_seller):
    seller = await a_seller(auto_sync_paused=True)
    assert await poll(seller) == wait("auto_sync_paused")


async def test_a_request_goes_through_a_pause(a_seller):
    seller = await a_seller(auto_sync_paused=True)
    await ask(seller)
    assert await poll(seller) == sync("manual_request", first=True)


async def test_ending_the_pause_makes_a_due_seller_due(a_seller):
    seller = await a_seller(auto_sync_paused=True)
    await poll(seller)
    await seller.set(auto_sync_paused=False)
    assert (await poll(seller))["reason"] == "scheduled"


# The lock


async def test_two_agents_that_ask_at_the_same_time_never_both_run(a_seller):
    seller = await a_seller()
    answers = await asyncio.gather(*(poll(seller, f"agent-{n}") for n in range(6)))
    assert sorted(answer["action"] for answer in answers) == ["sync"] + ["wait"] * 5


async def test_the_holder_hears_the_same_until_something_was_uploaded(a_seller):
    seller = await a_seller()
    await ask(seller, kind="pricing")
    first = await poll(seller)
    assert [await poll(seller), await poll(seller)] == [first, first]
    await seller.upload(a_csv(a_row()))
    assert await poll(seller) == wait("in_progress")


@pytest.mark.first(10)
@pytest.mark.parametrize("kind", ["full", "orders", "refunds", "feedback", "sales"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("orders", [{"order_number": "A-1"}]),
        ("order_refunds", [{"order_number": "A-1"}]),
        ("order_items", [{"order_number": "A-1"}]),
        ("orders/shipping", [{"order_number": "A-1"}]),
        ("order_feedbacks", [{"order_number": "A-1", "rating": 5}]),
        ("sales_report", {"date_from": "2026-10-01", "date_to": "2026-10-31", "report": {}}),
    ],
)
async def test_the_holder_does_not_hear_sync_again_after_it_uploaded_any_order_data(
    a_seller, service, kind, path, body
):
    seller = await a_seller()
    await ask(seller, kind=kind)
    assert (await poll(seller))["kind"] == kind
    answer = await seller.post(f"/api/v1/{path}", json=body)
    assert answer.status_code in (200, 202), answer.text
    assert await poll(seller) == wait("in_progress")
    # The inventory of a full sync may still come, and its log ends the cycle without any.
    await service.run_jobs()
    assert await poll(seller) == wait("in_progress")
    await log(seller, "partial")
    assert not await in_progress(seller)
    # The next cycle is handed out, and repeated, as any.
    await ask(seller, kind=kind)
    assert (await poll(seller))["action"] == (await poll(seller))["action"] == "sync"


async def test_order_data_without_a_cycle_hides_none(a_seller):
    seller = await a_seller()
    await seller.post("/api/v1/orders", json=[{"order_number": "A-1"}])
    assert [(await poll(seller))["action"], (await poll(seller))["action"]] == ["sync", "sync"]


async def test_asking_for_an_upload_url_is_not_an_upload(a_seller):
    seller = await a_seller()
    first = await poll(seller)
    await seller.post("/api/v1/sync/upload-request")
    assert await poll(seller) == first


async def test_the_lock_ends_when_the_worker_has_finished(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    await seller.upload(a_csv(a_row()))
    assert await in_progress(seller)
    await service.run_jobs()
    assert not await in_progress(seller)


@pytest.mark.night
async def test_with_two_uploads_the_lock_lasts_until_both_are_finished(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    await seller.upload(a_csv(a_row()))
    await seller.upload(a_csv(a_row()))
    assert await in_progress(seller)
    await service.run_jobs()
    assert not await in_progress(seller)


async def test_an_upload_that_fails_ends_the_cycle_too(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    await seller.send_key(await seller.put_object(b"\x1f\x8bnot gzip"))
    await service.run_jobs()
    status = (await seller.get("/api/v1/status")).json()
    assert (status["sync_in_progress"], status["last_sync_at"]) == (False, None)


async def test_an_upload_without_a_lock_takes_it(a_seller, service):
    seller = await a_synced_seller(a_seller)
    await seller.upload(a_csv(a_row()))
    assert await poll(seller) == wait("in_progress")
    await service.run_jobs()
    assert await poll(seller) == wait("no_sync_needed")


async def test_a_failed_log_without_an_upload_ends_the_cycle_at_once(a_seller):
    seller = await a_seller()
    await ask(seller)
    await poll(seller)
    await log(seller, "failed")
    status = (await seller.get("/api/v1/status")).json()
    assert (status["sync_in_progress"], status["last_sync_at"]) == (False, None)


async def test_a_failed_log_while_the_worker_is_still_to_come_leaves_the_lock(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    await seller.upload(a_csv(a_row()))
    await log(seller, "failed")
    assert await in_progress(seller)
    await service.run_jobs()
    assert not await in_progress(seller)


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["orders", "refunds", "feedback", "sales", "account"])
async def test_a_cycle_without_inventory_ends_with_its_log(a_seller, kind):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind=kind)
    await poll(seller)
    assert await in_progress(seller)
    await log(seller, "success")
    assert not await in_progress(seller)


@pytest.mark.night
async def test_an_orders_cycle_into_which_an_upload_fell_still_ends_with_its_log(a_seller, service):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind="orders")
    await poll(seller)
    await seller.import_csv(a_csv(a_row()))
    await log(seller, "success")
    assert not await in_progress(seller)


@pytest.mark.night
async def test_a_partial_cycle_without_inventory_is_no_completed_sync(a_seller):
    seller = await a_synced_seller(a_seller)
    before = (await seller.get("/api/v1/status")).json()["last_sync_at"]
    await ask(seller, kind="orders")
    await poll(seller)
    await log(seller, "partial")
    assert (await seller.get("/api/v1/status")).json()["last_sync_at"] == before


@pytest.mark.night
async def test_a_partial_log_whose_inventory_was_imported_counts_as_a_sync(a_seller):
    seller = await a_seller()
    await poll(seller)
    await seller.import_csv(a_csv(a_row()))
    await log(seller, "partial")
    assert (await seller.get("/api/v1/status")).json()["last_sync_at"] is not None


async def test_a_partial_log_of_a_full_cycle_that_uploaded_nothing_does_not(a_seller):
    seller = await a_seller()
    await poll(seller)
    await log(seller, "partial")
    assert (await seller.get("/api/v1/status")).json()["last_sync_at"] is None


@pytest.mark.night
async def test_a_log_without_a_lock_is_only_recorded(a_seller, service):
    seller = await a_synced_seller(a_seller)
    before = (await seller.get("/api/v1/status")).json()
    await log(seller, "failed", sync_cycle_id="stray")
    assert (await seller.get("/api/v1/status")).json() == before
    [row] = await cycles(service, seller, "stray")
    assert row["status"] == "failed"


async def a_newer_lock(seller, kind: str) -> None:
    """agent-2 has the lock now; what agent-1 was doing went stale."""
    await ask(seller, kind=kind)
    await poll(seller, "agent-1")
    clock.shift(6 * MINUTE)
    assert (await poll(seller, "agent-2"))["kind"] == kind


async def test_the_late_log_of_another_agent_leaves_the_lock(a_seller, service):
    seller = await a_synced_seller(a_seller)
    await a_newer_lock(seller, "orders")
    late = {"status": "success", "sync_cycle_id": "late"}
    assert (
        await seller.post("/api/v1/sync/log", params={"agent_id": "agent-1"}, json=late)
    ).status_code == 201
    assert await in_progress(seller)
    [row] = await cycles(service, seller, "late")
    assert (row["status"], row["trigger_source"]) == ("success", None)
    await seller.post(
        "/api/v1/sync/log", params={"agent_id": "agent-2"}, json={"status": "success"}
    )
    assert not await in_progress(seller)


@pytest.mark.night
async def test_the_late_log_of_a_cycle_that_showed_itself_before_leaves_the_lock(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind="orders")
    await poll(seller, "agent-1")
    await seller.post("/api/v1/sync/debug", json=a_screenshot())
    clock.shift(6 * MINUTE)
    await poll(seller, "agent-2")
    await log(seller, "failed", sync_cycle_id="c1")
    assert await in_progress(seller)
    await log(seller, "failed", sync_cycle_id="c2")
    assert not await in_progress(seller)


@pytest.mark.night
async def test_the_log_of_a_cycle_that_showed_itself_under_the_lock_ends_it(a_seller):
    seller = await a_synced_seller(a_seller)
    await a_newer_lock(seller, "orders")
    await seller.post("/api/v1/sync/debug", json=a_screenshot())
    await log(seller, "success", sync_cycle_id="c1")
    assert not await in_progress(seller)


# Requests


async def test_asking_twice_is_one_request(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller)
    await ask(seller)
    await poll(seller)
    await log(seller, "failed")
    assert await poll(seller) == wait("no_sync_needed")


@pytest.mark.night
async def test_a_request_while_a_cycle_runs_waits_for_its_end(a_seller):
    seller = await a_seller()
    await poll(seller)
    await ask(seller, kind="orders")
    assert await poll(seller, "agent-2") == wait("in_progress", requested=True)
    await seller.import_csv(a_csv(a_row()))
    await log(seller, "success")
    assert await poll(seller, "agent-2") == sync("manual_request", kind="orders")


@pytest.mark.night
@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_is_handed_out_as_asked(a_seller, kind):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind=kind)
    assert (await poll(seller))["kind"] == kind


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "body",
    [{}, {"kind": "everything"}, {"kind": 7}, {"kind": None}, {"kind": ["orders"]}],
    ids=json.dumps,
)
async def test_a_missing_unknown_or_non_string_kind_is_full(a_seller, body):
    seller = await a_synced_seller(a_seller)
    await ask(seller, **body)
    assert (await poll(seller))["kind"] == "full"


@pytest.mark.night
async def test_the_body_of_a_request_is_optional(a_seller):
    seller = await a_synced_seller(a_seller)
    assert (await seller.post("/api/v1/sync/request")).json() == {"status": "requested"}
    assert (await poll(seller))["kind"] == "full"


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("first", "second", "handed_out"),
    [("orders", "sales", "sales"), ("orders", "full", "full"), ("full", "orders", "full")],
)
async def test_of_two_kinds_full_wins_else_the_newer(a_seller, first, second, handed_out):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind=first)
    await ask(seller, kind=second)
    assert (await poll(seller))["kind"] == handed_out


# First sync


async def test_the_first_sync_is_over_once_its_history_was_fetched(a_seller):
    seller = await a_seller()
    await poll(seller)
    await log(
        seller, "partial", dict.fromkeys(HISTORY, "success") | {"fetch_sales_report": "failed"}
    )
    await ask(seller)
    assert (await poll(seller))["first_sync"] is False


@pytest.mark.parametrize("failed", HISTORY)
async def test_the_first_sync_goes_on_while_one_step_of_the_history_fails(a_seller, failed):
    seller = await a_seller()
    await poll(seller)
    await log(seller, "success", dict.fromkeys(HISTORY, "success") | {failed: "failed"})
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


@pytest.mark.parametrize(
    ("status", "steps"),
    [
        (
            "partial",
            {"fetch_orders": "success", "fetch_refunds": "skipped", "fetch_feedback": "skipped"},
        ),
        ("success", {"fetch_orders": "success"}),
        ("success", {"sync_my_orders": "success"}),
        ("success", {"fetch_orders": "success", "sync_my_orders": "failed"}),
    ],
)
async def test_steps_with_nothing_to_bring_and_names_of_other_agents_do_not_hold_the_first_sync(
    a_seller, status, steps
):
    """A folder has no file of refunds or feedback, and skips those steps in every cycle."""
    seller = await a_seller()
    await poll(seller)
    await log(seller, status, steps)
    await ask(seller)
    assert (await poll(seller))["first_sync"] is False


@pytest.mark.parametrize(
    ("status", "steps"),
    [
        ("success", {"fetch_orders": "skipped", "fetch_refunds": "success"}),
        ("success", {"export_inventory": "success"}),
        ("partial", {"sync_my_orders": "success"}),
        ("partial", None),
    ],
)
async def test_without_its_orders_a_first_sync_goes_on(a_seller, status, steps):
    seller = await a_seller()
    await poll(seller)
    await log(seller, status, steps)
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


async def test_a_seller_who_was_stuck_in_the_first_sync_is_freed_by_the_next_log(a_seller):
    """A skipped step held it until now; and a folder's list of orders is not sent a second time."""
    seller = await a_seller()
    await poll(seller)
    await log(seller, "partial", {"fetch_orders": "success", "fetch_refunds": "failed"})
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True
    await log(seller, "failed", dict.fromkeys(HISTORY, "skipped"))
    await ask(seller)
    assert (await poll(seller))["first_sync"] is False


@pytest.mark.parametrize("kind", ["pricing", "sales", "account"])
async def test_a_cycle_that_fetches_no_orders_does_not_end_the_first_sync(a_seller, kind):
    seller = await a_seller()
    await seller.post("/api/v1/sync/request", json={"kind": kind})
    assert (await poll(seller))["kind"] == kind
    await log(seller, "success")
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


async def test_a_full_history_that_is_asked_for_again_wants_its_orders_anew(a_seller):
    seller = await a_seller()
    await poll(seller)
    await log(seller, "success", {"fetch_orders": "success"})
    await seller.set(full_history_requested=True)
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True
    await log(seller, "success", dict.fromkeys(HISTORY, "skipped"))
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


async def test_a_finished_worker_does_not_end_the_first_sync(a_seller):
    seller = await a_seller()
    await poll(seller)
    await seller.import_csv(a_csv(a_row()))
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


async def test_an_upload_without_a_lock_does_not_end_the_first_sync(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row()))
    await log(seller, "success")
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


async def test_the_log_of_a_cycle_that_was_no_first_sync_does_not_end_a_later_one(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller)
    assert (await poll(seller))["first_sync"] is False
    await seller.set(full_history_requested=True)
    await log(seller, "success")
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True


async def test_a_full_history_import_is_a_first_sync_again_until_its_log(a_seller):
    seller = await a_synced_seller(a_seller)
    await seller.set(full_history_requested=True)
    await ask(seller)
    assert (await poll(seller))["first_sync"] is True
    await log(seller, "success")
    await ask(seller)
    assert (await poll(seller))["first_sync"] is False


async def test_the_log_that_comes_after_the_worker_ends_the_first_sync(a_seller):
    seller = await a_seller()
    await poll(seller)
    await seller.import_csv(a_csv(a_row()))
    await log(seller, "success")
    await ask(seller)
    assert (await poll(seller))["first_sync"] is False


# The schedule


async def test_the_next_cycle_is_due_an_interval_after_the_last(a_seller):
    seller = await a_synced_seller(a_seller)
    clock.shift(359 * MINUTE)
    assert await poll(seller) == wait("no_sync_needed")
    clock.shift(MINUTE)
    assert await poll(seller) == sync("scheduled")


async def test_a_seller_may_have_an_interval_of_its_own(a_seller):
    seller = await a_synced_seller(a_seller, sync_interval_minutes=45)
    clock.shift(44 * MINUTE)
    assert (await poll(seller))["action"] == "wait"
    clock.shift(MINUTE)
    assert (await poll(seller))["action"] == "sync"


def hours_around(moment) -> str:
    """The two hours around a moment, as the seller's setting."""
    return f"{moment - 60 * MINUTE:%H:%M}-{moment + 60 * MINUTE:%H:%M}"


async def test_a_cycle_that_falls_due_in_quiet_hours_waits_for_their_end(a_seller):
    seller = await a_synced_seller(a_seller, time_zone="UTC")
    await seller.set(quiet_hours=hours_around(clock.now() + 360 * MINUTE))
    clock.shift(361 * MINUTE)
    assert await poll(seller) == wait("no_sync_needed")
    clock.shift(60 * MINUTE)
    assert await poll(seller) == sync("scheduled")


async def test_quiet_hours_are_the_sellers_own(a_seller):
    seller = await a_seller(time_zone="Asia/Tokyo", quiet_hours=hours_around(clock.now()))
    assert (await poll(seller))["reason"] == "scheduled"
    seller = await a_seller(
        time_zone="Asia/Tokyo", quiet_hours=hours_around(clock.now() + 540 * MINUTE)
    )
    assert await poll(seller) == wait("no_sync_needed")


async def test_quiet_hours_do_not_delay_a_request(a_seller):
    seller = await a_seller(time_zone="UTC", quiet_hours=hours_around(clock.now()))
    await ask(seller, kind="orders")
    assert await poll(seller) == sync("manual_request", kind="orders", first=True)


async def test_a_cycle_that_runs_when_quiet_hours_begin_runs_on(a_seller):
    seller = await a_seller(time_zone="UTC")
    first = await poll(seller)
    await seller.set(quiet_hours=hours_around(clock.now()))
    assert await poll(seller) == first


@pytest.mark.night
async def test_an_orders_cycle_does_not_move_the_schedule(a_seller):
    seller = await a_synced_seller(a_seller)
    clock.shift(300 * MINUTE)
    await ask(seller, kind="orders")
    await poll(seller)
    await log(seller, "success")
    clock.shift(60 * MINUTE)
    assert (await poll(seller))["reason"] == "scheduled"


@pytest.mark.night
async def test_failed_scheduled_cycles_back_off_and_a_success_ends_that(a_seller):
    seller = await a_seller()
    for minutes in (5, 10, 20):
        assert (await poll(seller))["reason"] == "scheduled"
        await log(seller, "failed")
        clock.shift(minutes * MINUTE - timedelta(seconds=5))
        assert await poll(seller) == wait("no_sync_needed")
        clock.shift(timedelta(seconds=6))
    assert (await poll(seller))["reason"] == "scheduled"
    await seller.import_csv(a_csv(a_row()))
    await log(seller, "success")
    clock.shift(361 * MINUTE)
    await poll(seller)
    await log(seller, "failed")
    clock.shift(6 * MINUTE)
    assert (await poll(seller))["reason"] == "scheduled"


async def test_the_back_off_is_never_longer_than_the_interval(a_seller):
    seller = await a_seller(sync_interval_minutes=30)
    for _ in range(6):
        await poll(seller)
        await log(seller, "failed")
        clock.shift(30 * MINUTE)
    assert (await poll(seller))["reason"] == "scheduled"


async def test_failures_do_not_delay_a_request(a_seller):
    seller = await a_seller()
    await poll(seller)
    await log(seller, "failed")
    await ask(seller)
    assert (await poll(seller))["reason"] == "manual_request"


async def test_a_failed_manual_cycle_does_not_count_against_the_schedule(a_seller):
    seller = await a_seller()
    await ask(seller)
    await poll(seller)
    await log(seller, "failed")
    assert (await poll(seller))["reason"] == "scheduled"


# Stale locks


async def test_a_lock_without_refresh_goes_stale_after_five_minutes(a_seller):
    seller = await a_seller()
    await poll(seller, "agent-1")
    clock.shift(timedelta(seconds=295))
    assert (await poll(seller, "agent-2"))["reason"] == "in_progress"
    clock.shift(timedelta(seconds=10))
    assert (await poll(seller, "agent-2"))["reason"] != "in_progress"


async def test_a_stale_scheduled_cycle_counts_as_failed(a_seller):
    seller = await a_seller()
    await poll(seller)
    clock.shift(6 * MINUTE)
    assert await poll(seller, "agent-2") == wait("no_sync_needed")
    clock.shift(5 * MINUTE)
    assert (await poll(seller, "agent-2"))["reason"] == "scheduled"


async def test_a_request_that_was_taken_and_went_stale_is_offered_again(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind="orders")
    await poll(seller, "agent-1")
    clock.shift(6 * MINUTE)
    assert await poll(seller, "agent-2") == sync("manual_request", kind="orders")


@pytest.mark.night
@pytest.mark.parametrize(
    ("taken", "meanwhile", "offered"),
    [("orders", "sales", "sales"), ("full", "sales", "full"), ("sales", "full", "full")],
)
async def test_of_a_stale_request_and_one_made_meanwhile_full_wins_else_the_newer(
    a_seller, taken, meanwhile, offered
):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind=taken)
    await poll(seller, "agent-1")
    await ask(seller, kind=meanwhile)
    clock.shift(6 * MINUTE)
    assert await poll(seller, "agent-2") == sync("manual_request", kind=offered)


@pytest.mark.night
async def test_a_stale_orders_cycle_into_which_an_upload_fell_is_offered_again(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind="orders")
    await poll(seller, "agent-1")
    await seller.import_csv(a_csv(a_row()))
    clock.shift(6 * MINUTE)
    assert await poll(seller, "agent-2") == sync("manual_request", kind="orders")


async def test_the_heartbeat_clears_a_stale_lock_and_the_request_waits_again(a_seller, service):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind="sales")
    await poll(seller, "agent-1")
    clock.shift(6 * MINUTE)
    await seller.post("/api/v1/heartbeat")
    query = "SELECT lock_kind, lock_agent_id, requested_kind FROM sync_state WHERE seller_id = :id"
    [row] = await service.sql(seller.id, query, id=seller.id)
    assert row == {"lock_kind": None, "lock_agent_id": None, "requested_kind": "sales"}
    assert (await seller.get("/api/v1/status")).json()["phase"] == "requested"


async def test_the_heartbeat_leaves_a_fresh_lock(a_seller):
    seller = await a_seller()
    await poll(seller)
    clock.shift(4 * MINUTE)
    await seller.post("/api/v1/heartbeat")
    assert await in_progress(seller)


REFRESHING = {
    "a poll of the holder": lambda seller: poll(seller, "agent-1"),
    "an upload request": lambda seller: seller.post("/api/v1/sync/upload-request"),
    "the export": lambda seller: seller.export(),
    "a log of another cycle": lambda seller: seller.post(
        "/api/v1/sync/log", params={"agent_id": "agent-2"}, json={"status": "failed"}
    ),
    "a screenshot": lambda seller: seller.post("/api/v1/sync/debug", json=a_screenshot()),
}


def a_screenshot() -> dict:
    return {"sync_cycle_id": "c1", "screenshot": base64.b64encode(a_png()).decode()}


@pytest.mark.parametrize("activity", REFRESHING.values(), ids=REFRESHING.keys())
async def test_activity_of_the_cycle_keeps_its_lock(a_seller, activity):
    seller = await a_seller()
    await poll(seller, "agent-1")
    clock.shift(4 * MINUTE)
    await activity(seller)
    clock.shift(4 * MINUTE)
    assert (await poll(seller, "agent-2"))["reason"] == "in_progress"


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "activity",
    [lambda seller: seller.get("/api/v1/status"), lambda seller: poll(seller, "agent-2")],
    ids=["status", "a poll of another agent"],
)
async def test_looking_on_does_not_keep_a_lock(a_seller, activity):
    seller = await a_synced_seller(a_seller)
    await ask(seller)
    await poll(seller, "agent-1")
    clock.shift(4 * MINUTE)
    await activity(seller)
    clock.shift(2 * MINUTE)
    assert (await poll(seller, "agent-2"))["reason"] == "manual_request"


@pytest.mark.night
async def test_an_export_that_has_not_changed_keeps_the_lock_too(a_seller):
    seller = await a_synced_seller(a_seller, sync_mode="read_only")
    etag = (await seller.export()).headers["ETag"]
    await ask(seller)
    await poll(seller, "agent-1")
    clock.shift(4 * MINUTE)
    assert (await seller.export(**{"If-None-Match": etag})).status_code == 304
    clock.shift(4 * MINUTE)
    assert (await poll(seller, "agent-2"))["reason"] == "in_progress"


@pytest.mark.night
async def test_the_holders_poll_keeps_its_lock_after_an_upload_too(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller, kind="orders")
    await poll(seller, "agent-1")
    await seller.import_csv(a_csv(a_row()))
    for _ in range(3):
        clock.shift(4 * MINUTE)
        assert await poll(seller, "agent-1") == wait("in_progress")


@pytest.mark.night
async def test_asking_for_the_report_keeps_the_lock(a_seller):
    seller = await a_synced_seller(a_seller)
    upload_id = (await seller.import_csv(a_csv(a_row())))["id"]
    await ask(seller)
    await poll(seller, "agent-1")
    clock.shift(4 * MINUTE)
    await seller.report(upload_id)
    clock.shift(4 * MINUTE)
    assert (await poll(seller, "agent-2"))["reason"] == "in_progress"


async def test_an_accepted_upload_that_is_not_worked_off_keeps_the_lock(a_seller):
    seller = await a_seller()
    await poll(seller)
    await seller.upload(a_csv(a_row()))
    clock.shift(timedelta(days=1))
    assert (await poll(seller))["reason"] == "in_progress"
    assert await in_progress(seller)


# Cycle logs


async def cycles(service, seller, cycle: str) -> list[dict]:
    query = (
        "SELECT status, placeholder, trigger_source, steps, agent_version, platform, duration_ms,"
        " started_at FROM sync_cycle WHERE sync_cycle_id = :cycle"
    )
    return await service.sql(seller.id, query, cycle=cycle)


async def test_everything_of_a_log_is_kept(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    steps = [
        {"name": "export_inventory", "status": "success", "duration_ms": 1200},
        {"name": "fetch_orders", "status": "failed", "duration_ms": 30, "error": "timeout"},
        {"name": "fetch_feedback", "status": "skipped"},
    ]
    body = {
        "status": "partial", "sync_cycle_id": "c1", "steps": steps, "agent_version": "1.2.0",
        "platform": "linux/amd64",
        "duration_ms": 4321, "started_at": "2026-11-20T10:00:00Z", "later_field": True,
    }  # fmt: skip
    assert (await seller.post("/api/v1/sync/log", json=body)).status_code == 201
    [row] = await cycles(service, seller, "c1")
    assert (row["status"], row["agent_version"], row["platform"], row["duration_ms"]) == (
        "partial",
        "1.2.0",
        "linux/amd64",
        4321,
    )
    assert clock.rfc3339(row["started_at"]) == "2026-11-20T10:00:00Z"
    assert [(step["name"], step["status"], step["error"]) for step in row["steps"]] == [
        ("export_inventory", "success", None), ("fetch_orders", "failed", "timeout"),
        ("fetch_feedback", "skipped", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "started_at", [None, "yesterday", "", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
)
async def test_a_missing_or_unreadable_start_is_the_servers_time(a_seller, service, started_at):
    seller = await a_seller()
    before = clock.now()
    await log(seller, "success", sync_cycle_id="c1", started_at=started_at)
    [row] = await cycles(service, seller, "c1")
    assert before <= row["started_at"] <= clock.now()


async def test_the_same_cycle_id_again_updates_the_row(a_seller, service):
    seller = await a_seller()
    await log(seller, "failed", sync_cycle_id="c1", agent_version="1")
    await log(seller, "success", sync_cycle_id="c1", agent_version="2")
    [row] = await cycles(service, seller, "c1")
    assert (row["status"], row["agent_version"]) == ("success", "2")


async def test_a_repeated_log_does_not_end_the_next_cycle(a_seller):
    seller = await a_synced_seller(a_seller)
    await ask(seller)
    await poll(seller)
    await log(seller, "success", sync_cycle_id="first")
    assert await in_progress(seller)


async def test_two_sellers_may_use_the_same_cycle_id(a_seller, service):
    one, two = await a_seller(), await a_seller()
    await log(one, "success", sync_cycle_id="same")
    await log(two, "failed", sync_cycle_id="same")
    assert [row["status"] for row in await cycles(service, one, "same")] == ["success"]
    assert [row["status"] for row in await cycles(service, two, "same")] == ["failed"]


async def test_logs_without_a_cycle_id_are_rows_of_their_own(a_seller, service):
    seller = await a_seller()
    await log(seller, "success")
    await log(seller, "success")
    assert await service.sql(seller.id, "SELECT count(*) FROM sync_cycle") == [{"count": 2}]


async def test_the_key_form_places_the_cycle_and_its_log_fills_it_in(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    key = await seller.put_object(a_csv(a_row()))
    await seller.post("/api/v1/sync", json={"key": key, "sync_cycle_id": "c1"})
    [row] = await cycles(service, seller, "c1")
    assert (row["status"], row["placeholder"], row["trigger_source"]) == (
        "failed",
        True,
        "scheduled",
    )
    await service.run_jobs()
    await log(seller, "success", sync_cycle_id="c1")
    [row] = await cycles(service, seller, "c1")
    assert (row["status"], row["placeholder"], row["trigger_source"]) == (
        "success",
        False,
        "scheduled",
    )


async def test_a_log_that_comes_before_the_upload_keeps_its_row(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    key = await seller.put_object(a_csv(a_row()))
    await log(seller, "success", sync_cycle_id="c1")
    answer = await seller.post("/api/v1/sync", json={"key": key, "sync_cycle_id": "c1"})
    assert answer.status_code == 202
    [row] = await cycles(service, seller, "c1")
    assert (row["status"], row["placeholder"]) == ("success", False)


@pytest.mark.night
@pytest.mark.parametrize("trigger", ["manual", "scheduled"])
async def test_the_trigger_is_kept_on_the_log_and_never_shown(a_seller, service, trigger):
    seller = await a_seller()
    if trigger == "manual":
        await ask(seller)
    shown = [(await seller.get("/api/v1/sync/pending", params={"agent_id": "a"})).text]
    upload = await seller.upload(a_csv(a_row()), **{"X-Sync-Cycle-Id": "c1"})
    await service.run_jobs()
    await log(seller, "success", sync_cycle_id="c1")
    [row] = await cycles(service, seller, "c1")
    assert row["trigger_source"] == trigger
    shown += [upload.text, (await seller.get("/api/v1/status")).text]
    shown += [(await seller.get(f"/api/v1/uploads/{upload.json()['upload_id']}")).text]
    assert not any("trigger" in text for text in shown)


async def test_a_client_cannot_name_the_trigger_itself(a_seller, service):
    seller = await a_seller()
    await poll(seller)
    await log(seller, "success", sync_cycle_id="c1", trigger_source="manual")
    [row] = await cycles(service, seller, "c1")
    assert row["trigger_source"] == "scheduled"


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"status": "fine"},
        {"status": 1},
        {"status": "success", "steps": {}},
        {"status": "success", "steps": [{}]},
        {"status": "success", "steps": [{"name": "x"}]},
        {"status": "success", "steps": [{"name": "x", "status": "partial"}]},
        {"status": "success", "duration_ms": "long"},
        {"status": "success", "duration_ms": -1},
        {"status": "success", "duration_ms": 2**70},
        {"status": "success", "sync_cycle_id": 5},
        {"status": "success", "sync_cycle_id": ""},
        {"status": "success", "sync_cycle_id": "x" * 201},
    ],
    ids=lambda body: json.dumps(body)[:60],
)
async def test_a_log_of_the_wrong_shape_is_invalid_payload_and_changes_nothing(
    a_seller, service, body
):
    seller = await a_seller()
    await poll(seller)
    answer = await seller.post("/api/v1/sync/log", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert await in_progress(seller)
    assert await service.sql(seller.id, "SELECT count(*) FROM sync_cycle") == [{"count": 0}]


@pytest.mark.parametrize("body", [b"{", b"status=success"])
async def test_a_log_that_is_not_json_is_bad_request(a_seller, body):
    seller = await a_seller()
    answer = await seller.post(
        "/api/v1/sync/log", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


@pytest.mark.parametrize("agent", ["x" * 5000, "\u0000", "ü", "' OR 1=1 --", "{seller_id}", "%s"])
async def test_any_agent_id_holds_its_lock(a_seller, agent):
    seller = await a_seller()
    first = await poll(seller, agent)
    assert first["action"] == "sync"
    assert await poll(seller, agent) == first
    assert (await poll(seller, "another"))["action"] == "wait"


async def test_a_request_for_the_whole_history_is_not_ended_by_a_cycle_that_fetched_no_orders(
    a_seller,
):
    seller = await a_seller(planner_opt_in=True)
    steps = [
        "fetch_orders",
        "fetch_order_items",
        "fetch_shipping",
        "fetch_refunds",
        "fetch_feedback",
    ]
    await seller.get("/api/v1/sync/pending")
    await seller.post(
        "/api/v1/sync/log",
        json={
            "status": "success",
            "steps": [{"name": name, "status": "success"} for name in steps],
        },
    )
    await seller.set(full_history_requested=True)
    for status in ("success", "skipped"):
        await seller.post("/api/v1/sync/request", json={"kind": "pricing"})
        assert (await seller.get("/api/v1/sync/pending")).json()["first_sync"] is True
        told = [
            {"name": "export_inventory", "status": status},
            *({"name": name, "status": status} for name in steps if status == "skipped"),
        ]
        await seller.post("/api/v1/sync/log", json={"status": "success", "steps": told})
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    assert (await seller.get("/api/v1/sync/pending")).json()["first_sync"] is True


async def test_a_manual_cycle_of_orders_does_not_take_back_the_schedules_back_off(a_seller):
    seller = await a_seller()
    for _ in range(4):
        assert (await seller.get("/api/v1/sync/pending")).json()["reason"] == "scheduled"
        await seller.post("/api/v1/sync/log", json={"status": "failed", "steps": None})
        clock.shift(timedelta(hours=2))
    assert (await seller.get("/api/v1/sync/pending")).json()["action"] == "sync"
    await seller.post("/api/v1/sync/log", json={"status": "failed"})
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await seller.get("/api/v1/sync/pending")
    await seller.post("/api/v1/sync/log", json={"status": "success"})
    assert (await seller.get("/api/v1/sync/pending")).json()["reason"] == "no_sync_needed"
