"""Work that a seller asks of the agent: tasks, each kind waiting once, and the full history."""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import poll
from cardsync.platform import clock
from tasks_builder import claim

TASKS = "/api/v1/tasks"
KINDS = ["refresh_orders", "refresh_account", "backfill_orders"]


async def has_pending_tasks(seller) -> bool:
    return (await seller.post("/api/v1/heartbeat")).json()["has_pending_tasks"]


async def feed(seller, action):
    query = (
        "SELECT actor, summary FROM activity WHERE seller_id = :id AND action = :action ORDER BY id"
    )
    rows = await seller.service.sql(seller.id, query, id=seller.id, action=action)
    told = [(row["actor"], row["summary"]) for row in rows]
    return [("key" if actor.startswith("key ") else actor, summary) for actor, summary in told]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_task_that_is_asked_for_waits_for_the_agent(a_seller, kind):
    seller, other = await a_seller(), await a_seller()
    made = await seller.post(TASKS, json={"kind": kind})
    assert made.status_code == 201, made.text
    task = made.json()
    assert {name: task[name] for name in ("kind", "payload", "status", "attempt")} == {
        "kind": kind, "payload": {}, "status": "pending", "attempt": 0,
    }  # fmt: skip
    assert await has_pending_tasks(seller)
    assert not await has_pending_tasks(other)
    again = await seller.post(TASKS, json={"kind": kind})
    assert (again.status_code, again.json()) == (200, task)
    assert await feed(seller, "task.requested") == [("key", f"task {task['id']}: {kind}")]


async def test_asked_for_many_times_at_once_it_is_one(a_seller):
    seller = await a_seller()
    answers = await asyncio.gather(
        *(seller.post(TASKS, json={"kind": "refresh_orders"}) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert (await seller.post(TASKS, json={"kind": "refresh_account"})).status_code == 201


async def test_what_an_agent_has_in_hand_does_not_wait(a_seller):
    seller = await a_seller()
    first = (await seller.post(TASKS, json={"kind": "refresh_orders"})).json()
    take = "UPDATE agent_task SET status = 'claimed', claim_expires_at = :at WHERE seller_id = :id"
    await seller.service.sql(seller.id, take, id=seller.id, at=clock.now() + timedelta(minutes=10))
    second = await seller.post(TASKS, json={"kind": "refresh_orders"})
    assert (second.status_code, second.json()["id"] > first["id"]) == (201, True)
    clock.shift(timedelta(minutes=11))
    again = await seller.post(TASKS, json={"kind": "refresh_orders"})
    assert (again.status_code, again.json()["id"]) == (200, first["id"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("said", [{}, {"kinds": KINDS}], ids=["all kinds", "these kinds"])
async def test_a_claim_that_ran_out_is_told_of_again_by_the_clock_alone(a_seller, kind, said):
    seller = await a_seller()
    await seller.post(TASKS, json={"kind": kind})
    for attempt in (0, 1):
        assert await has_pending_tasks(seller)
        [task] = await claim(seller, **said)
        assert (task["kind"], task["attempt"]) == (kind, attempt)
        assert not await has_pending_tasks(seller)
        clock.shift(timedelta(minutes=9, seconds=59))
        assert not await has_pending_tasks(seller)
        clock.shift(timedelta(seconds=2))
    assert await has_pending_tasks(seller)


@pytest.mark.parametrize(
    "body", [{}, {"kind": "apply_price_updates"}, {"kind": "dance"}, {"kind": None}, []], ids=str
)
async def test_another_kind_is_refused(a_seller, body):
    seller = await a_seller()
    answer = await seller.post(TASKS, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert not await has_pending_tasks(seller)


async def test_an_owner_asks_with_a_session_and_staff_does_not(a_seller):
    seller = await a_seller()
    owner = await signed_in(seller)
    staff = await joined(seller, "staff-of-tasks@example.invalid")
    answer = await staff.post(TASKS, json={"kind": "refresh_orders"})
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    assert not await has_pending_tasks(seller)
    made = await owner.post(TASKS, json={"kind": "refresh_orders"})
    assert made.status_code == 201
    assert await feed(seller, "task.requested") == [
        (f"member {owner.member_id}", f"task {made.json()['id']}: refresh_orders")
    ]


async def history_is_there(seller):
    await poll(seller, None)
    await seller.post("/api/v1/sync/log", json={"status": "success"})
    assert (await poll(seller, None))["action"] == "wait"


async def test_the_full_history_is_asked_for_with_a_sync(a_seller):
    seller = await a_seller()
    await history_is_there(seller)
    for _ in range(2):
        answer = await seller.post("/api/v1/sync/request", json={"full_history": True})
        assert (answer.status_code, answer.json()) == (200, {"status": "requested"})
    told = await poll(seller, None)
    assert (told["kind"], told["reason"], told["first_sync"]) == ("full", "manual_request", True)
    steps = [
        {"name": "fetch_orders", "status": "success"},
        {"name": "fetch_refunds", "status": "skipped"},
    ]
    await seller.post("/api/v1/sync/log", json={"status": "partial", "steps": steps})
    await seller.post("/api/v1/sync/request")
    assert (await poll(seller, None))["first_sync"] is False
    assert await feed(seller, "account.changed") == [("key", "full_history_requested=true")]


async def test_a_request_that_waits_already_takes_the_history_along(a_seller):
    seller = await a_seller()
    await history_is_there(seller)
    await asyncio.gather(
        seller.post("/api/v1/sync/request", json={"kind": "full"}),
        seller.post("/api/v1/sync/request", json={"kind": "orders", "full_history": True}),
    )
    told = await poll(seller, None)
    assert (told["kind"], told["first_sync"]) == ("full", True)


async def test_refused_in_the_cooldown_nothing_of_the_history_is_asked_for(a_seller):
    seller = await a_seller.synced(plan="free")
    seen = "UPDATE sync_state SET history_fetched_at = now() WHERE seller_id = :id"
    await seller.service.sql(seller.id, seen, id=seller.id)
    answer = await seller.post("/api/v1/sync/request", json={"full_history": True})
    assert answer.status_code == 429
    clock.shift(timedelta(hours=7))
    assert (await poll(seller, None))["first_sync"] is False


async def test_a_history_of_another_type_is_refused(a_seller):
    answer = await (await a_seller()).post("/api/v1/sync/request", json={"full_history": "yes"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
