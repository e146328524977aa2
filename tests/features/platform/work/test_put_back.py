"""The table in `platform/work/runner.py`, over all streams of work: killed, killed again and again, put
back, failing by itself, cancelled, taken over.

Where something outside is missing, PostgreSQL itself refuses to write, by a trigger that says what
a full disk says.
"""

import asyncio
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta

import psycopg
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

import loggers
from builders import a_csv, a_row
from cardsync.agents.seller_state.state import release_lease, take_lease
from cardsync.imports import drain
from cardsync.operations.processes.worker import STREAMS as TASKS
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.derived.kept_figures import Figure
from cardsync.platform.storage import LocalStore
from cardsync.platform.work import runner
from cardsync.platform.work.setbacks import MAX_AGE, MAX_TIMES
from cardsync.prices.rollback import apply_imported_prices, prepare
from cardsync.prices.runs import reprice
from cardsync.sales.orders import ingest
from rollbacks_builder import ROLLBACKS, a_pushed_run
from world import exported, state_of

ORDER = {
    "order_number": "1A2B-3C",
    "order_date": "7/3/26",
    "status": "Ready to Ship",
    "total_amt": 12.5,
}


@dataclass(frozen=True)
class Stream:
    """How its work begins over HTTP, what it writes, and what is reported of it."""

    runs: runner.Stream
    table: str
    begin: object
    state: object
    waits: str
    done: str
    failed: str = "failed"
    # The job's state after the seller cancels the sync; None: it goes on.
    cancelled: str | None = None


async def _begin_upload(a_seller):
    seller = await a_seller()
    return seller, lambda: seller.upload(a_csv(a_row(1)))


async def _begin_orders(a_seller):
    seller = await a_seller()
    return seller, lambda: seller.send("/orders", [ORDER])


async def _begin_run(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    answer = await seller.post(
        "/api/pricing/rules", json={"name": "D", "state": "published", "adjust_bp": 1000}
    )
    assert answer.status_code == 201, answer.text
    return seller, lambda: seller.post("/api/pricing/reprice")


async def _begin_event(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    [(card, price)] = (await exported(seller)).items()
    row = {"marketplace_id": card, "old_price": "1.00", "new_price": price}
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "file_sha256": "a" * 64,
        "rows": [row],
    }
    return seller, lambda: seller.post(
        "/api/v1/repricing_events", json=body | {"sync_cycle_id": "c1"}
    )


async def _begin_rollback(a_seller):
    seller, run = await a_pushed_run(a_seller)
    return seller, lambda: seller.post(ROLLBACKS, json={"run_id": run})


async def _state_of_upload(seller, answer):
    return (await seller.report(answer["upload_id"]))["state"]


async def _state_of_run(seller, answer):
    return (await seller.get(f"/api/pricing/runs/{answer['run_id']}")).json()["state"]


async def _state_of_event(seller, answer):
    query = "SELECT settled_at, error FROM repricing_event WHERE seller_id = :seller AND id = :id"
    [row] = await seller.service.sql(seller.id, query, seller=seller.id, id=answer["id"])
    return "failed" if row["error"] else "settled" if row["settled_at"] else "open"


async def _state_of_rollback(seller, answer):
    return (await seller.get(f"{ROLLBACKS}/{answer['id']}")).json()["state"]


STREAMS = {
    "inventory": Stream(
        drain.UPLOADS, "card", _begin_upload, _state_of_upload, "processing", "done",
        cancelled="cancelled",
    ),
    "orders": Stream(
        ingest.UPLOADS, "orders", _begin_orders, _state_of_upload, "processing", "done"
    ),
    "reprice": Stream(
        reprice.RUNS, "card", _begin_run, _state_of_run, "running", "completed",
        cancelled="cancelled",
    ),
    "repricing": Stream(
        apply_imported_prices.EVENTS, "card", _begin_event, _state_of_event, "open", "settled"
    ),
    "rollback": Stream(
        prepare.ROLLBACKS, "price_rollback_card", _begin_rollback, _state_of_rollback,
        "requested", "ready",
    ),
}  # fmt: skip


def test_every_stream_of_the_runner_is_in_the_table():
    assert {name: stream.runs.name for name, stream in STREAMS.items()} == {
        name: name
        for name in TASKS
        if name
        not in (
            "screenshots",
            "sales",
            "repairs",
            "deletion",
            # test_erasure.py has this one.
            "left_objects",
            # test_matched_again.py has these.
            "rematched_cards",
            "rematched_collections",
            # test_pictures.py has these.
            "pictures",
            "picture_files",
            # test_collections.py has this one.
            "collections",
            # tests/features/notices has these.
            "notices",
            "mail",
            "webhooks",
            # test_kept_figures.py has these.
            *Figure,
        )
    }


@contextmanager
def refused(owner_url, table, seller_id, state):
    """Nothing of this seller is written to the table: PostgreSQL answers with that SQLSTATE."""
    name = f"refuse_{seller_id}"
    with psycopg.connect(libpq_url(owner_url, role=None), autocommit=True) as owner:
        owner.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'; END $$"
        )
        owner.execute(
            f"CREATE TRIGGER {name} BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW "
            f"WHEN (NEW.seller_id = {seller_id}) EXECUTE FUNCTION {name}()"
        )
        try:
            yield
        finally:
            owner.execute(f"DROP FUNCTION {name} CASCADE")


async def begun(seller, begin):
    """The body of the answer, and what the log says of this seller's work: an event is taken up
    in its request.
    """
    with capture_logs([merge_contextvars]) as logs:
        answer = await begin()
        await seller.service.run_jobs()
    assert answer.status_code in (201, 202), answer.text
    return answer.json(), about_work(seller, logs)


async def swept(seller):
    """Work off what the sweep nudges now, and return what the log says of this seller's work."""
    with capture_logs([merge_contextvars]) as logs:
        await seller.sweep()
        await seller.service.run_jobs()
    return about_work(seller, logs)


def about_work(seller, logs):
    return [
        entry
        for entry in logs
        if entry.get("seller_id") == seller.id and entry["event"].startswith("work_")
    ]


def pauses(logs):
    return [
        (entry["event"], entry["kind"], entry["times"], entry["pause_seconds"]) for entry in logs
    ]


@pytest.fixture(autouse=True)
def _loggers_of_now(monkeypatch):
    loggers.renewed(monkeypatch)


@pytest.fixture(autouse=True)
def _the_clock_stands():
    clock.stop()


@pytest.mark.first(1)
@pytest.mark.day
@pytest.mark.parametrize("name", STREAMS)
async def test_work_that_waits_rests_longer_each_time_and_goes_on(a_seller, owner_url, name):
    stream = STREAMS[name]
    seller, begin = await stream.begin(a_seller)
    with refused(owner_url, stream.table, seller.id, "53100"):
        answer, logs = await begun(seller, begin)
        assert pauses(logs) == [("work_put_back", "no_room", 1, 2)]
        for times, pause in ((2, 4), (3, 8), (4, 16)):
            # The sweep takes up what is older than some seconds.
            clock.shift(timedelta(seconds=max(pause / 2 - 1, 1)))
            assert pauses(await swept(seller)) == []
            clock.shift(timedelta(seconds=6))
            assert pauses(await swept(seller)) == [("work_put_back", "no_room", times, pause)]
        assert await stream.state(seller, answer) == stream.waits
    clock.shift(timedelta(seconds=20))
    assert await swept(seller) == []
    assert await stream.state(seller, answer) == stream.done


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_a_nudge_within_the_pause_changes_nothing(a_seller, owner_url, name):
    stream = STREAMS[name]
    seller, begin = await stream.begin(a_seller)
    with refused(owner_url, stream.table, seller.id, "53100"):
        answer, _ = await begun(seller, begin)
        await TASKS[name].defer_async(seller_id=seller.id)
        await seller.service.run_jobs()
        assert await stream.state(seller, answer) == stream.waits
    [due] = await due_of(seller, name)
    assert due["put_back_times"] == 1


async def due_of(seller, name):
    query = "SELECT * FROM work_due WHERE seller_id = :seller AND stream = :stream"
    return await seller.service.sql(seller.id, query, seller=seller.id, stream=name)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_work_that_was_put_back_for_a_day_is_given_up_and_the_next_goes_on(
    a_seller, owner_url, name
):
    stream = STREAMS[name]
    seller, begin = await stream.begin(a_seller)
    with refused(owner_url, stream.table, seller.id, "53100"):
        answer, _ = await begun(seller, begin)
        await seller.service.sql(
            seller.id,
            "UPDATE work_due SET put_back_times = :times, put_back_since = :since,"
            " rests_until = NULL"
            " WHERE seller_id = :seller AND stream = :stream",
            times=MAX_TIMES, since=clock.now() - MAX_AGE, seller=seller.id, stream=name,
        )  # fmt: skip
        clock.shift(timedelta(seconds=6))
        logs = await swept(seller)
    assert [(entry["event"], entry["kind"]) for entry in logs] == [("work_given_up", "no_room")]
    assert await stream.state(seller, answer) == stream.failed
    clock.shift(timedelta(seconds=6))
    assert await swept(seller) == []
    assert await due_of(seller, name) == []


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_work_that_fails_by_itself_ends_soon(a_seller, owner_url, name):
    stream = STREAMS[name]
    seller, begin = await stream.begin(a_seller)
    with refused(owner_url, stream.table, seller.id, "22003"):
        answer, logs = await begun(seller, begin)
    assert logs[-1]["event"] == "work_given_up"
    assert len(logs) <= 3
    assert await stream.state(seller, answer) == stream.failed


UPLOADS = {"inventory": _begin_upload, "orders": _begin_orders}
CODES = {"inventory": "csv_processing_failed", "orders": "processing_failed"}


async def storage_path(seller, upload_id):
    query = "SELECT storage_key FROM upload WHERE seller_id = :seller AND id = :id"
    [row] = await seller.service.sql(seller.id, query, seller=seller.id, id=upload_id)
    store = seller.service.work.store
    assert isinstance(store, LocalStore)
    return store.path(row["storage_key"])


@pytest.mark.night
@pytest.mark.parametrize("name", UPLOADS)
@pytest.mark.parametrize("what", ["a folder in its place", "nothing"])
async def test_a_file_that_can_never_be_read_is_not_tried_for_ever(a_seller, name, what):
    seller, begin = await UPLOADS[name](a_seller)
    upload_id = (await begin()).json()["upload_id"]
    path = await storage_path(seller, upload_id)
    path.unlink()
    if what != "nothing":
        path.mkdir()
    await swept(seller)
    report = await seller.report(upload_id)
    assert (report["state"], report["error"]["code"]) == ("failed", CODES[name])
    if what == "nothing":
        assert report["error"]["message"] == "the uploaded file is no longer in the object store"
    # The stream goes on behind it.
    again = (await begin()).json()["upload_id"]
    await seller.service.run_jobs()
    assert (await seller.report(again))["state"] == "done"


@pytest.mark.night
async def test_a_believed_file_that_kills_its_worker_each_time_is_not_tried_for_ever(
    a_seller, owner_url
):
    seller, begin = await _begin_upload(a_seller)
    with refused(owner_url, "card", seller.id, "53100"):
        told, _ = await begun(seller, begin)
    # Workers that are killed leave nothing but the count of their starts.
    killed = (
        "UPDATE upload SET attempts = :starts WHERE seller_id = :seller AND verdict IS NOT NULL"
        " RETURNING id"
    )
    assert await seller.service.sql(
        seller.id, killed, seller=seller.id, starts=drain.MAX_STARTS_JUDGED
    )
    clock.shift(timedelta(seconds=10))
    await swept(seller)
    report = await seller.report(told["upload_id"])
    assert (report["state"], report["error"]["code"]) == ("failed", "csv_processing_failed")
    again = (await begin()).json()["upload_id"]
    await seller.service.run_jobs()
    assert (await seller.report(again))["state"] == "done"


@dataclass(frozen=True)
class Accepted:
    """A piece of work that nobody has taken up yet."""

    seller: object
    stream: Stream
    answer: dict

    async def told(self):
        return await self.stream.state(self.seller, self.answer)

    async def turn(self, work=None):
        """One turn of a worker, which does `work` in place of the stream's own."""
        runs = replace(self.stream.runs, work=work) if work is not None else self.stream.runs
        return await runner.work_off_one(runs, self.seller.service.work, self.seller.id)

    async def killed(self):
        with pytest.raises(asyncio.CancelledError):
            await self.turn(_is_killed)

    async def all_turns(self):
        async with asyncio.timeout(60):
            while await self.turn():
                pass

    async def is_let_go(self):
        state = await state_of(self.seller)
        return state["lease_token"] is None and state["cancel_requested_at"] is None


async def _is_killed(*_):
    raise asyncio.CancelledError


async def _finds_nobody(*_):
    raise ConnectionRefusedError


@asynccontextmanager
async def leased(seller):
    """Somebody else writes prices."""
    async with seller.service.database.tenant(seller.id) as session:
        lease = await take_lease(session, seller.id, "preview", clock.now(), 30)
    yield
    async with seller.service.database.tenant(seller.id) as session:
        await release_lease(session, lease)


async def accepted(a_seller, name):
    stream = STREAMS[name]
    seller, begin = await stream.begin(a_seller)
    # A small event is taken up in its request where nobody else writes prices.
    async with leased(seller) if name == "repricing" else nullcontext():
        answer = await begin()
    assert answer.status_code in (201, 202), answer.text
    return Accepted(seller, stream, answer.json())


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_work_whose_worker_was_killed_is_done_by_another(a_seller, name):
    work = await accepted(a_seller, name)
    await work.killed()
    assert await work.told() == work.stream.waits
    if name != "orders":
        assert await work.turn() is False, "the lease lasts on"
    clock.shift(timedelta(minutes=1))
    await work.all_turns()
    assert await work.told() == work.stream.done
    assert await work.is_let_go()


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_work_that_kills_every_worker_is_given_up_and_the_next_goes_on(a_seller, name):
    work = await accepted(a_seller, name)
    for _ in range(runner.MAX_STARTS):
        await work.killed()
        clock.shift(timedelta(minutes=1))
    assert await work.told() == work.stream.waits
    with capture_logs([merge_contextvars]) as logs:
        assert await work.turn() is True
    [log] = about_work(work.seller, logs)
    assert (log["event"], log["kind"], log["times"]) == ("work_given_up", "starts", 20)
    assert await work.told() == work.stream.failed
    await work.all_turns()
    assert await work.is_let_go()


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_a_start_that_was_put_back_is_not_counted(a_seller, name):
    work = await accepted(a_seller, name)
    for _ in range(runner.MAX_STARTS + 1):
        assert await work.turn(_finds_nobody) is False
        clock.shift(timedelta(minutes=10))
    await work.all_turns()
    assert await work.told() == work.stream.done


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_a_cancel_of_the_sync_ends_what_is_of_a_sync(a_seller, name):
    work = await accepted(a_seller, name)
    expected = work.stream.cancelled or work.stream.done

    async def is_cancelled_first(*taken):
        answer = await work.seller.post("/api/v1/sync/cancel")
        assert (answer.status_code == 202) == (work.stream.cancelled is not None), answer.text
        await work.stream.runs.work(*taken)

    assert await work.turn(is_cancelled_first) is True
    assert await work.told() == expected
    await work.all_turns()
    assert await work.told() == expected
    assert await work.is_let_go()


@pytest.mark.first(1)
@pytest.mark.parametrize("name", STREAMS)
async def test_a_worker_that_was_overtaken_writes_nothing_more(a_seller, name):
    work = await accepted(a_seller, name)

    async def is_overtaken(*taken):
        clock.shift(timedelta(minutes=1))
        await work.all_turns()
        assert await work.told() == work.stream.done
        await work.stream.runs.work(*taken)

    with capture_logs([merge_contextvars]) as logs:
        assert await work.turn(is_overtaken) is True
    lost = [entry for entry in logs if entry["event"] == "lease_lost"]
    assert [(entry["stream"], entry["seller_id"]) for entry in lost] == [(name, work.seller.id)]
    assert await work.told() == work.stream.done
    assert await work.is_let_go()


@pytest.mark.night
@pytest.mark.parametrize("name", STREAMS)
async def test_what_cannot_even_be_put_back_is_in_the_log_and_begun_again(
    a_seller, owner_url, name
):
    work = await accepted(a_seller, name)
    with (
        refused(owner_url, "work_due", work.seller.id, "53100"),
        capture_logs([merge_contextvars]) as logs,
    ):
        assert await work.turn(_finds_nobody) is False
    assert [entry["event"] for entry in about_work(work.seller, logs)] == [
        "work_put_back",
        "work_not_put_back",
    ]
    assert await work.told() == work.stream.waits
    clock.shift(timedelta(minutes=1))
    await work.all_turns()
    assert await work.told() == work.stream.done
