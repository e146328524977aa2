"""GET /status: what the dashboard shows of a sync, phase by phase."""

from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.agents.seller_state import state
from cardsync.platform import clock


async def status(seller) -> dict:
    answer = await seller.get("/api/v1/status")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_status_of_a_new_account(a_seller):
    assert await status(await a_seller()) == {
        "sync_in_progress": False,
        "last_sync_at": None,
        "agent_last_seen_at": None,
        "sync_mode": "full",
        "phase": "idle",
        "phase_progress": None,
    }


@pytest.mark.parametrize(
    ("plan", "stored", "shown"),
    [("founder", "read_only", "read_only"), ("free", "full", "read_only")],
)
async def test_sync_mode_is_the_one_in_force(a_seller, plan, stored, shown):
    assert (await status(await a_seller(plan=plan, sync_mode=stored)))["sync_mode"] == shown


async def test_a_cycle_goes_from_requested_over_collecting_and_queued_to_idle(a_seller, service):
    seller = await a_seller()
    phases = []

    async def look() -> None:
        now = await status(seller)
        phases.append((now["phase"], now["sync_in_progress"]))

    await seller.post("/api/v1/sync/request")
    await look()
    await seller.get("/api/v1/sync/pending")
    await look()
    await seller.upload(a_csv(a_row()))
    await look()
    await service.run_jobs()
    await look()
    assert phases == [
        ("requested", False),
        ("collecting", True),
        ("queued", True),
        ("push_queued", False),
    ]


async def test_the_end_of_a_completed_cycle_is_the_last_sync(a_seller):
    seller = await a_seller()
    before = clock.rfc3339(clock.now())
    await seller.import_csv(a_csv(a_row()))
    assert before <= (await status(seller))["last_sync_at"] <= clock.rfc3339(clock.now())


@pytest.mark.parametrize(
    ("phase", "done", "total"), [("importing", 120, 500), ("repricing", 500, 500)]
)
async def test_while_a_worker_writes_its_phase_and_progress_show(
    a_seller, service, phase, done, total
):
    seller = await a_seller()
    now = clock.now()
    await seller.upload(a_csv(a_row()))
    async with service.database.tenant(seller.id) as session:
        lease = await state.take_lease(session, seller.id, "sync", now, 30)
        await state.hold_lease(session, lease, now, phase=phase, done=done, total=total)
    shown = await status(seller)
    assert (shown["phase"], shown["phase_progress"]) == (phase, {"done": done, "total": total})
    assert shown["sync_in_progress"]


async def test_a_worker_that_died_no_longer_shows(a_seller, service):
    seller = await a_seller()
    await seller.upload(a_csv(a_row()))
    async with service.database.tenant(seller.id) as session:
        lease = await state.take_lease(session, seller.id, "sync", clock.now(), 30)
        await state.hold_lease(session, lease, clock.now(), phase="importing", done=1, total=2)
    clock.shift(timedelta(seconds=31))
    shown = await status(seller)
    assert (shown["phase"], shown["phase_progress"]) == ("queued", None)


@pytest.mark.parametrize("holder", ["rollback", "preview"])
async def test_who_holds_the_prices_without_a_sync_shows_no_import(a_seller, service, holder):
    seller = await a_seller()
    async with service.database.tenant(seller.id) as session:
        await state.take_lease(session, seller.id, holder, clock.now(), 30)
    assert (await status(seller))["phase"] == "idle"


async def test_an_orders_cycle_into_which_an_upload_fell_collects_on(a_seller, service):
    seller = await a_seller()
    await seller.post("/api/v1/sync/request", json={"kind": "orders"})
    await seller.get("/api/v1/sync/pending")
    await seller.import_csv(a_csv(a_row()))
    shown = await status(seller)
    assert (shown["phase"], shown["sync_in_progress"]) == ("collecting", True)


async def test_a_surprisingly_short_inventory_awaits_review(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 31))))
    report = await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 6))))
    shown = await status(seller)
    assert (report["state"], shown["phase"], shown["sync_in_progress"]) == (
        "awaiting_review",
        "awaiting_review",
        False,
    )


@pytest.mark.parametrize("word", ["confirm", "discard"])
async def test_the_sellers_word_ends_the_review(a_seller, service, word):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 31))))
    report = await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 6))))
    assert (await seller.post(f"/api/v1/uploads/{report['id']}/{word}")).status_code == 200
    await service.run_jobs()
    await seller.applied()
    assert (await status(seller))["phase"] == "idle"


@pytest.mark.day
async def test_entering_review_is_no_completed_sync_and_confirming_completes_it(a_seller, service):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 31))))
    first = (await status(seller))["last_sync_at"]
    report = await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 6))))
    assert (await status(seller))["last_sync_at"] == first
    await seller.post(f"/api/v1/uploads/{report['id']}/confirm")
    await service.run_jobs()
    assert (await status(seller))["last_sync_at"] > first


async def test_a_stale_lock_no_longer_counts_as_in_progress(a_seller):
    seller = await a_seller()
    await seller.get("/api/v1/sync/pending")
    assert (await status(seller))["sync_in_progress"]
    clock.shift(timedelta(minutes=6))
    shown = await status(seller)
    assert (shown["sync_in_progress"], shown["phase"]) == (False, "idle")
