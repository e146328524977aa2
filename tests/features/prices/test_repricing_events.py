"""Agents' reports of imported prices: each is recorded once, current prices move, tasks are done,
rollbacks end.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.agents.agentwork.tasks import enqueue_task
from cardsync.platform import clock
from rollbacks_builder import a_pushed_run as pushed
from rollbacks_builder import a_rule, ask, newest_run, read, ready, rows, tasks
from world import exported, targets

pytestmark = pytest.mark.day

EVENTS = "/api/v1/repricing_events"
FAILURE = f"{EVENTS}/failure"
SHA = "a" * 64
FAILED = {
    "step": "import_prices",
    "error": {"code": "upload_rejected", "message": "the page said no"},
}


def report(**fields):
    body = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "sync_cycle_id": "c1",
        "file_sha256": SHA,
    } | fields
    return {name: value for name, value in body.items() if value is not ...}


async def record(seller, path=EVENTS, **fields):
    answer = await seller.post(path, json=report(**fields))
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"] == "recorded"
    await seller.fingerprint_is_right()
    return answer.json()["id"]


async def prices(seller):
    return {card["marketplace_id"]: str(card["price"]) for card in await seller.cards()}


async def imported_rows(seller):
    """The agent's report after it imported the file that it gets now, and that file's SHA-256."""
    answer = await seller.export()
    now = await prices(seller)
    moved = await exported(seller)
    told = [
        {"marketplace_id": id, "old_price": now[id], "new_price": price}
        for id, price in moved.items()
    ]
    return {
        "rows": told,
        "row_count": len(told),
        "file_sha256": hashlib.sha256(answer.content).hexdigest(),
    }


async def a_served_rollback(a_seller, **options):
    seller, run = await pushed(a_seller, **options)
    rollback = await ready(seller, run_id=run)
    file = (await seller.export()).content
    return seller, rollback["id"], hashlib.sha256(file).hexdigest(), run


async def pushes(seller):
    query = (
        "SELECT status FROM agent_task WHERE seller_id = :id AND kind = 'apply_price_updates'"
        " ORDER BY id"
    )
    return [row["status"] for row in await seller.service.sql(seller.id, query, id=seller.id)]


@pytest.mark.night
@pytest.mark.parametrize(("days", "target"), [(2, "1.9800"), (4, None)])
async def test_an_import_makes_no_market_price_younger(a_seller, days, target):
    """The market was seen by the upload: eight days later its price is too old to be used."""
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    clock.shift(timedelta(days=4))
    await record(seller, **await imported_rows(seller))
    clock.shift(timedelta(days=days))
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()
    assert await targets(seller) == {1: target}


async def test_an_import_moves_current_prices_and_empties_the_export(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00", 2: "1.00"}))
    await record(seller, **await imported_rows(seller))
    assert await prices(seller) == {1: "1.9800", 2: "1.9800"}
    answer = await seller.export()
    assert answer.headers["X-Price-Export-Empty-Reason"] == "no_updates"


@pytest.mark.night
async def test_the_price_before_the_import_stays_in_the_history(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    clock.shift(timedelta(minutes=5))
    await record(seller, rows=[{"marketplace_id": 1, "old_price": "1.00", "new_price": "1.98"}])
    [card] = await seller.cards()
    told = (await seller.get(f"/api/cards/{card['id']}")).json()
    assert (told["price"], [entry["price"] for entry in told["history"]]) == (
        "1.98",
        ["1.98", "1.00"],
    )
    clock.shift(timedelta(minutes=5))
    await seller.import_csv(rows({1: "1.98"}, market="4.00"))
    history = (await seller.get(f"/api/cards/{card['id']}")).json()["history"]
    assert [(entry["price"], entry["market_price"]) for entry in history] == [
        ("1.98", "4.00"),
        ("1.98", "2.00"),
        ("1.00", "2.00"),
    ]


@pytest.mark.night
async def test_a_price_seen_after_the_import_stays(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    imported_at = clock.rfc3339(clock.now())
    clock.shift(timedelta(minutes=5))
    await seller.import_csv(rows({1: "1.50"}))
    await record(
        seller,
        imported_at=imported_at,
        rows=[{"marketplace_id": 1, "old_price": "1.00", "new_price": "1.98"}],
    )
    assert await prices(seller) == {1: "1.5000"}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("behind", "old", "moved"),
    [
        (timedelta(minutes=4), "1.00", True),
        (timedelta(minutes=4), "1.10", False),
        (timedelta(minutes=4), None, False),
        (timedelta(minutes=6), "1.00", False),
        (timedelta(days=400), "1.00", False),
    ],
)
async def test_an_import_before_the_upload_moves_a_price_only_if_a_clock_may_be_wrong(
    a_seller, behind, old, moved
):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    at = clock.rfc3339(clock.now() - behind)
    row = {"marketplace_id": 1, "old_price": old, "new_price": "1.98"}
    await record(seller, imported_at=at, rows=[row])
    assert await prices(seller) == {1: "1.9800" if moved else "1.0000"}


@pytest.mark.night
async def test_a_clock_that_is_behind_moves_the_prices_of_a_file_that_is_known(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    late = clock.rfc3339(clock.now() - timedelta(hours=1))
    file = await imported_rows(seller)
    await record(seller, imported_at=late, **file)
    assert await prices(seller) == {1: "1.9800"}


@pytest.mark.night
async def test_an_old_file_told_of_after_a_newer_upload_changes_nothing(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    file = await imported_rows(seller)
    late = clock.rfc3339(clock.now())
    clock.shift(timedelta(minutes=10))
    await seller.import_csv(rows({1: "1.00"}))
    await record(seller, imported_at=late, **file)
    assert await prices(seller) == {1: "1.0000"}


@pytest.mark.first(1)
@pytest.mark.parametrize("path", [EVENTS, FAILURE])
async def test_an_import_of_the_future_is_refused_and_changes_nothing(a_seller, path):
    seller = await a_seller()
    await seller.import_csv(rows({1: "5.25"}))
    row = {"marketplace_id": 1, "old_price": "1.00", "new_price": "77.00"}
    told = {"rows": [row]} if path == EVENTS else FAILED
    for ahead in ("2099-01-01T00:00:00Z", clock.rfc3339(clock.now() + timedelta(minutes=6))):
        answer = await seller.post(path, json=report(imported_at=ahead, **told))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
        assert answer.json()["error"].startswith("imported_at: is in the future")
    assert await prices(seller) == {1: "5.2500"}
    query = "SELECT count(*) FROM repricing_event WHERE seller_id = :id"
    assert await seller.service.sql(seller.id, query, id=seller.id) == [{"count": 0}]


@pytest.mark.night
async def test_a_clock_that_is_a_little_ahead_counts_as_now(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    ahead = clock.rfc3339(clock.now() + timedelta(minutes=4))
    row = {"marketplace_id": 1, "old_price": "1.00", "new_price": "1.98"}
    await record(seller, imported_at=ahead, rows=[row])
    assert await prices(seller) == {1: "1.9800"}
    clock.shift(timedelta(minutes=1))
    await seller.import_csv(rows({1: "1.50"}))
    assert await prices(seller) == {1: "1.5000"}


async def test_rows_of_other_sellers_and_unknown_cards_are_nobodys(a_seller):
    seller, other = await a_seller(), await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    await other.import_csv(rows({1: "1.00", 2: "1.00"}))
    await record(
        seller,
        rows=[{"marketplace_id": n, "old_price": "1.00", "new_price": "5.00"} for n in (1, 2, 3)],
    )
    assert (await prices(seller), await prices(other)) == (
        {1: "5.0000"},
        {1: "1.0000", 2: "1.0000"},
    )


async def test_told_again_it_is_the_same_event(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    move = [{"marketplace_id": 1, "old_price": "1.00", "new_price": "1.98"}]
    answers = await asyncio.gather(*(seller.post(EVENTS, json=report(rows=move)) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    first = answers[0].json()["id"]
    await seller.service.run_jobs()
    assert await prices(seller) == {1: "1.9800"}
    others = [
        {"sync_cycle_id": "c2"},
        {"file_sha256": "b" * 64},
        {"file_sha256": ...},
        {"sync_cycle_id": ...},
    ]
    assert len({first, *[await record(seller, **other) for other in others]}) == 5
    assert (
        await record(seller, imported_at=clock.rfc3339(clock.now()), file_sha256=SHA.upper())
        == first
    )


async def test_the_apply_task_is_done(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()
    async with seller.service.database.tenant(seller.id) as session:
        await enqueue_task(session, seller.id, "apply_price_updates", {}, clock.now())
    await record(seller, row_count=0)
    assert set(await pushes(seller)) == {"completed"}
    assert not (await seller.post("/api/v1/heartbeat")).json()["has_pending_tasks"]


async def a_pushed_price(a_seller, **headers):
    """A seller whose import left a price push, and an hour before it: the time of a late clock."""
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}), **headers)
    assert await pushes(seller) == ["pending"]
    return seller, clock.rfc3339(clock.now() - timedelta(hours=1))


async def test_a_clock_that_runs_behind_does_not_keep_the_apply_task_open_if_the_file_is_known(
    a_seller,
):
    seller, late = await a_pushed_price(a_seller)
    fields = await imported_rows(seller)
    await record(seller, imported_at=late, sync_cycle_id=..., **fields)
    assert await pushes(seller) == ["completed"]
    assert not (await seller.post("/api/v1/heartbeat")).json()["has_pending_tasks"]


@pytest.mark.first(1)
@pytest.mark.parametrize("queried", [False, True])
async def test_nor_if_the_cycle_is_known_whose_prices_they_are(a_seller, queried):
    seller = await a_seller()
    if queried:
        await a_rule(seller, query="game:magic")
    await seller.import_csv(rows({1: "1.00"}), **{"X-Sync-Cycle-Id": "the cycle"})
    await seller.service.run_jobs()
    assert await pushes(seller) == ["pending"]
    late = clock.rfc3339(clock.now() - timedelta(hours=1))
    await record(seller, imported_at=late, sync_cycle_id="the cycle", file_sha256=...)
    assert await pushes(seller) == ["completed"]


async def test_one_that_names_neither_ends_what_was_queued_before_it(a_seller):
    seller, late = await a_pushed_price(a_seller)
    await record(seller, imported_at=late)
    assert await pushes(seller) == ["pending"]
    await record(seller, sync_cycle_id="c2")
    assert await pushes(seller) == ["completed"]


@pytest.mark.night
async def test_an_older_file_told_of_late_leaves_the_newer_prices_push(a_seller):
    seller, _ = await a_pushed_price(a_seller)
    old = await imported_rows(seller)
    take = "UPDATE agent_task SET status = 'claimed', claim_expires_at = :at WHERE seller_id = :id"
    await seller.service.sql(seller.id, take, id=seller.id, at=clock.now() + timedelta(minutes=10))
    await seller.import_csv(rows({1: "1.00"}, market="4.00"))
    assert await pushes(seller) == ["claimed", "pending"]
    for cycle in ("c1", "c2"):
        await record(seller, sync_cycle_id=cycle, **old)
        assert await pushes(seller) == ["completed", "pending"]
    new = await imported_rows(seller)
    answers = await asyncio.gather(
        *(seller.post(EVENTS, json=report(sync_cycle_id=f"c{n}", **new)) for n in (3, 4))
    )
    assert [answer.status_code for answer in answers] == [201, 201]
    assert await pushes(seller) == ["completed", "completed"]


@pytest.mark.parametrize(
    "fields",
    [{"imported_at": ...}, {"imported_at": "soon"}, {"row_count": ...}, {"row_count": -1},
     {"file_sha256": "abc"}, {"rows": {}},
     {"rows": [{"old_price": 1}]}, {"rows": [{"marketplace_id": 1, "new_price": "NaN"}]},
     {"rows": [{"marketplace_id": 1, "new_price": True}]},
     {"rows": [{"marketplace_id": 2**64, "new_price": "1"}]}, {"sync_cycle_id": ""}],
    ids=str,
)  # fmt: skip
async def test_a_report_of_the_wrong_shape_is_refused(a_seller, fields):
    seller = await a_seller()
    answer = await seller.post(EVENTS, json=report(**fields))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), answer.text


@pytest.mark.first(1)
@pytest.mark.parametrize("with_rows", [False, True])
async def test_the_event_with_the_served_files_sha256_closes_a_rollback(a_seller, with_rows):
    seller, id, sha, _ = await a_served_rollback(a_seller)
    fields = await imported_rows(seller) if with_rows else {"file_sha256": sha, "row_count": 3}
    clock.shift(timedelta(minutes=1))
    await record(seller, **fields)
    told = await read(seller, id)
    assert (told["state"], told["finished_at"] is not None) == ("applied", True)
    assert await prices(seller) == dict.fromkeys((1, 2, 3), "1.0000")
    assert [status for status, _ in await tasks(seller)] == ["completed"]


@pytest.mark.night
async def test_applied_its_cards_have_no_target_until_the_next_run(a_seller):
    seller, _, sha, _ = await a_served_rollback(a_seller)
    assert set((await targets(seller)).values()) == {"1.9800"}
    await record(seller, file_sha256=sha)
    assert await targets(seller) == dict.fromkeys((1, 2, 3), None)
    assert await exported(seller) == {}
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "1.00")))
    assert await targets(seller) == dict.fromkeys((1, 2, 3), "1.9800")


@pytest.mark.night
async def test_cards_beside_the_rollback_keep_their_targets(a_seller):
    seller, run = await pushed(a_seller)
    await seller.import_csv(rows({1: "1.98", 2: "1.98", 3: "1.98", 4: "1.00"}))
    rollback = await ready(seller, run_id=run)
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.0000")
    sha = hashlib.sha256((await seller.export()).content).hexdigest()
    await record(seller, file_sha256=sha)
    assert (await read(seller, rollback["id"]))["state"] == "applied"
    assert await exported(seller) == {4: "1.9800"}


@pytest.mark.night
async def test_another_files_event_closes_nothing(a_seller):
    seller, id, _, _ = await a_served_rollback(a_seller)
    for fields in (
        {},
        {"file_sha256": ...},
        {"rows": [{"marketplace_id": 1, "old_price": "1.98", "new_price": "1.00"}]},
    ):
        await record(seller, **fields)
    assert (await read(seller, id))["state"] == "served"
    assert [status for status, _ in await tasks(seller)] == ["pending"]


async def test_another_sellers_event_closes_nothing(a_seller):
    seller, id, sha, _ = await a_served_rollback(a_seller)
    other = await a_seller()
    await record(other, file_sha256=sha)
    assert (await read(seller, id))["state"] == "served"


async def test_a_failure_ends_the_rollback_and_loses_nothing(a_seller):
    seller, id, sha, run = await a_served_rollback(a_seller)
    before = (await prices(seller), await targets(seller))
    for _ in range(2):
        await record(seller, FAILURE, file_sha256=sha, **FAILED)
    told = await read(seller, id)
    assert (told["state"], told["error"]) == ("failed", {"step": "import_prices"} | FAILED["error"])
    assert (await prices(seller), await targets(seller)) == before
    assert [status for status, _ in await tasks(seller)] == ["failed"]
    assert await exported(seller) == {}
    again = await ready(seller, run_id=run)
    assert (again["id"] != id, again["state"], again["cards"]) == (True, "ready", 3)
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.0000")


@pytest.mark.night
async def test_a_failure_of_updates_is_only_recorded(a_seller):
    seller, id, _, _ = await a_served_rollback(a_seller)
    first = await record(seller, FAILURE, **FAILED)
    assert await record(seller, FAILURE, **FAILED) == first
    assert await record(seller, FAILURE, imported_at=..., row_count=..., **FAILED) == first
    assert await record(seller) != first
    assert (await read(seller, id))["state"] == "served"
    query = "SELECT outcome, step, error FROM repricing_event WHERE id = :id"
    [event] = await seller.service.sql(seller.id, query, id=first)
    assert event == {"outcome": "failed"} | FAILED


@pytest.mark.parametrize(
    "fields", [{"step": ...}, {"error": ...}, {"error": {"code": "x"}}, {"error": "no"}], ids=str
)
async def test_a_failure_names_its_step_and_error(a_seller, fields):
    seller = await a_seller()
    answer = await seller.post(FAILURE, json=report(**(FAILED | fields)))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


@pytest.mark.night
@pytest.mark.parametrize("ending", ["expired", "failed"])
async def test_one_given_up_and_imported_all_the_same_is_applied(a_seller, ending):
    seller, id, sha, _ = await a_served_rollback(a_seller)
    if ending == "failed":
        await record(seller, FAILURE, file_sha256=sha, **FAILED)
    else:
        clock.shift(timedelta(days=1, seconds=1))
    assert (await read(seller, id))["state"] == ending
    await record(seller, file_sha256=sha)
    assert (await read(seller, id))["state"] == "applied"
    assert await prices(seller) == dict.fromkeys((1, 2, 3), "1.0000")


@pytest.mark.night
async def test_while_another_writes_prices_the_event_waits_for_it(a_seller):
    seller, id, sha, _ = await a_served_rollback(a_seller)
    await seller.hold_lease("sync")
    await record(seller, file_sha256=sha)
    assert (await read(seller, id))["state"] == "served"
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.0000")
    clock.shift(timedelta(seconds=31))
    await seller.service.run_jobs()
    assert (await read(seller, id))["state"] == "applied"
    assert await targets(seller) == dict.fromkeys((1, 2, 3), None)


@pytest.mark.night
async def test_many_cards_move_in_slabs(a_seller):
    seller, run = await pushed(a_seller, cards=120)
    rollback = await ready(seller, run_id=run)
    file = await imported_rows(seller)
    await record(seller, **file)
    await seller.service.run_jobs()
    assert (await read(seller, rollback["id"]))["state"] == "applied"
    assert set((await prices(seller)).values()) == {"1.5000"}
    assert set((await targets(seller)).values()) == {None}
    [event] = await seller.service.sql(
        seller.id, "SELECT moved, rows FROM repricing_event WHERE seller_id = :id", id=seller.id
    )
    assert (event["moved"], event["rows"]) == (120, None)


@pytest.mark.night
async def test_applied_there_is_nothing_left_to_bring_back(a_seller):
    seller, id, sha, run = await a_served_rollback(a_seller)
    await record(seller, file_sha256=sha)
    assert (await ask(seller, run_id=run))["cards"] == 0
    assert await newest_run(seller) > run
    assert (await read(seller, id))["cards"] == 3


@pytest.mark.night
async def test_a_custom_listing_is_named_by_the_marketplaces_own_id(a_seller):
    seller = await a_seller()
    row = a_row(
        77, title="My own photo", photo="https://example.invalid/1.jpg", market="2.00", price="1.00"
    )
    await seller.import_csv(a_csv(row))
    assert await exported(seller) == {77: "1.9800"}
    await record(seller, rows=[{"marketplace_id": 77, "old_price": "1.00", "new_price": "1.98"}])
    assert await prices(seller) == {-1: "1.9800"}
    assert await exported(seller) == {}


@pytest.mark.night
async def test_after_a_rollback_the_receipt_does_not_reflect_the_current_price(a_seller):
    seller, _, sha, _ = await a_served_rollback(a_seller)
    explain = "/api/v1/pricing/explain/1"
    assert (await seller.get(explain)).json()["historical_breakdown"][
        "reflects_current_price"
    ] is True
    await record(seller, file_sha256=sha)
    told = (await seller.get(explain)).json()
    assert (told["target_price"], told["historical_breakdown"]["reflects_current_price"]) == (
        None,
        False,
    )


async def test_a_rollbacks_file_told_of_again_is_no_price_update(a_seller):
    seller, id, sha, _ = await a_served_rollback(a_seller)
    await record(seller, file_sha256=sha)
    clock.shift(timedelta(minutes=1))
    await seller.import_csv(rows(dict.fromkeys((1, 2, 3), "1.00")))
    async with seller.service.database.tenant(seller.id) as session:
        await enqueue_task(session, seller.id, "apply_price_updates", {}, clock.now())
    clock.shift(timedelta(minutes=1))
    await record(seller, sync_cycle_id="c2", file_sha256=sha)
    await seller.service.run_jobs()
    assert (await pushes(seller))[-1] == "pending"
    assert await exported(seller) == dict.fromkeys((1, 2, 3), "1.9800")
    assert (await read(seller, id))["state"] == "applied"


async def test_two_cycles_that_tell_of_one_rollback_at_once_apply_it_once(a_seller):
    seller, id, sha, _ = await a_served_rollback(a_seller)
    answers = await asyncio.gather(
        *(
            seller.post(EVENTS, json=report(sync_cycle_id=f"c{n}", file_sha256=sha))
            for n in range(3)
        )
    )
    assert [answer.status_code for answer in answers] == [201] * 3
    await seller.service.run_jobs()
    assert (await read(seller, id))["state"] == "applied"
    assert await prices(seller) == dict.fromkeys((1, 2, 3), "1.0000")
    query = (
        "SELECT sum(moved) AS moved, count(settled_at) AS settled FROM repricing_event"
        " WHERE seller_id = :id"
    )
    assert await seller.service.sql(seller.id, query, id=seller.id) == [{"moved": 3, "settled": 3}]
