"""A run over the stored cards among others: cancelled at any slab, its lease lost or kept alive,
two at once, killed and taken up again.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.agents.seller_state.state import release_lease, take_lease
from cardsync.imports import drain
from cardsync.platform import clock
from cardsync.prices.decisions import ended
from cardsync.prices.engine import engine
from cardsync.prices.receipts import parquet_file
from cardsync.prices.runs.reprice import work_off_one
from stopped_workers import killed, stopped
from world import state_of, tasks

pytestmark = pytest.mark.day

# Six slabs: as many for each of the two writers, so each is full.
ROWS, SLAB = 300, 50
SLABS = ROWS // SLAB
RULES = "/api/pricing/rules"


async def a_shop(a_seller, **options):
    """Cards that ask for 1.20, and a new rule that will have them ask for 1.32."""
    seller = await a_seller(**options)
    await seller.import_csv(
        a_csv(*(a_row(n, market="1.20", price="1.20") for n in range(1, ROWS + 1)))
    )
    answer = await seller.post(
        RULES, json={"name": "Dearer", "state": "published", "adjust_bp": 1000}
    )
    assert answer.status_code == 201, answer.text
    return seller


async def requested(seller):
    answer = await seller.post("/api/pricing/reprice")
    assert answer.status_code == 202, answer.text
    return answer.json()["run_id"]


async def run_of(seller, run_id):
    return (await seller.get(f"/api/pricing/runs/{run_id}")).json()


async def changes(seller, run_id):
    return await seller.service.sql(
        seller.id,
        "SELECT * FROM price_change WHERE seller_id = :id AND run_id = :run",
        id=seller.id,
        run=run_id,
    )


async def dearer(seller):
    return [str(card["target_price"]) == "1.3200" for card in await seller.cards()]


def stopped_at(seller, boundary):
    """A worker that has committed so many slabs and can't commit another."""
    firsts = [boundary * SLAB + 1, (boundary + 1) * SLAB + 1]
    return stopped(seller, work_off_one(seller.service.work, seller.id), firsts, boundary * SLAB)


async def is_free(seller):
    state = await state_of(seller)
    names = ("lease_holder", "lease_token", "lease_expires_at", "cancel_requested_at", "work_phase")
    assert [state[name] for name in names] == [None] * len(names)
    assert state["export_fingerprint"] is not None
    await seller.fingerprint_is_right()


async def is_whole(seller, run_id):
    """As if nothing had happened on the way."""
    run = await run_of(seller, run_id)
    assert (run["state"], run["cards"], run["changed"]) == ("completed", ROWS, ROWS)
    assert all(await dearer(seller))
    found = await changes(seller, run_id)
    assert len(found) == ROWS
    assert {(str(row["old_price"]), str(row["new_price"])) for row in found} == {
        ("1.2000", "1.3200")
    }
    assert [task["kind"] for task in await tasks(seller)] == ["apply_price_updates"]
    await is_free(seller)


@pytest.mark.first(1)
@pytest.mark.parametrize("boundary", range(SLABS))
async def test_cancelled_at_a_slab_boundary(a_seller, boundary):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, boundary):
        assert (await seller.get("/api/v1/status")).json()["phase"] == "repricing"
        for _ in range(2):
            answer = await seller.post("/api/v1/sync/cancel")
            assert (answer.status_code, answer.json()) == (202, {"status": "cancelling"})
        assert (await seller.get("/api/v1/status")).json()["phase"] == "cancelling"
    run = await run_of(seller, run_id)
    assert (run["state"], run["changed"]) == ("cancelled", boundary * SLAB)
    assert await dearer(seller) == [n < boundary * SLAB for n in range(ROWS)]
    assert (len(await changes(seller, run_id)), await tasks(seller)) == (boundary * SLAB, [])
    await is_free(seller)
    # No sync was under way, so none is shown.
    assert not await seller.service.sql(
        seller.id, "SELECT 1 FROM sync_cycle WHERE seller_id = :id", id=seller.id
    )
    assert (await seller.post("/api/v1/sync/cancel")).status_code == 409
    again = await requested(seller)
    assert again != run_id
    await seller.service.run_jobs()
    assert ((await run_of(seller, again))["changed"], all(await dearer(seller))) == (
        ROWS - boundary * SLAB,
        True,
    )


@pytest.mark.night
async def test_a_worker_that_died_after_the_cancel_is_no_obstacle_and_nobody_goes_on_with_its_run(
    a_seller,
):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, 2) as worker:
        assert (await seller.post("/api/v1/sync/cancel")).status_code == 202
        await killed(worker)
    clock.shift(timedelta(minutes=1))
    await work_off_one(seller.service.work, seller.id)
    assert (await run_of(seller, run_id))["state"] == "cancelled"
    assert sum(await dearer(seller)) == 2 * SLAB
    await is_free(seller)


@pytest.mark.night
@pytest.mark.parametrize("lost", [1, SLABS - 1], ids=["the first", "the last but one"])
async def test_a_slab_that_the_database_lost_is_written_again(a_seller, lost):
    """Slabs don't wait for the disk: after a crash the last of them may be gone, and the worker's
    next connection as good as ever.
    """
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, lost):
        first, last = (lost - 1) * SLAB + 1, lost * SLAB
        cards = f"marketplace_id BETWEEN {first} AND {last}"
        for statement in (
            f"UPDATE card SET target_price = 1.20 WHERE seller_id = :id AND {cards}",
            (
                "DELETE FROM price_change"
                f" WHERE seller_id = :id AND run_id = {run_id}"
                f" AND card_id IN (SELECT id FROM card WHERE {cards})"
            ),
            f"UPDATE sync_state SET work_done = {first - 1} WHERE seller_id = :id",
        ):
            await seller.service.sql(seller.id, statement, id=seller.id)
    assert (await run_of(seller, run_id))["state"] == "running"
    clock.shift(timedelta(minutes=1))
    await work_off_one(seller.service.work, seller.id)
    await is_whole(seller, run_id)


@pytest.mark.night
async def test_an_upload_that_comes_after_the_cancel_is_not_cancelled_with_the_run(a_seller):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, 1):
        assert (await seller.post("/api/v1/sync/cancel")).status_code == 202
        clock.shift(timedelta(seconds=1))
        sent = await seller.upload(a_csv(a_row(1, market="2.00", price="1.20")))
    await seller.service.run_jobs()
    assert (await run_of(seller, run_id))["state"] == "cancelled"
    assert (await seller.report(sent.json()["upload_id"]))["state"] in ("done", "awaiting_review")


@pytest.mark.night
async def test_a_sync_that_collects_beside_a_run_is_cancelled_with_it(a_seller):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, 1):
        await seller.post("/api/v1/sync/request")
        assert (await seller.get("/api/v1/sync/pending?agent_id=a")).json()["action"] == "sync"
        assert (await seller.post("/api/v1/sync/cancel")).status_code == 202
    assert (await run_of(seller, run_id))["state"] == "cancelled"
    status = (await seller.get("/api/v1/status")).json()
    assert (status["sync_in_progress"], status["phase"]) == (False, "idle")
    cycles = await seller.service.sql(
        seller.id, "SELECT status FROM sync_cycle WHERE seller_id = :id", id=seller.id
    )
    assert [cycle["status"] for cycle in cycles] == ["cancelled"]
    await is_free(seller)


@pytest.mark.first(1)
@pytest.mark.parametrize("boundary", range(SLABS))
async def test_killed_at_a_slab_boundary_it_is_taken_up_again(a_seller, boundary):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, boundary) as worker:
        await killed(worker)
    assert await work_off_one(seller.service.work, seller.id) is False  # its lease lasts on
    clock.shift(timedelta(minutes=1))
    await work_off_one(seller.service.work, seller.id)
    await is_whole(seller, run_id)


@pytest.mark.night
async def test_killed_after_the_last_slab_the_agent_still_hears_of_it(a_seller, monkeypatch):
    """All is written, and only the run's last transaction is missing."""
    seller = await a_shop(a_seller)
    run_id = await requested(seller)

    async def dies(*arguments):
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(ended, "push_prices", dies)
        with pytest.raises(asyncio.CancelledError):
            await work_off_one(seller.service.work, seller.id)
    assert (all(await dearer(seller)), (await run_of(seller, run_id))["state"]) == (True, "running")
    clock.shift(timedelta(minutes=1))
    await work_off_one(seller.service.work, seller.id)
    await is_whole(seller, run_id)


async def test_whoever_lost_the_lease_writes_nothing_more(a_seller):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    async with stopped_at(seller, 2) as worker:
        clock.shift(timedelta(minutes=1))
        async with seller.service.database.tenant(seller.id) as session:
            other = await take_lease(session, seller.id, "rollback", clock.now(), 30)
        assert other is not None
    assert await worker is True
    assert ((await run_of(seller, run_id))["state"], sum(await dearer(seller))) == (
        "running",
        2 * SLAB,
    )
    assert (await state_of(seller))["lease_holder"] == "rollback"
    async with seller.service.database.tenant(seller.id) as session:
        await release_lease(session, other)
    await work_off_one(seller.service.work, seller.id)
    await is_whole(seller, run_id)


@pytest.mark.night
async def test_a_step_that_is_longer_than_the_lease_does_not_lose_it(a_seller, monkeypatch):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    work = seller.service.work
    short = type(work)(
        work.settings.model_copy(update={"lease_seconds": 0.3}), work.database, work.store
    )
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    priced, renewals = engine.price, []

    def slow(*arguments):
        loop.call_soon_threadsafe(begun.set)
        expires = asyncio.run_coroutine_threadsafe(state_of(seller), loop).result()[
            "lease_expires_at"
        ]
        while len(renewals) < 6:
            now = asyncio.run_coroutine_threadsafe(state_of(seller), loop).result()[
                "lease_expires_at"
            ]
            if now != expires:
                expires = now
                renewals.append(now)
        return priced(*arguments)

    monkeypatch.setattr(engine, "price", slow)
    worker = asyncio.create_task(work_off_one(short, seller.id))
    await begun.wait()
    while len(renewals) < 5:
        assert (await seller.post("/api/pricing/reprice")).status_code in (202, 409)
        assert not worker.done()
    await worker
    await is_whole(seller, run_id)


async def test_two_workers_of_one_run_do_it_once(a_seller):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    await asyncio.gather(*(work_off_one(seller.service.work, seller.id) for _ in range(4)))
    await is_whole(seller, run_id)
    told = await seller.service.sql(
        seller.id,
        "SELECT 1 FROM activity WHERE seller_id = :id AND action = 'pricing.repriced'",
        id=seller.id,
    )
    assert len(told) == 1


@pytest.mark.night
async def test_a_run_that_keeps_failing_is_given_up_and_the_next_one_is_not(a_seller, monkeypatch):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    priced = engine.price

    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "price", broken)
    await seller.service.run_jobs()
    assert (await run_of(seller, run_id))["state"] == "failed"
    await is_free(seller)
    monkeypatch.setattr(engine, "price", priced)
    again = await requested(seller)
    await seller.service.run_jobs()
    await is_whole(seller, again)


async def test_two_publishers_at_once_both_publish(a_seller):
    seller = await a_shop(a_seller)
    made = [
        (await seller.post(RULES, json={"name": f"Draft {n}", "priority": n})).json()["id"]
        for n in (1, 2)
    ]
    answers = await asyncio.gather(
        *(seller.post(f"{RULES}/{made[n % 2]}/publish") for n in range(8))
    )
    assert [(answer.status_code, answer.json()["state"]) for answer in answers] == [
        (200, "published")
    ] * 8
    answers = await asyncio.gather(*(seller.post("/api/pricing/reprice") for _ in range(4)))
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    await seller.service.run_jobs()
    governing = (await seller.get("/api/v1/pricing/explain/1")).json()["governing_rule"]
    assert governing["id"] == made[0]


async def test_two_drafts_of_one_priority_published_at_once_are_never_both(a_seller):
    seller = await a_shop(a_seller)
    answers = await asyncio.gather(
        *(
            seller.post(RULES, json={"name": f"Rule {n}", "priority": 7, "state": "published"})
            for n in range(4)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [201, 422, 422, 422]


@pytest.mark.night
async def test_a_run_beside_an_import_waits_and_then_prices_what_came(a_seller):
    seller = await a_shop(a_seller)
    rows = [a_row(n, market="2.40", price="1.20") for n in range(1, ROWS + 1)]
    await seller.set(sync_mode="read_only")  # without a breaker in between
    run_id = await requested(seller)
    sent = await seller.upload(a_csv(*rows))
    work = seller.service.work
    await asyncio.gather(work_off_one(work, seller.id), drain.work_off_one(work, seller.id))
    # Whoever found the lease taken is nudged again by the sweep.
    async with asyncio.timeout(60):
        while (await run_of(seller, run_id))["state"] == "running" or (
            await seller.report(sent.json()["upload_id"])
        )["state"] != "done":
            await work_off_one(seller.service.work, seller.id)
            await drain.work_off_one(seller.service.work, seller.id)
    assert (await seller.report(sent.json()["upload_id"]))["state"] == "done"
    assert {str(card["target_price"]) for card in await seller.cards()} == {"2.6400"}
    await is_free(seller)


async def test_rules_with_queries_make_their_task_when_they_have_priced(a_seller):
    seller = await a_seller()
    await seller.post(
        RULES, json={"name": "All", "state": "published", "query": "market>=1", "adjust_bp": 1000}
    )
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="2.00")))
    [task] = await tasks(seller)
    assert task["kind"] == "apply_price_updates"


@pytest.mark.night
async def test_receipts_of_a_run_with_several_lives_are_whole(a_seller):
    seller = await a_seller()
    await seller.post(
        RULES, json={"name": "All", "state": "published", "query": "market>=1", "adjust_bp": 1000}
    )
    sent = await seller.upload(
        a_csv(*(a_row(n, market="1.20", price="1.20") for n in range(1, ROWS + 1)))
    )
    assert sent.status_code == 202
    await drain.work_off_one(seller.service.work, seller.id)
    async with stopped_at(seller, 3) as worker:
        await killed(worker)
    clock.shift(timedelta(minutes=1))
    await work_off_one(seller.service.work, seller.id)
    runs = await seller.service.sql(
        seller.id,
        "SELECT * FROM price_run WHERE seller_id = :id AND upload_id IS NULL",
        id=seller.id,
    )
    assert [run["state"] for run in runs] == ["completed"]
    data = await seller.service.work.store.read(runs[0]["summary"]["receipts"])
    assert (parquet_file.unpack(data)[0].height, parquet_file.replay(data)) == (ROWS, 0)
    assert len(await changes(seller, runs[0]["id"])) == ROWS
    told = (await seller.get("/api/v1/pricing/explain/7")).json()["historical_breakdown"]
    assert (told["run_id"], told["final_price"], told["reflects_current_price"]) == (
        runs[0]["id"],
        "1.32",
        True,
    )


async def a_large_move(seller, priority=2, adjust_bp=9000):
    """A run that stops for the seller's word."""
    rule = {
        "name": f"Far {adjust_bp}",
        "state": "published",
        "priority": priority,
        "adjust_bp": adjust_bp,
    }
    answer = await seller.post(RULES, json=rule)
    assert answer.status_code == 201, answer.text
    run_id = await requested(seller)
    await seller.service.run_jobs()
    assert (await run_of(seller, run_id))["state"] == "awaiting_review"
    return run_id


@pytest.mark.night
async def test_a_waiting_run_is_answered_once_by_many_at_once(a_seller):
    seller = await a_shop(a_seller)
    run_id = await a_large_move(seller)
    words = ["confirm", "discard"] * 3
    answers = await asyncio.gather(
        *(seller.post(f"/api/pricing/runs/{run_id}/{word}") for word in words)
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    await seller.service.run_jobs()
    said = words[[answer.status_code for answer in answers].index(200)]
    assert (await run_of(seller, run_id))["state"] == {
        "confirm": "completed",
        "discard": "discarded",
    }[said]
    await is_free(seller)


@pytest.mark.night
async def test_a_newer_run_overtakes_one_that_waits(a_seller):
    seller = await a_shop(a_seller)
    older = await a_large_move(seller)
    newer = await a_large_move(seller, 1, 8000)
    assert (await run_of(seller, older))["state"] == "discarded"
    assert (await seller.post(f"/api/pricing/runs/{older}/confirm")).json()[
        "code"
    ] == "not_awaiting_review"
    assert (await seller.post(f"/api/pricing/runs/{newer}/confirm")).status_code == 200
    await seller.service.run_jobs()
    assert {str(card["target_price"]) for card in await seller.cards()} == {"2.1600"}


async def test_a_run_that_an_import_has_overtaken_is_not_confirmed_any_more(a_seller):
    seller = await a_shop(a_seller)
    run_id = await a_large_move(seller)
    await seller.service.sql(
        seller.id,
        "DELETE FROM pricing_rule WHERE name LIKE 'Far%' AND seller_id = :id",
        id=seller.id,
    )
    await seller.import_csv(
        a_csv(*(a_row(n, market="1.25", price="1.20") for n in range(1, ROWS + 1)))
    )
    assert (await seller.post(f"/api/pricing/runs/{run_id}/confirm")).json()[
        "code"
    ] == "not_awaiting_review"
    assert (await seller.post(f"/api/pricing/runs/{run_id}/discard")).status_code == 200


@pytest.mark.night
async def test_a_run_prices_for_the_moment_when_it_is_taken_up_not_when_it_was_asked_for(a_seller):
    """A sale that ended while the run waited is over; its next life after a kill prices for the
    same moment as the first.
    """
    seller = await a_shop(a_seller)
    times = {
        "starts_at": clock.now() - timedelta(days=1),
        "ends_at": clock.now() + timedelta(hours=1),
    }
    sale = {"name": "Sale", "adjust_bp": -1000} | {
        name: clock.rfc3339(at) for name, at in times.items()
    }
    assert (await seller.post("/api/pricing/sales", json=sale)).status_code == 201
    run_id = await requested(seller)
    clock.shift(timedelta(hours=2))
    async with stopped_at(seller, 2) as worker:
        begun = (await run_of(seller, run_id))["started_at"]
        await killed(worker)
    clock.shift(timedelta(minutes=1))
    await work_off_one(seller.service.work, seller.id)
    assert (await run_of(seller, run_id))["started_at"] == begun
    await is_whole(seller, run_id)


@pytest.mark.night
async def test_a_run_that_waited_for_an_import_is_not_overtaken_by_it(a_seller):
    seller = await a_shop(a_seller)
    run_id = await requested(seller)
    await seller.upload(a_csv(*(a_row(n, market="1.20", price="1.20") for n in range(1, ROWS + 1))))
    await drain.work_off_one(seller.service.work, seller.id)
    far = {"name": "Far", "state": "published", "priority": 2, "adjust_bp": 9000}
    assert (await seller.post(RULES, json=far)).status_code == 201
    await seller.service.run_jobs()
    assert (await run_of(seller, run_id))["state"] == "awaiting_review"
    assert (await seller.export()).headers["X-Price-Export-Empty-Reason"] == "awaiting_review"
    assert (await seller.post(f"/api/pricing/runs/{run_id}/confirm")).status_code == 200
    await seller.service.run_jobs()
    assert {str(card["target_price"]) for card in await seller.cards()} == {"2.2800"}


async def test_an_upload_is_done_when_the_run_that_follows_it_has_priced_its_cards(a_seller):
    """Its agent fetches the prices as soon as it hears so."""
    seller = await a_seller()
    await seller.post(
        RULES, json={"name": "All", "state": "published", "query": "market>=1", "adjust_bp": 1000}
    )
    sent = await seller.upload(a_csv(a_row(1, market="2.00", price="2.00")))
    upload_id = sent.json()["upload_id"]
    await drain.work_off_one(seller.service.work, seller.id)
    report = await seller.report(upload_id)
    assert (report["state"], report["finished_at"]) == ("processing", None)
    await work_off_one(seller.service.work, seller.id)
    report = await seller.report(upload_id)
    assert (report["state"], report["finished_at"] is None) == ("done", False)
    assert b'"2.2000"' in (await seller.export()).content
