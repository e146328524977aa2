"""A price push from its claim to the event that reports the import, and one without such an event;
each event in the log of its cycle.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from builders import log
from cardsync.platform import clock
from rollbacks_builder import a_rule, rows
from tasks_builder import claim, end, told
from world import exported, phase

EVENTS = "/api/v1/repricing_events"
PUSH = "apply_price_updates"


async def report(seller, path=EVENTS, **fields):
    body = {"imported_at": clock.rfc3339(clock.now()), "row_count": 1} | fields
    answer = await seller.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def a_push(a_seller):
    seller = await a_seller()
    await seller.import_csv(rows({1: "1.00"}))
    return seller


async def test_a_push_goes_from_queued_to_pushing_to_idle(a_seller):
    seller = await a_push(a_seller)
    assert (await phase(seller), await told(seller)) == ("push_queued", True)
    [task] = await claim(seller, kinds=[PUSH])
    assert (await phase(seller), await told(seller)) == ("pushing", False)
    file = (await seller.export()).content
    sha256 = hashlib.sha256(file).hexdigest()
    moved = [{"marketplace_id": 1, "old_price": "1.00", "new_price": "1.98"}]
    for _ in range(2):
        await report(seller, sync_cycle_id="of the task", file_sha256=sha256, rows=moved)
    assert (await phase(seller), await exported(seller)) == ("idle", {})
    assert (await end(seller, task))[1]["status"] == "completed"
    assert await claim(seller) == []


async def test_a_push_whose_agent_died_is_offered_again(a_seller):
    seller = await a_push(a_seller)
    [task] = await claim(seller)
    await seller.export()
    clock.shift(timedelta(minutes=10, seconds=1))
    assert (await phase(seller), await told(seller)) == ("push_queued", True)
    [again] = await claim(seller)
    assert (again["id"], again["attempt"]) == (task["id"], 1)


@pytest.mark.parametrize("queried", [False, True])
async def test_a_push_that_was_said_to_be_done_is_offered_again_while_its_event_does_not_come(
    a_seller, queried
):
    seller = await a_seller()
    if queried:
        await a_rule(seller, query="game:magic")
    await seller.import_csv(rows({1: "1.00"}))
    await seller.service.run_jobs()
    [task] = await claim(seller)
    await end(seller, task)
    assert await phase(seller) == "idle"
    await seller.import_csv(rows({1: "1.00"}))
    await seller.service.run_jobs()
    [again] = await claim(seller)
    assert (again["kind"], again["id"] > task["id"]) == (PUSH, True)


async def cycle_events(seller, cycle):
    query = "SELECT price_events FROM sync_cycle WHERE seller_id = :id AND sync_cycle_id = :cycle"
    found = await seller.service.sql(seller.id, query, id=seller.id, cycle=cycle)
    return [
        [(event["outcome"], event["row_count"], event["step"]) for event in row["price_events"]]
        for row in found
    ]


@pytest.mark.parametrize("log_first", [False, True])
async def test_the_log_of_a_cycle_tells_of_its_price_events(a_seller, log_first):
    seller = await a_push(a_seller)
    if log_first:
        await log(seller, sync_cycle_id="c1")
    error = {"code": "refused", "message": "the page said no"}
    failure = {"sync_cycle_id": "c1", "step": "import_prices", "error": error}
    for _ in range(2):
        await report(seller, f"{EVENTS}/failure", **failure)
        await report(seller, sync_cycle_id="c1", row_count=7)
    await report(seller, sync_cycle_id="c2")
    if not log_first:
        assert await cycle_events(seller, "c1") == []
        await log(seller, sync_cycle_id="c1")
    told_of = [[("failed", 1, "import_prices"), ("imported", 7, None)]]
    assert await cycle_events(seller, "c1") == told_of
    await log(seller, sync_cycle_id="c1")
    assert await cycle_events(seller, "c1") == told_of
