"""POST /sync/cancel: at once, or at the worker's next slab boundary, whichever that is and
whatever becomes of the worker.
"""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from builders import a_csv, a_row, a_shop, cancel, poll
from cardsync.agents.seller_state.exported import fingerprint
from cardsync.agents.seller_state.state import release_lease, take_lease
from cardsync.imports import finish
from cardsync.imports.accept_inventory import upload_of
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from stopped_workers import killed, stopped
from world import state_of, status

pytestmark = pytest.mark.day

# Six slabs: as many for each of the two writers, so each is full.
ROWS, SLAB, ABSENT = 300, 50, 30
SLABS = ROWS // SLAB
# Where a worker is stopped: every day at the ends and between, in the soak at every boundary.
BOUNDARIES = [
    boundary if boundary in (0, 1, SLABS) else pytest.param(boundary, marks=pytest.mark.night)
    for boundary in range(SLABS + 1)
]
BEFORE = [a_row(n, market="1.20", price="1.00") for n in range(1, ROWS + ABSENT + 1)]
AFTER = [a_row(n, market="1.50", price="1.10") for n in range(1, ROWS + 1)]
# The sessions that wait for a lock; our role can't see the lock itself.
CANCELLED, CANCELLING = (200, {"status": "cancelled"}), (202, {"status": "cancelling"})
NOTHING = (409, "no_sync_in_progress")


async def cycles(seller):
    return await seller.service.sql(
        seller.id,
        "SELECT sync_cycle_id, status, trigger_source, steps, agent_version FROM sync_cycle"
        " WHERE seller_id = :id ORDER BY id",
        id=seller.id,
    )


async def send(seller, rows=AFTER, **headers):
    answer = await seller.upload(a_csv(*rows), **headers)
    assert answer.status_code == 202, answer.text
    return answer.json()["upload_id"]


async def a_synced_shop(a_seller, **options):
    seller = await a_shop(a_seller, *BEFORE, **options)
    await seller.applied()
    return seller


def stopped_at(seller, boundary):
    """A worker that has committed so many slabs of AFTER and can't commit another.

    At the last one all rows are written; the tombstones and the end of the upload are still to
    come.
    """
    firsts = [boundary * SLAB + 1, (boundary + 1) * SLAB + 1] if boundary < SLABS else [ROWS + 1]
    return stopped(seller, work_off_one(seller.service.work, seller.id), firsts, boundary * SLAB)


async def is_cancelled(seller, upload_id, boundary, last_sync_at):
    """All that a cancelled run may leave: so many slabs, and nothing else."""
    state, report, cards = (
        await state_of(seller),
        await seller.report(upload_id),
        await seller.cards(),
    )
    names = (
        "lock_kind",
        "lease_holder",
        "lease_token",
        "lease_expires_at",
        "cancel_requested_at",
        "work_phase",
    )
    assert [state[name] for name in names] == [None] * len(names)
    assert (state["uploads_open"], state["last_sync_at"]) == (0, last_sync_at)
    assert (report["state"], report["error"]) == ("cancelled", None)
    moved = [str(card["market"]) == "1.5000" for card in cards]
    assert moved == [n < boundary * SLAB for n in range(ROWS + ABSENT)]
    assert not any(card["gone"] for card in cards)
    kept = await seller.service.sql(
        seller.id, "SELECT 1 FROM price_observation WHERE seller_id = :id", id=seller.id
    )
    assert len(kept) == boundary * SLAB
    runs = await seller.service.sql(
        seller.id, "SELECT state FROM price_run WHERE seller_id = :id AND upload_id = :upload",
        id=seller.id, upload=upload_id
    )  # fmt: skip
    assert [run["state"] for run in runs] in ([], ["cancelled"])
    assert [cycle["status"] for cycle in await cycles(seller)] == ["cancelled"]
    async with seller.service.database.tenant(seller.id) as session:
        assert state["export_fingerprint"] == await fingerprint(session, seller.id)
    shown = await status(seller)
    assert (shown["phase"], shown["sync_in_progress"], shown["phase_progress"]) == (
        "idle",
        False,
        None,
    )


async def next_one_is_whole(seller):
    """A cancelled run is no obstacle: the same file again ends as if nothing had been."""
    report = await seller.import_csv(a_csv(*AFTER))
    assert (report["state"], report["gone"]) == ("done", ABSENT)
    assert [str(card["market"]) for card in await seller.cards() if not card["gone"]] == [
        "1.5000"
    ] * ROWS
    assert (await state_of(seller))["export_fingerprint"] is not None


async def test_nothing_to_cancel(a_seller):
    seller = await a_seller()
    assert await cancel(seller) == NOTHING
    await seller.post("/api/v1/sync/request")
    assert await cancel(seller) == NOTHING
    assert (await poll(seller))["reason"] == "manual_request"


async def test_a_cycle_that_collects_is_cancelled_at_once(a_seller):
    seller = await a_seller()
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await poll(seller)
    assert await cancel(seller) == CANCELLED
    shown = await status(seller)
    assert (shown["sync_in_progress"], shown["last_sync_at"]) == (False, None)
    assert await cancel(seller) == NOTHING
    assert [(c["status"], c["trigger_source"]) for c in await cycles(seller)] == [
        ("cancelled", "manual")
    ]


@pytest.mark.night
async def test_the_request_is_consumed_and_one_that_waits_behind_it_stays(a_seller):
    seller = await a_synced_shop(a_seller)
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await poll(seller)
    await cancel(seller)
    assert (await poll(seller))["reason"] == "no_sync_needed"
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await poll(seller)
    await seller.post("/api/v1/sync/request", json={"kind": "refunds"})
    await cancel(seller)
    assert await poll(seller) == {
        "action": "sync", "reason": "manual_request", "sync_requested": True, "first_sync": True,
        "kind": "refunds",
    }  # fmt: skip


@pytest.mark.night
async def test_uploads_that_wait_are_cancelled_at_once(a_seller):
    seller = await a_synced_shop(a_seller)
    last = (await state_of(seller))["last_sync_at"]
    uploads = [await send(seller) for _ in range(2)]
    assert await cancel(seller) == CANCELLED
    await seller.service.run_jobs()
    for upload in uploads:
        await is_cancelled(seller, upload, 0, last)
    assert (
        await seller.service.sql(
            seller.id,
            "SELECT 1 FROM work_due WHERE seller_id = :id AND stream NOT IN ('network', 'network_cells', 'recommendations', 'price_file')",
            id=seller.id,
        )
        == []
    )
    await next_one_is_whole(seller)


@pytest.mark.first(1)
@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_a_worker_stops_at_its_next_slab_boundary(a_seller, boundary):
    seller = await a_synced_shop(a_seller)
    last = (await state_of(seller))["last_sync_at"]
    upload = await send(seller)
    behind = await send(seller)
    async with stopped_at(seller, boundary) as worker:
        for _ in range(3):
            assert await cancel(seller) == CANCELLING
        shown = await status(seller)
        assert (shown["phase"], shown["sync_in_progress"]) == ("cancelling", True)
        assert (await poll(seller, "another"))["reason"] == "in_progress"
    await is_cancelled(seller, upload, boundary, last)
    assert (await seller.report(behind))["state"] == "cancelled"
    assert await cancel(seller) == NOTHING
    assert worker.result() is True
    await next_one_is_whole(seller)


@pytest.mark.night
@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_a_worker_that_is_left_alone_goes_to_its_end(a_seller, boundary):
    """The other outcome: nobody cancels, and afterwards there is nothing left to cancel."""
    seller = await a_synced_shop(a_seller)
    upload = await send(seller)
    async with stopped_at(seller, boundary):
        pass
    assert await cancel(seller) == NOTHING
    report = await seller.report(upload)
    assert (report["state"], report["applied"], report["gone"]) == ("done", ROWS, ABSENT)
    await seller.fingerprint_is_right()
    assert await cycles(seller) == []


@pytest.mark.first(1)
@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_what_a_dead_worker_had_begun_is_cancelled_at_once(a_seller, boundary):
    seller = await a_synced_shop(a_seller)
    last = (await state_of(seller))["last_sync_at"]
    upload = await send(seller)
    async with stopped_at(seller, boundary) as worker:
        await killed(worker)
        clock.shift(timedelta(seconds=31))
        assert await cancel(seller) == CANCELLED
    await is_cancelled(seller, upload, boundary, last)
    await seller.service.run_jobs()
    await is_cancelled(seller, upload, boundary, last)
    await next_one_is_whole(seller)


async def by_poll(seller):
    assert (await poll(seller))["reason"] == "no_sync_needed"


async def by_heartbeat(seller):
    assert (await seller.post("/api/v1/heartbeat")).status_code == 200


async def by_cancel(seller):
    assert await cancel(seller) == CANCELLED


async def by_worker(seller):
    await seller.service.run_jobs()


ENDS = (by_poll, by_heartbeat, by_cancel, by_worker)


@pytest.mark.first(1)
@pytest.mark.parametrize("ending", ENDS)
@pytest.mark.parametrize("boundary", [0, 2, SLABS])
async def test_a_worker_that_dies_after_the_cancel_is_not_resumed(a_seller, boundary, ending):
    seller = await a_synced_shop(a_seller)
    last = (await state_of(seller))["last_sync_at"]
    upload = await send(seller)
    async with stopped_at(seller, boundary) as worker:
        assert await cancel(seller) == CANCELLING
        await killed(worker)
        # Nobody takes over before the lease has run out, and then nobody goes on.
        assert await work_off_one(seller.service.work, seller.id) is False
        assert await cancel(seller) == CANCELLING
    clock.shift(timedelta(seconds=31))
    shown = await status(seller)
    assert (shown["phase"], shown["sync_in_progress"]) == ("idle", False)
    await ending(seller)
    await is_cancelled(seller, upload, boundary, last)
    await by_worker(seller)
    await is_cancelled(seller, upload, boundary, last)
    await next_one_is_whole(seller)


@pytest.mark.first(1)
@pytest.mark.parametrize("boundary", BOUNDARIES)
async def test_a_worker_that_was_thought_dead_writes_no_more(a_seller, boundary):
    seller = await a_synced_shop(a_seller)
    last = (await state_of(seller))["last_sync_at"]
    upload = await send(seller)
    async with stopped_at(seller, boundary):
        assert await cancel(seller) == CANCELLING
        clock.shift(timedelta(seconds=31))
        await by_poll(seller)
        await is_cancelled(seller, upload, boundary, last)
    await is_cancelled(seller, upload, boundary, last)
    await next_one_is_whole(seller)


@pytest.mark.night
async def test_an_upload_after_a_cancel_that_nobody_ended_is_not_taken_along(a_seller):
    seller = await a_synced_shop(a_seller)
    upload = await send(seller)
    async with stopped_at(seller, 1) as worker:
        await cancel(seller)
        await killed(worker)
    clock.shift(timedelta(seconds=31))
    later = await send(seller)
    await seller.service.run_jobs()
    states = [(await seller.report(number))["state"] for number in (upload, later)]
    assert states == ["cancelled", "done"]


@pytest.mark.night
async def test_an_upload_while_the_worker_stops_goes_with_the_cycle(a_seller):
    seller = await a_synced_shop(a_seller)
    upload = await send(seller)
    async with stopped_at(seller, 1):
        await cancel(seller)
        later = await send(seller)
    assert [(await seller.report(number))["state"] for number in (upload, later)] == [
        "cancelled"
    ] * 2
    await next_one_is_whole(seller)


@pytest.mark.night
async def test_between_two_uploads_the_first_stays_done(a_seller):
    seller = await a_synced_shop(a_seller)
    first, second = await send(seller), await send(seller, BEFORE)
    assert await work_off_one(seller.service.work, seller.id) is True
    done_at = (await state_of(seller))["last_sync_at"]
    assert await cancel(seller) == CANCELLED
    await seller.service.run_jobs()
    assert [(await seller.report(number))["state"] for number in (first, second)] == [
        "done",
        "cancelled",
    ]
    assert (await state_of(seller))["last_sync_at"] == done_at
    await seller.fingerprint_is_right()


async def test_a_cancel_before_the_first_slab_is_seen_at_the_next_step(a_seller, service):
    """The worker waits for the stored cards: it stops before it makes products of the file's
    cards.
    """
    seller = await a_seller()
    upload = await send(seller, [a_row(n, set="Cancelled Before") for n in range(1, 20)])
    async with service.database.shared() as blocker:
        await blocker.execute(text("LOCK TABLE card IN ACCESS EXCLUSIVE MODE"))
        worker = asyncio.create_task(work_off_one(service.work, seller.id))
        async with asyncio.timeout(60):
            while (await status(seller))["phase"] != "importing":
                assert not worker.done()
        assert await cancel(seller) == CANCELLING
    assert await worker is True
    assert (await seller.report(upload))["state"] == "cancelled"
    assert (await state_of(seller))["lock_kind"] is None
    assert (
        await service.sql(seller.id, "SELECT 1 FROM product WHERE set_name = 'Cancelled Before'")
        == []
    )


async def test_an_unreadable_file_of_a_cancelled_cycle_fails_and_the_rest_is_cancelled(
    a_seller, service
):
    seller = await a_seller()
    upload, behind = await send(seller, [a_row(1, line="No Such Line")]), await send(seller)
    async with service.database.tenant(seller.id) as session:
        lease = await take_lease(session, seller.id, "sync", clock.now(), 30)
        await session.execute(
            text("UPDATE upload SET state = 'processing' WHERE seller_id = :seller AND id = :id"),
            {"seller": seller.id, "id": upload},
        )
        failing = await upload_of(session, seller.id, upload)
    assert await cancel(seller) == CANCELLING
    await finish.fail(service.work, lease, failing, "csv_processing_failed", "unreadable")
    assert [(await seller.report(number))["state"] for number in (upload, behind)] == [
        "failed",
        "cancelled",
    ]
    assert await cancel(seller) == NOTHING


async def test_a_worker_that_lost_its_database_leaves_the_cancel_to_the_next(a_seller, service):
    """It lets the lease go and the upload open, and still nobody goes on with it."""
    seller = await a_seller()
    upload = await send(seller)
    async with service.database.tenant(seller.id) as session:
        lease = await take_lease(session, seller.id, "sync", clock.now(), 30)
    assert await cancel(seller) == CANCELLING
    async with service.database.tenant(seller.id) as session:
        await release_lease(session, lease)
    await service.run_jobs()
    assert (await seller.report(upload))["state"] == "cancelled"
    assert await seller.cards() == []


async def test_a_rollback_keeps_its_lease(a_seller, service):
    seller = await a_seller()
    upload = await send(seller)
    async with service.database.tenant(seller.id) as session:
        lease = await take_lease(session, seller.id, "rollback", clock.now(), 30)
    assert await cancel(seller) == CANCELLED
    state = await state_of(seller)
    assert (str(state["lease_token"]), state["lock_kind"]) == (lease.token, None)
    assert (await seller.report(upload))["state"] == "cancelled"


@pytest.mark.night
async def test_a_confirmed_upload_is_cancelled_with_the_cycle_and_holds_the_export_no_longer(
    a_seller,
):
    seller = await a_synced_shop(a_seller)
    report = await seller.import_csv(a_csv(*BEFORE[:20]))
    assert report["state"] == "awaiting_review"
    await poll(seller)
    assert (await poll(seller))["action"] == "wait"
    await seller.post("/api/v1/sync/request")
    assert (await poll(seller))["action"] == "sync"
    await seller.post(f"/api/v1/uploads/{report['id']}/confirm")
    assert await cancel(seller) == CANCELLED
    assert (await seller.report(report["id"]))["state"] == "cancelled"
    assert (await state_of(seller))["review_upload_id"] is None
    assert not any(card["gone"] for card in await seller.cards())


@pytest.mark.night
async def test_a_review_that_waits_is_no_part_of_the_cycle(a_seller):
    seller = await a_synced_shop(a_seller)
    report = await seller.import_csv(a_csv(*BEFORE[:20]))
    await seller.post("/api/v1/sync/request")
    await poll(seller)
    assert await cancel(seller) == CANCELLED
    assert (await seller.report(report["id"]))["state"] == "awaiting_review"


@pytest.mark.parametrize("word", ["success", "partial", "failed"])
@pytest.mark.parametrize("first", ["log", "cancel"])
async def test_the_clients_log_and_the_cancel_merge_in_either_order(a_seller, first, word):
    seller = await a_synced_shop(a_seller)
    await send(seller, **{"X-Sync-Cycle-Id": "cycle-1"})
    log = {"status": word, "sync_cycle_id": "cycle-1", "agent_version": "1.2.3", "steps": []}
    if first == "log":
        await seller.post("/api/v1/sync/log", json=log)
    assert await cancel(seller) == CANCELLED
    if first == "cancel":
        assert [cycle["agent_version"] for cycle in await cycles(seller)] == [None]
        await seller.post("/api/v1/sync/log", json=log)
    assert [
        (c["sync_cycle_id"], c["status"], c["agent_version"]) for c in await cycles(seller)
    ] == [("cycle-1", "cancelled", "1.2.3")]


@pytest.mark.night
async def test_the_log_of_a_cancelled_cycle_leaves_the_next_one_alone(a_seller):
    seller = await a_synced_shop(a_seller)
    await send(seller, **{"X-Sync-Cycle-Id": "cycle-1"})
    await cancel(seller)
    await seller.post("/api/v1/sync/request")
    assert (await poll(seller))["action"] == "sync"
    await seller.post("/api/v1/sync/log", json={"status": "failed", "sync_cycle_id": "cycle-1"})
    assert (await status(seller))["sync_in_progress"]


@pytest.mark.night
async def test_the_log_of_a_cycle_while_its_worker_stops_does_not_free_the_lock(a_seller):
    seller = await a_synced_shop(a_seller)
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await poll(seller)
    await send(seller)
    async with stopped_at(seller, 1):
        await cancel(seller)
        await seller.post(
            "/api/v1/sync/log", json={"status": "success", "sync_cycle_id": "orders-1"}
        )
        assert (await poll(seller))["reason"] == "in_progress"
        assert await cancel(seller) == CANCELLING
    assert (await status(seller))["phase"] == "idle"


@pytest.mark.night
async def test_the_holder_of_a_cycle_that_is_being_cancelled_is_not_told_to_run_it_again(a_seller):
    """The worker writes what an earlier cycle uploaded; this one has uploaded nothing yet."""
    seller = await a_synced_shop(a_seller)
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await poll(seller)
    await send(seller)
    await seller.post("/api/v1/sync/log", json={"status": "success"})
    await seller.post("/api/v1/sync/request", json={"kind": "refunds"})
    async with stopped_at(seller, 1):
        assert (await poll(seller))["kind"] == "refunds"
        assert await cancel(seller) == CANCELLING
        assert (await poll(seller))["reason"] == "in_progress"


async def test_a_cancelled_scheduled_cycle_counts_once_against_the_schedule(a_seller):
    seller = await a_seller()
    assert (await poll(seller))["reason"] == "scheduled"
    await send(seller)
    await send(seller)
    await cancel(seller)
    assert (await state_of(seller))["scheduled_failures"] == 1
    assert (await poll(seller))["reason"] == "no_sync_needed"
    clock.shift(timedelta(minutes=5, seconds=1))
    assert (await poll(seller))["reason"] == "scheduled"
    await cancel(seller)
    assert (await state_of(seller))["scheduled_failures"] == 2


async def test_a_file_that_fails_before_its_cycle_is_cancelled_does_not_count_twice(a_seller):
    seller = await a_seller()
    await poll(seller)
    await seller.send_key(await seller.put_object(b"\x1f\x8bdamaged"))
    await send(seller)
    await work_off_one(seller.service.work, seller.id)
    assert (await state_of(seller))["scheduled_failures"] == 1
    await cancel(seller)
    assert (await state_of(seller))["scheduled_failures"] == 1


async def test_a_manual_one_does_not_count(a_seller):
    seller = await a_seller()
    await seller.post("/api/v1/sync/request")
    await poll(seller)
    await cancel(seller)
    assert (await state_of(seller))["scheduled_failures"] == 0


async def test_two_cancels_at_once_cancel_once(a_seller):
    seller = await a_seller()
    for _ in range(5):
        await seller.post("/api/v1/sync/request")
        await poll(seller)
        answers = await asyncio.gather(*(cancel(seller) for _ in range(3)))
        assert sorted(code for code, _ in answers) == [200, 409, 409]
    assert len(await cycles(seller)) == 5


@pytest.mark.night
async def test_cancel_and_the_worker_at_once_end_one_way(a_seller):
    """Whenever the cancel comes: refused and done, or answered and cancelled; and the cycle after
    it is never touched.
    """
    seller = await a_seller()
    for turn in range(12):
        upload = await send(seller, [a_row(n, market=f"1.{turn:02}") for n in range(1, 121)])
        worker = asyncio.create_task(work_off_one(seller.service.work, seller.id))
        await asyncio.sleep(turn * 0.012)
        code, _ = await cancel(seller)
        await worker
        state = (await seller.report(upload))["state"]
        assert state == ("done" if code == 409 else "cancelled"), (turn, code)
        now = await state_of(seller)
        assert (
            now["lock_kind"],
            now["lease_token"],
            now["cancel_requested_at"],
            now["uploads_open"],
        ) == (None,) * 3 + (0,)
        await seller.fingerprint_is_right()
    await seller.service.run_jobs()
    upload = await send(seller)
    await seller.service.run_jobs()
    assert (await seller.report(upload))["state"] == "done"


async def test_cancel_and_an_upload_at_once_end_one_way(a_seller):
    seller = await a_seller()
    for _ in range(6):
        first = await send(seller, [a_row(1)])
        (code, _), second = await asyncio.gather(cancel(seller), send(seller, [a_row(2)]))
        await seller.service.run_jobs()
        assert code == 200
        assert (await seller.report(first))["state"] == "cancelled"
        assert (await seller.report(second))["state"] in ("cancelled", "done")
        now = await state_of(seller)
        assert (now["uploads_open"], now["lock_kind"]) == (0, None)


async def test_another_sellers_cycle_stays(a_seller):
    seller, other = await a_seller(), await a_seller()
    await poll(seller)
    await poll(other)
    assert await cancel(seller) == CANCELLED
    assert (await status(other))["sync_in_progress"]


async def test_it_is_told_in_the_activity(a_seller):
    seller = await a_seller()
    await send(seller)
    await cancel(seller)
    told = await seller.service.sql(
        seller.id,
        "SELECT action, split_part(actor, ' ', 1) AS actor FROM activity WHERE seller_id = :id"
        " AND action <> 'upload.accepted' ORDER BY id",
        id=seller.id,
    )
    assert [tuple(row.values()) for row in told] == [
        ("sync.cancel_requested", "key"),
        ("sync.cancelled", "sync"),
    ]


async def a_cycle_whose_upload_is_priced(a_seller, **beat):
    """Its agent has said with its heartbeat whether it drives a browser."""
    seller = await a_synced_shop(a_seller)
    assert (await seller.post("/api/v1/heartbeat", json=beat)).status_code == 200
    await seller.service.app.state.last_seen.flush()
    upload_id = await send(seller, **{"X-Sync-Cycle-Id": "cycle-1"})
    await seller.service.run_jobs()
    assert (await status(seller))["sync_in_progress"] is False
    return seller, upload_id


async def logged(seller, outcome):
    log = {"status": outcome, "sync_cycle_id": "cycle-1", "steps": []}
    assert (await seller.post("/api/v1/sync/log", json=log)).status_code == 201


async def test_a_cycle_whose_agent_brings_prices_is_cancelled_and_its_upload_says_so(a_seller):
    seller, upload_id = await a_cycle_whose_upload_is_priced(a_seller, your_turn=None)
    assert "cycle_cancelled" not in await seller.report(upload_id)
    assert await cancel(seller) == CANCELLED
    assert (await seller.report(upload_id))["cycle_cancelled"] is True
    assert await cancel(seller) == NOTHING
    # The agent's log fills in its steps, and the cycle stays cancelled.
    await logged(seller, "partial")
    assert [one["status"] for one in await cycles(seller)][-1] == "cancelled"
    assert await cancel(seller) == NOTHING


async def test_the_next_upload_by_hand_does_not_say_that_it_was_cancelled(a_seller):
    seller = await a_seller()
    await send(seller)
    assert await cancel(seller) == CANCELLED
    report = await seller.import_csv(a_csv(*BEFORE))
    assert report["state"] == "done"
    assert "cycle_cancelled" not in report


async def test_a_cycle_that_its_agent_has_logged_is_over(a_seller):
    seller, _ = await a_cycle_whose_upload_is_priced(a_seller, your_turn=None)
    await logged(seller, "success")
    assert await cancel(seller) == NOTHING


async def test_a_person_who_imports_the_file_is_not_stopped(a_seller):
    seller, _ = await a_cycle_whose_upload_is_priced(a_seller)
    assert await cancel(seller) == NOTHING
