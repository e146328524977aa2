"""Price tasks and the account: the tasks that the heartbeat announces, that a pause keeps queued,
and that read-only cancels.
"""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import update

from cardsync.agents.agentwork import tasks
from cardsync.agents.agentwork.models import AgentTask
from cardsync.agents.seller_state.state import locked
from cardsync.platform import clock
from world import phase

PUSH = "apply_price_updates"
STAYS = tuple(kind for kind in tasks.KINDS if kind != PUSH)
HELD = [
    {"plan": "free"},
    {"sync_mode": "read_only"},
    {"plan": "trial", "trial_ends_at": "2020-01-01T00:00:00Z"},
]
PAUSES = [{"past_due": True}, {"write_consent": False}, {"automatic_pricing_paused": True}]


async def queue(seller, kind: str = PUSH) -> int:
    async with seller.service.database.tenant(seller.id) as session:
        return await tasks.enqueue_task(session, seller.id, kind, {}, clock.now())


async def claim(seller, task: int, seconds: int = 600) -> None:
    """Write the columns that a claim writes."""
    now = clock.now()
    claimed = {
        "status": "claimed",
        "claimed_at": now,
        "claim_expires_at": now + timedelta(seconds=seconds),
    }
    async with seller.service.database.tenant(seller.id) as session:
        await locked(session, seller.id)
        await session.execute(
            update(AgentTask)
            .where(AgentTask.seller_id == seller.id, AgentTask.id == task)
            .values(**claimed)
        )
        await tasks.note_due(session, seller.id)


async def statuses(seller) -> list[str]:
    rows = await seller.service.sql(
        seller.id,
        "SELECT status FROM agent_task WHERE seller_id = :seller ORDER BY id",
        seller=seller.id,
    )
    return [row["status"] for row in rows]


async def told(seller) -> bool:
    answer = await seller.post("/api/v1/heartbeat")
    assert answer.status_code == 200, answer.text
    return answer.json()["has_pending_tasks"]


@pytest.mark.parametrize("kind", tasks.KINDS)
async def test_a_task_that_waits_is_told_of(a_seller, kind):
    seller = await a_seller()
    assert not await told(seller)
    await queue(seller, kind)
    assert await told(seller)


async def test_another_sellers_task_is_not(a_seller):
    seller, other = await a_seller(), await a_seller()
    await queue(other)
    assert not await told(seller)


async def test_an_unknown_kind_is_a_mistake_of_ours(a_seller):
    seller = await a_seller()
    with pytest.raises(ValueError, match="no kind of agent task"):
        await queue(seller, "make_coffee")


async def test_a_claim_hides_a_task_for_ten_minutes(a_seller):
    seller = await a_seller()
    await claim(seller, await queue(seller))
    assert not await told(seller)
    clock.shift(timedelta(minutes=9, seconds=59))
    assert not await told(seller)
    clock.shift(timedelta(seconds=2))
    assert await told(seller)


async def test_beside_a_claimed_task_another_one_shows(a_seller):
    seller = await a_seller()
    await claim(seller, await queue(seller))
    await queue(seller, "refresh_orders")
    assert await told(seller)


@pytest.mark.parametrize("pause", PAUSES, ids=str)
async def test_a_pause_keeps_price_tasks_queued_and_untold(a_seller, pause):
    seller = await a_seller()
    await queue(seller)
    await seller.set(**pause)
    assert not await told(seller)
    assert await statuses(seller) == ["pending"]
    await seller.set(past_due=False, write_consent=True, automatic_pricing_paused=False)
    assert await told(seller)


@pytest.mark.parametrize("kind", STAYS)
@pytest.mark.parametrize("change", [*PAUSES, *HELD], ids=str)
async def test_rollbacks_listings_and_backfills_stay_visible(a_seller, kind, change):
    seller = await a_seller()
    await queue(seller, kind)
    await seller.set(**change)
    unpaid = change.get("plan") in ("free", "trial")
    assert await told(seller) is not (unpaid and kind == "quick_add_listing")
    assert await statuses(seller) == ["pending"]


async def test_an_unpaid_accounts_listings_wait_untold_beside_what_it_may_have(a_seller):
    seller = await a_seller()
    await queue(seller, "quick_add_listing")
    await seller.set(plan="free")
    assert not await told(seller)
    assert (await seller.post("/api/v1/tasks/claim", json={})).json()["tasks"] == []
    await queue(seller, "refresh_orders")
    assert await told(seller)
    [task] = (await seller.post("/api/v1/tasks/claim", json={"limit": 10})).json()["tasks"]
    assert task["kind"] == "refresh_orders"
    assert not await told(seller)
    await seller.set(plan="paid")
    assert await told(seller)


@pytest.mark.parametrize("change", HELD, ids=str)
async def test_a_change_that_makes_the_account_read_only_cancels_what_waits(a_seller, change):
    seller = await a_seller()
    await queue(seller)
    await seller.set(**change)
    assert await statuses(seller) == ["cancelled"]
    await seller.set(plan="paid", sync_mode="full")
    assert not await told(seller)


@pytest.mark.parametrize("change", HELD, ids=str)
async def test_a_claimed_task_survives_it(a_seller, change):
    seller = await a_seller()
    await claim(seller, await queue(seller))
    await queue(seller)
    await seller.set(**change)
    assert await statuses(seller) == ["claimed", "cancelled"]


async def test_a_claim_that_runs_out_on_a_read_only_account_ends_cancelled(a_seller):
    seller = await a_seller()
    await claim(seller, await queue(seller))
    await seller.set(sync_mode="read_only")
    clock.shift(timedelta(minutes=11))
    assert not await told(seller)
    assert await statuses(seller) == ["cancelled"]


async def test_a_change_that_changes_nothing_of_that_leaves_tasks_alone(a_seller):
    seller = await a_seller()
    await queue(seller)
    await seller.set(plan="complimentary", store_name="A Shop")
    assert await statuses(seller) == ["pending"]


async def test_at_the_end_of_a_trial_the_next_heartbeat_cancels(a_seller):
    ends = clock.now() + timedelta(days=1)
    seller = await a_seller(plan="trial", trial_ends_at=ends.isoformat())
    await queue(seller)
    await queue(seller, "refresh_orders")
    assert await told(seller)
    clock.shift(timedelta(days=1, seconds=1))
    assert await statuses(seller) == ["pending", "pending"]
    assert await told(seller)
    assert await statuses(seller) == ["cancelled", "pending"]


async def test_a_task_queued_on_a_read_only_account_is_cancelled_by_the_next_heartbeat(a_seller):
    seller = await a_seller(sync_mode="read_only")
    await queue(seller)
    assert not await told(seller)
    assert await statuses(seller) == ["cancelled"]


async def test_two_heartbeats_at_once_cancel_once(a_seller):
    seller = await a_seller(sync_mode="read_only")
    for _ in range(3):
        await queue(seller)
    assert await asyncio.gather(*(told(seller) for _ in range(4))) == [False] * 4
    assert await statuses(seller) == ["cancelled"] * 3


async def test_tasks_queued_at_once_are_all_told_of_until_all_are_gone(a_seller):
    seller = await a_seller()
    await asyncio.gather(
        *(queue(seller) for _ in range(5)), *(queue(seller, "refresh_orders") for _ in range(3))
    )
    await seller.set(sync_mode="read_only")
    assert sorted(await statuses(seller)) == ["cancelled"] * 5 + ["pending"] * 3
    assert await told(seller)


async def test_a_switch_back_while_a_heartbeat_looks_loses_no_new_task(a_seller):
    """In either order the task was queued after the account could push again, so nobody may
    cancel it.
    """
    for _ in range(5):
        seller = await a_seller(sync_mode="read_only")
        await queue(seller)

        async def back(seller=seller) -> None:
            await seller.set(sync_mode="full")
            await queue(seller)

        await asyncio.gather(told(seller), back(), told(seller))
        assert (await statuses(seller))[1] == "pending"
        assert await told(seller)


async def test_the_phase_tells_of_pushes(a_seller):
    seller = await a_seller()
    task = await queue(seller)
    assert await phase(seller) == "push_queued"
    await claim(seller, task)
    assert await phase(seller) == "pushing"
    clock.shift(timedelta(minutes=11))
    assert await phase(seller) == "push_queued"


async def test_a_read_only_account_never_shows_a_push(a_seller):
    seller = await a_seller()
    await claim(seller, await queue(seller))
    await seller.set(sync_mode="read_only")
    assert await statuses(seller) == ["claimed"]
    assert await phase(seller) == "idle"
    await queue(seller, "apply_rollback")
    assert await phase(seller) == "idle"


async def test_other_work_is_no_push(a_seller):
    seller = await a_seller()
    await queue(seller, "backfill_orders")
    assert await phase(seller) == "idle"
