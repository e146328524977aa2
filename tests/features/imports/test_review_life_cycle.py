"""Reviews while other things happen: nothing old comes back, nothing wrong is exported
meanwhile.
"""

import asyncio
import errno
from dataclasses import replace

import pytest

from builders import a_csv, a_row, read_csv
from cardsync.agents.seller_state import state as sync_state
from cardsync.imports import accept_inventory, drain, finish, importer
from cardsync.platform import clock
from cardsync.platform.storage import LocalStore
from cardsync.platform.work.setbacks import LONGEST_PAUSE
from cardsync.platform.work.streams import oldest_open

FULL = [a_row(n) for n in range(1, 41)]
SHORT = [a_row(1, quantity=3)]


async def an_upload_in_review(seller):
    await seller.import_csv(a_csv(*FULL))
    report = await seller.import_csv(a_csv(*SHORT))
    assert (report["state"], report["review"]) == ("awaiting_review", ["short_inventory:magic"])
    return report["id"]


async def test_a_short_upload_waits_and_confirm_makes_the_rest_gone(a_seller):
    seller = await a_seller()
    upload = await an_upload_in_review(seller)
    assert not any(card["gone"] for card in await seller.cards())
    assert (await seller.get("/api/v1/status")).json()["phase"] == "awaiting_review"
    assert (await seller.export()).headers["X-Price-Export-Empty-Reason"] == "awaiting_review"
    assert (await seller.post(f"/api/v1/uploads/{upload}/confirm")).status_code == 200
    await seller.service.run_jobs()
    report = await seller.report(upload)
    assert (report["state"], report["gone"]) == ("done", 39)
    assert sum(card["gone"] for card in await seller.cards()) == 39


async def test_a_discarded_upload_keeps_its_rows_and_cannot_be_confirmed(a_seller):
    seller = await a_seller()
    upload = await an_upload_in_review(seller)
    assert (await seller.post(f"/api/v1/uploads/{upload}/discard")).json()["state"] == "discarded"
    again = await seller.post(f"/api/v1/uploads/{upload}/confirm")
    assert (again.status_code, again.json()["code"]) == (409, "not_awaiting_review")
    assert [card["quantity"] for card in await seller.cards()][:2] == [3, 1]
    assert not any(card["gone"] for card in await seller.cards())


@pytest.mark.day
async def test_a_newer_believable_upload_supersedes_a_review(a_seller):
    seller = await a_seller()
    upload = await an_upload_in_review(seller)
    await seller.import_csv(a_csv(*FULL))
    assert (await seller.report(upload))["state"] == "discarded"
    assert (await seller.get("/api/v1/status")).json()["phase"] == "push_queued"


async def test_a_confirm_while_a_newer_upload_runs_does_not_bring_the_old_file_back(
    a_seller, service
):
    seller = await a_seller()
    first = await an_upload_in_review(seller)
    newer = (await seller.upload(a_csv(*FULL))).json()["upload_id"]
    # The newer one is under way: its worker holds the lease and has begun.
    async with service.database.tenant(seller.id) as session:
        lease = await sync_state.take_lease(session, seller.id, "sync", clock.now(), 30)
        begun = await oldest_open(session, seller.id, "inventory")
        begun.state, begun.begun_at = "processing", clock.now()
    assert begun.id == newer
    assert (await seller.post(f"/api/v1/uploads/{first}/confirm")).status_code == 200
    await importer.import_upload(service.work, lease, begun)
    await seller.service.run_jobs()
    assert (await seller.report(first))["state"] == "discarded"
    assert not any(card["gone"] for card in await seller.cards())
    assert [
        row["uploads_open"]
        for row in await service.sql(seller.id, "SELECT uploads_open FROM sync_state")
    ] == [0]


async def test_a_review_never_leaves_an_old_target_beside_a_new_price(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*FULL))
    upload = (await seller.import_csv(a_csv(a_row(1, price="50.00", market="60.00"))))["id"]
    await seller.post(f"/api/v1/uploads/{upload}/discard")
    assert "1" not in [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)]


async def test_a_confirmed_upload_is_held_back_from_the_export_until_it_ran(a_seller):
    seller = await a_seller()
    upload = await an_upload_in_review(seller)
    await seller.post(f"/api/v1/uploads/{upload}/confirm")
    assert (await seller.export()).headers["X-Price-Export-Empty-Reason"] == "awaiting_review"
    await seller.service.run_jobs()
    assert "X-Price-Export-Empty-Reason" not in (await seller.export()).headers


async def test_two_confirms_at_once_run_the_upload_once(a_seller):
    seller = await a_seller()
    upload = await an_upload_in_review(seller)
    answers = await asyncio.gather(
        *(seller.post(f"/api/v1/uploads/{upload}/confirm") for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]


async def test_large_moves_stop_a_full_account_and_not_a_read_only_one(a_seller):
    rows = [a_row(n, price="1.00", market="3.00" if n <= 15 else "1.00") for n in range(1, 61)]
    full, careful = await a_seller(), await a_seller(sync_mode="read_only")
    stopped = await full.import_csv(a_csv(*rows))
    assert (stopped["state"], stopped["review"], stopped["changed"]) == (
        "awaiting_review",
        ["large_moves"],
        0,
    )
    assert (await careful.import_csv(a_csv(*rows)))["changed"] == 15


class AwayStore(LocalStore):
    """A store whose address nobody answers at."""

    async def read(self, key):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody answers")


async def test_an_outage_of_the_store_costs_time_and_never_the_upload(a_seller, service):
    seller = await a_seller()
    upload = (await seller.upload(a_csv(*FULL))).json()["upload_id"]
    store = service.work.store
    away = replace(service.work, store=AwayStore(store.root, store.secret))
    for _ in range(5):
        assert await drain.work_off_one(away, seller.id) is False
        # Put back, it rests.
        assert await drain.work_off_one(service.work, seller.id) is False
        clock.shift(LONGEST_PAUSE)
    assert await drain.work_off_one(service.work, seller.id) is True
    assert (await seller.report(upload))["state"] == "done"


async def test_a_late_log_of_a_finished_cycle_leaves_the_next_cycle_alone(a_seller):
    seller = await a_seller()
    await seller.get("/api/v1/sync/pending?agent_id=a")
    await seller.import_csv(a_csv(*FULL), **{"X-Sync-Cycle-Id": "cycle-1"})
    await seller.post("/api/v1/sync/request")
    assert (await seller.get("/api/v1/sync/pending?agent_id=b")).json()["action"] == "sync"
    await seller.post("/api/v1/sync/log", json={"status": "success", "sync_cycle_id": "cycle-1"})
    assert (await seller.get("/api/v1/sync/pending?agent_id=b")).json()["action"] == "sync"
    assert (await seller.get("/api/v1/sync/pending?agent_id=c")).json()["reason"] == "in_progress"


async def test_what_fails_after_the_last_commit_leaves_the_upload_done(a_seller, service):
    seller = await a_seller()
    upload = (await seller.import_csv(a_csv(*FULL)))["id"]
    async with service.database.tenant(seller.id) as session:
        lease = await sync_state.take_lease(session, seller.id, "sync", clock.now(), 30)
        ended = await accept_inventory.upload_of(session, seller.id, upload)
    await finish.fail(service.work, lease, ended, "csv_processing_failed", "too late")
    assert (await seller.report(upload))["state"] == "done"
    open_now = await service.sql(seller.id, "SELECT uploads_open, lease_token FROM sync_state")
    assert open_now == [{"uploads_open": 0, "lease_token": None}]
