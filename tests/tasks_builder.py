"""Tasks over HTTP as an agent and its seller handle them, for the tests of agent work."""

from __future__ import annotations

from typing import Any

from builders import Seller
from cardsync.agents.agentwork import tasks
from cardsync.platform import clock

TASKS = "/api/v1/tasks"


async def queue(
    seller: Seller, kind: str, payload: dict[str, Any] | None = None, **how: Any
) -> int:
    """Make work for the agent, as our operations do."""
    async with seller.service.database.tenant(seller.id) as session:
        return await tasks.enqueue_task(session, seller.id, kind, payload or {}, clock.now(), **how)


async def routine(seller: Seller, kind: str) -> int:
    async with seller.service.database.tenant(seller.id) as session:
        return await tasks.enqueue_routine(session, seller.id, kind, {}, clock.now())


async def claim(seller: Seller, **body: Any) -> list[dict[str, Any]]:
    answer = await seller.post(f"{TASKS}/claim", json=body)
    assert answer.status_code == 200, answer.text
    claimed: list[dict[str, Any]] = answer.json()["tasks"]
    return claimed


async def end(
    seller: Seller, task: dict[str, Any], status: str = "completed", **body: Any
) -> tuple[int, Any]:
    """The status of the answer, with the task or the code of the refusal."""
    told = {"status": status, "claim_token": task["claim_token"]} | body
    answer = await seller.http.patch(f"{TASKS}/{task['id']}", json=told)
    shown = answer.json()
    return answer.status_code, shown if answer.status_code == 200 else shown["code"]


async def listed(seller: Seller, **query: Any) -> list[dict[str, Any]]:
    answer = await seller.get(TASKS, params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["tasks"]
    return found


async def task_of(seller: Seller, task_id: int) -> dict[str, Any]:
    [task] = [task for task in await listed(seller) if task["id"] == task_id]
    return task


async def told(seller: Seller) -> bool:
    answer = await seller.post("/api/v1/heartbeat")
    assert answer.status_code == 200, answer.text
    waits: bool = answer.json()["has_pending_tasks"]
    return waits
