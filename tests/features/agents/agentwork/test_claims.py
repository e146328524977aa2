"""Claims over HTTP: what an agent gets and in which order, how it ends what it has in hand, and
what happens to a claim without an end.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import poll
from cardsync.agents.agentwork.task_kinds import KINDS, REQUESTED, ROUTINE
from cardsync.agents.seller_state import state
from cardsync.platform import clock
from rollbacks_builder import a_pushed_run, read, ready
from stopped_workers import WAITING
from tasks_builder import TASKS, claim, end, listed, queue, routine, task_of, told

LATE = timedelta(minutes=10, seconds=1)


async def test_a_task_is_asked_for_claimed_and_completed(a_seller):
    seller, other = await a_seller(), await a_seller()
    asked = (await seller.post(TASKS, json={"kind": "refresh_orders"})).json()
    assert await claim(other) == []
    [task] = await claim(seller)
    assert set(task) == {
        "id", "kind", "payload", "attempt", "claimed_at", "claim_token", "claim_expires_at",
    }  # fmt: skip
    assert (task["id"], task["kind"], task["attempt"]) == (asked["id"], "refresh_orders", 0)
    assert not await told(seller)
    assert await claim(seller) == []
    assert (await task_of(seller, task["id"]))["status"] == "claimed"
    status, done = await end(seller, task, result={"orders": 3})
    assert (status, done["status"], done["result"]) == (200, "completed", {"orders": 3})
    assert done["finished_at"] is not None
    assert await end(seller, task, result={"orders": 3}) == (200, done)
    assert await end(other, task) == (404, "not_found")
    feed = "SELECT action, summary FROM activity WHERE seller_id = :id AND action LIKE 'task.%' ORDER BY id"
    said = [tuple(row.values()) for row in await seller.service.sql(seller.id, feed, id=seller.id)]
    what = f"task {task['id']}: refresh_orders"
    assert said == [("task.requested", what), ("task.completed", what)]
    assert not await told(seller)


async def test_only_a_hash_of_the_token_is_stored(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    rows = await seller.service.sql(
        seller.id, "SELECT t::text AS row FROM agent_task t WHERE seller_id = :id", id=seller.id
    )
    assert len(rows) == 1
    assert task["claim_token"] not in rows[0]["row"]
    assert not [shown for shown in await listed(seller) if "token" in str(shown)]


async def test_new_stock_comes_first_then_requests_then_retries_then_routine(a_seller):
    seller = await a_seller()
    retry = await queue(seller, "backfill_sales_report")
    [task] = await claim(seller)
    await end(seller, task, "failed", retryable=True)
    push = await routine(seller, "apply_price_updates")
    asked = (await seller.post(TASKS, json={"kind": "refresh_orders"})).json()["id"]
    stock = await queue(seller, "quick_add_listing")
    assert [task["id"] for task in await claim(seller, limit=10)] == [stock, asked, retry, push]


async def test_within_a_priority_the_oldest_comes_first_and_no_more_than_asked_for(a_seller):
    seller = await a_seller()
    made = [await queue(seller, "refresh_orders", priority=REQUESTED) for _ in range(5)]
    assert [task["id"] for task in await claim(seller, limit=3)] == made[:3]
    assert [task["id"] for task in await claim(seller)] == made[3:4]


async def test_of_a_kind_one_routine_task_waits(a_seller):
    seller = await a_seller()
    first = await routine(seller, "refresh_account")
    assert await routine(seller, "refresh_account") == first
    assert await routine(seller, "refresh_orders") != first
    [task] = await claim(seller, kinds=["refresh_account"])
    second = await routine(seller, "refresh_account")
    assert second != first
    assert await end(seller, task, "failed", retryable=True) != (409, "claim_expired")
    waiting = await listed(seller, kind="refresh_account", status="pending")
    assert [task["id"] for task in waiting] == [second]
    assert (await task_of(seller, first))["status"] == "cancelled"


async def test_two_claimers_at_once_never_get_the_same_task(a_seller):
    seller = await a_seller()
    made = {await queue(seller, kind) for kind in KINDS for _ in range(3)}
    answers = await asyncio.gather(*(claim(seller, limit=2) for _ in range(14)))
    got = [task["id"] for answer in answers for task in answer]
    assert (len(got), set(got)) == (21, made)
    assert len({task["claim_token"] for answer in answers for task in answer}) == 21


async def test_a_claim_that_nobody_ends_is_offered_again_and_its_token_is_over(a_seller):
    """The agent was killed between its claim and its completion."""
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [first] = await claim(seller)
    clock.shift(LATE)
    assert await told(seller)
    shown = await task_of(seller, first["id"])
    assert (shown["status"], shown["attempt"]) == ("pending", 1)
    assert await end(seller, first) == (409, "claim_expired")
    [second] = await claim(seller)
    assert (second["id"], second["attempt"]) == (first["id"], 1)
    assert await end(seller, first) == (409, "claim_expired")
    status, done = await end(seller, second)
    assert (status, done["status"], done["attempt"]) == (200, "completed", 1)


async def test_until_then_a_fresh_claim_stays_completable(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    clock.shift(timedelta(minutes=9, seconds=59))
    assert await claim(seller) == []
    assert (await end(seller, task))[1]["status"] == "completed"


@pytest.mark.parametrize("way", ["expires", "fails"])
async def test_the_fifth_attempt_is_final(a_seller, way):
    seller = await a_seller()
    task_id = await queue(seller, "refresh_orders")
    for attempt in range(5):
        assert await told(seller)
        [task] = await claim(seller)
        assert task["attempt"] == attempt
        if way == "fails":
            error = {"code": "step_failed", "message": "the page said no"}
            await end(seller, task, "failed", error=error, retryable=True)
        else:
            clock.shift(LATE)
    shown = await task_of(seller, task_id)
    assert (shown["status"], shown["attempt"]) == ("failed", 5)
    assert shown["error"]["code"] == ("step_failed" if way == "fails" else "claim_expired")
    clock.shift(LATE)
    assert await claim(seller) == []
    assert not await told(seller)
    assert await task_of(seller, task_id) == shown


async def test_a_retryable_failure_is_told_again_without_counting_twice(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    answers = await asyncio.gather(*(end(seller, task, "failed", retryable=True) for _ in range(3)))
    assert {(status, shown["status"], shown["attempt"]) for status, shown in answers} == {
        (200, "pending", 1)
    }
    [again] = await claim(seller)
    assert (await end(seller, task, "failed", retryable=True))[1]["status"] == "claimed"
    assert await end(seller, task) == (409, "claim_expired")
    assert (await end(seller, again))[1]["status"] == "completed"


async def test_another_failure_is_final_at_once(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    error = {"code": "nothing_there", "message": "there is no file"}
    status, shown = await end(seller, task, "failed", error=error)
    assert (status, shown["status"], shown["error"]) == (200, "failed", error)
    assert await end(seller, task) == (409, "claim_expired")
    assert not await told(seller)


async def test_a_token_ends_its_own_task_alone(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    await queue(seller, "refresh_account")
    one, other = await claim(seller, limit=2)
    crossed = other | {"claim_token": one["claim_token"]}
    assert await end(seller, crossed) == (409, "claim_expired")
    assert await end(seller, one | {"claim_token": "guessed"}) == (409, "claim_expired")
    assert await end(seller, one | {"id": 10**12}) == (404, "not_found")


async def test_completed_and_failed_at_once_one_of_them_counts(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    answers = await asyncio.gather(end(seller, task), end(seller, task, "failed"))
    assert sorted(status for status, _ in answers) == [200, 409]


async def test_an_agent_gets_the_kinds_that_it_names(a_seller):
    seller = await a_seller()
    for kind in KINDS:
        await queue(seller, kind)
    assert await claim(seller, kinds=["make_coffee"], limit=10) == []
    named = ["refresh_orders", "refresh_account"]
    assert {task["kind"] for task in await claim(seller, kinds=named, limit=10)} == set(named)
    # The agent reported its capabilities with that claim.
    assert await claim(seller, limit=10) == []
    assert not await told(seller)
    left = await claim(seller, capabilities=",".join(f"{kind}@1" for kind in KINDS), limit=10)
    assert {task["kind"] for task in left} == set(KINDS) - set(named)


async def test_an_old_agent_that_names_no_kinds_gets_all(a_seller):
    seller = await a_seller()
    for kind in KINDS:
        await queue(seller, kind)
    await poll(seller, capabilities="export_inventory@1,fetch_orders@1")
    assert await told(seller)
    answers = [await seller.post(f"{TASKS}/claim")]
    assert [len(answer.json()["tasks"]) for answer in answers] == [1]
    assert len(await claim(seller, kinds=[], limit=10)) == len(KINDS) - 1


async def test_the_heartbeat_tells_of_what_the_agent_said_last_that_it_can_do(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_account")
    await queue(seller, "apply_price_updates")
    await poll(seller, capabilities="refresh_orders@1")
    assert not await told(seller)
    await poll(seller, capabilities="fetch_orders,refresh_account@2")
    assert not await told(seller)
    await poll(seller, capabilities="refresh_account@1,refresh_orders")
    assert await told(seller)
    [task] = await claim(seller, limit=10)
    assert task["kind"] == "refresh_account"
    assert not await told(seller)
    await poll(seller, capabilities="apply_price_updates")
    assert await told(seller)


async def test_of_two_claims_at_once_the_later_one_says_last_what_the_agent_can_do(a_seller):
    """Both read the seller's state before either is let in; the later one repeats the last word
    of then.
    """
    seller = await a_seller()
    before = ["refresh_account", "backfill_orders"]
    await claim(seller, kinds=before)
    for kind in ("refresh_account", "refresh_orders"):
        await queue(seller, kind)
    claims = []
    async with seller.service.database.tenant(seller.id) as session:
        await state.locked(session, seller.id)
        for kinds in (["refresh_account", "refresh_orders"], before):
            claims.append(asyncio.create_task(claim(seller, kinds=kinds, limit=1)))
            async with asyncio.timeout(30):
                while len(await seller.service.sql(seller.id, WAITING)) < len(claims):
                    await asyncio.sleep(0.01)
    given = [[task["kind"] for task in await one] for one in claims]
    assert given == [["refresh_account"], []]
    assert not await told(seller)


@pytest.mark.parametrize(
    "pause", [{"past_due": True}, {"write_consent": False}, {"automatic_pricing_paused": True}],
    ids=str
)  # fmt: skip
async def test_a_pause_hands_out_no_price_task_but_everything_else(a_seller, pause):
    seller = await a_seller()
    for kind in KINDS:
        await queue(seller, kind)
    await seller.set(**pause)
    claimed = {task["kind"] for task in await claim(seller, limit=10)}
    assert claimed == set(KINDS) - {"apply_price_updates"}
    assert [task["status"] for task in await listed(seller, kind="apply_price_updates")] == [
        "pending"
    ]
    await seller.set(past_due=False, write_consent=True, automatic_pricing_paused=False)
    assert [task["kind"] for task in await claim(seller)] == ["apply_price_updates"]


async def test_the_end_of_a_trial_cancels_at_the_next_claim_and_holds_new_stock(a_seller):
    ends = clock.now() + timedelta(days=1)
    seller = await a_seller(plan="trial", trial_ends_at=ends.isoformat())
    push = await queue(seller, "apply_price_updates")
    [held] = await claim(seller)
    waiting = await queue(seller, "apply_price_updates")
    stock = await queue(seller, "quick_add_listing")
    clock.shift(timedelta(hours=23, minutes=55))
    await end(seller, held)
    [held] = await claim(seller, kinds=["apply_price_updates"])
    third = await queue(seller, "apply_price_updates")
    clock.shift(timedelta(minutes=6))
    assert await claim(seller, kinds=list(KINDS), limit=10) == []
    assert (await task_of(seller, third))["status"] == "cancelled"
    # An agent may finish a task that it has in hand.
    assert (await end(seller, held))[1]["status"] == "completed"
    assert {(await task_of(seller, id))["status"] for id in (push, waiting)} <= {
        "completed",
        "failed",
        "pending",
        "cancelled",
    }
    await seller.set(plan="paid")
    assert [task["id"] for task in await claim(seller)] == [stock]


async def test_while_a_rollback_waits_its_own_task_is_handed_out_and_no_other_price_file(a_seller):
    seller, run = await a_pushed_run(a_seller)
    await ready(seller, run_id=run)
    await queue(seller, "quick_add_listing")
    await queue(seller, "apply_price_updates")
    [task] = await claim(seller, limit=10)
    assert task["kind"] == "apply_rollback"
    # The others wait behind it: a claim would find nothing.
    assert not await told(seller)
    await end(seller, task, "failed")
    await seller.service.run_jobs()
    clock.shift(timedelta(seconds=30))
    await seller.sweep()
    await seller.service.run_jobs()
    assert await told(seller)
    kinds = {task["kind"] for task in await claim(seller, limit=10)}
    assert kinds == {"quick_add_listing", "apply_price_updates"}


@pytest.mark.night
@pytest.mark.parametrize("way", ["fails", "expires"])
async def test_a_rollback_whose_task_fails_for_good_is_over(a_seller, way):
    seller, run = await a_pushed_run(a_seller)
    rollback = await ready(seller, run_id=run)
    error = {"code": "refused", "message": "the page said no"}
    if way == "fails":
        [task] = await claim(seller)
        assert (await end(seller, task, "failed", error=error))[0] == 200
    else:
        for _ in range(5):
            assert len(await claim(seller)) == 1
            clock.shift(LATE)
        assert await claim(seller) == []
    clock.shift(timedelta(seconds=30))
    await seller.sweep()
    await seller.service.run_jobs()
    shown = await read(seller, rollback["id"])
    assert shown["state"] == "failed"
    assert shown["error"]["code"] == ("refused" if way == "fails" else "claim_expired")
    assert (await ready(seller, run_id=run))["state"] == "ready"


async def test_a_task_that_its_event_completed_is_told_of_by_its_agent_too(a_seller):
    seller = await a_seller()
    await queue(seller, "apply_price_updates")
    [task] = await claim(seller)
    event = {"imported_at": clock.rfc3339(clock.now()), "row_count": 0}
    assert (await seller.post("/api/v1/repricing_events", json=event)).status_code == 201
    assert (await task_of(seller, task["id"]))["status"] == "completed"
    status, done = await end(seller, task, result={"file": "a.csv"})
    assert (status, done["status"], done["result"]) == (200, "completed", {"file": "a.csv"})
    assert (await end(seller, task))[0] == 200
    assert await end(seller, task, "failed") == (409, "claim_expired")


async def test_the_list_is_paged_and_filtered(a_seller):
    seller, other = await a_seller(), await a_seller()
    made = [await queue(seller, kind) for kind in KINDS]
    await queue(other, "refresh_orders")
    [task] = await claim(seller, kinds=["refresh_orders"])
    page = (await seller.get(TASKS, params={"per_page": 3, "page": 2})).json()
    assert [shown["id"] for shown in page["tasks"]] == made[::-1][3:6]
    told_of = {name: page[name] for name in ("total", "page", "per_page", "total_pages")}
    assert told_of == {"total": 7, "page": 2, "per_page": 3, "total_pages": 3}
    assert [shown["id"] for shown in await listed(seller, status="claimed")] == [task["id"]]
    assert len(await listed(seller, status="pending")) == 6
    clock.shift(LATE)
    assert len(await listed(seller, status="pending")) == 7
    assert [shown["kind"] for shown in await listed(seller, kind="apply_rollback")] == [
        "apply_rollback"
    ]
    assert len(await listed(seller, page="x", per_page="0")) == 1
    for query in ({"status": "lost"}, {"kind": "make_coffee"}):
        answer = await seller.get(TASKS, params=query)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


async def test_an_owner_reads_tasks_and_staff_does_not(a_seller):
    seller = await a_seller()
    await queue(seller, "refresh_orders", priority=ROUTINE)
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    assert (await owner.get(TASKS)).json()["total"] == 1
    answer = await staff.get(TASKS)
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
    for path in (f"{TASKS}/claim",):
        answer = await owner.post(path, json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "key_required")


@pytest.mark.parametrize(
    "body", [{"limit": 0}, {"limit": 11}, {"kinds": "refresh_orders"}, {"kinds": [1]},
             {"capabilities": 3}, []], ids=str
)  # fmt: skip
async def test_a_claim_of_the_wrong_shape_is_refused(a_seller, body):
    answer = await (await a_seller()).post(f"{TASKS}/claim", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")


@pytest.mark.parametrize(
    "body",
    [{"status": "pending"}, {"status": None}, {"claim_token": None}, {"claim_token": 7},
     {"result": []}, {"error": "no"}, {"retryable": "yes"},
     {"result": {"text": "x" * 100_001}}],
    ids=lambda body: str(body)[:40],
)  # fmt: skip
async def test_an_outcome_of_the_wrong_shape_is_refused(a_seller, body):
    seller = await a_seller()
    await queue(seller, "refresh_orders")
    [task] = await claim(seller)
    told_of = {"status": "completed", "claim_token": task["claim_token"]} | body
    answer = await seller.http.patch(f"{TASKS}/{task['id']}", json=told_of)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert (await task_of(seller, task["id"]))["status"] == "claimed"
