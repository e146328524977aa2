"""Backfills as tasks: the months without a sales report, two a cycle, and the orders of all
years."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from builders import an_order, log, poll
from cardsync.platform import clock
from cardsync.platform.database.marketplace_time import MARKETPLACE_ZONE
from tasks_builder import claim, end, listed, told

KIND = "backfill_sales_report"


def month(ago, later=timedelta()):
    """The first day of the month so many months before that of today, or of a later day, at the
    marketplace.
    """
    now = (clock.now() + later).astimezone(ZoneInfo(MARKETPLACE_ZONE))
    number = now.year * 12 + now.month - 1 - ago
    return f"{number // 12}-{number % 12 + 1:02}-01"


async def store(seller, first_day):
    begin = datetime.fromisoformat(first_day)
    last = (begin + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    body = {"date_from": first_day, "date_to": last.date().isoformat(), "report": {}}
    answer = await seller.post("/api/v1/sales_report", json=body)
    assert answer.status_code == 200, answer.text


async def a_seller_with_orders(a_seller):
    seller = await a_seller()
    await poll(seller)
    await seller.orders([an_order()])
    return seller


async def test_a_cycle_asks_for_the_two_oldest_missing_months(a_seller):
    seller = await a_seller_with_orders(a_seller)
    await log(seller, sync_cycle_id="c1")
    for _ in range(2):
        [task] = await listed(seller, kind=KIND)
        assert task["payload"] == {"month": month(24), "months": [month(24), month(23)]}
        await log(seller, sync_cycle_id="c1")
        await log(seller, sync_cycle_id="c2")
    assert await told(seller)
    [task] = await claim(seller)
    for first_day in task["payload"]["months"]:
        await store(seller, first_day)
    await end(seller, task)
    # An hour later it may be another month.
    left = [month(22), month(21)]
    clock.shift(timedelta(hours=1))
    await log(seller, sync_cycle_id="c3", started_at=clock.rfc3339(clock.now()))
    [task] = await claim(seller)
    assert task["payload"]["months"] == left


async def test_what_the_cycle_brought_itself_counts(a_seller):
    seller = await a_seller_with_orders(a_seller)
    began = clock.rfc3339(clock.now())
    await store(seller, month(24))
    await log(seller, sync_cycle_id="c1", started_at=began)
    [task] = await claim(seller)
    assert task["payload"]["months"] == [month(23)]
    await end(seller, task)
    await store(seller, month(23))
    await log(seller, sync_cycle_id="c2", started_at=began)
    assert await listed(seller, kind=KIND, status="pending") == []


@pytest.mark.parametrize(
    ("code", "months_ago"), [("step_failed", (24, 24)), ("nothing_there", (22, 24))]
)
async def test_a_month_that_failed_is_asked_for_a_day_later_and_an_absent_one_after_thirty(
    a_seller, code, months_ago
):
    # The day after is of the same month.
    if month(0) != month(0, timedelta(days=2)):
        clock.shift(timedelta(days=2))
    seller = await a_seller_with_orders(a_seller)
    await log(seller, sync_cycle_id="c1")
    [task] = await claim(seller)
    await end(seller, task, "failed", error={"code": code, "message": "no file"})
    await log(seller, sync_cycle_id="c2")
    assert await claim(seller) == []
    clock.shift(timedelta(days=1, seconds=1))
    await log(seller, sync_cycle_id="c3", started_at=clock.rfc3339(clock.now()))
    [task] = await claim(seller)
    assert task["payload"]["month"] == month(months_ago[0])
    await end(seller, task, "failed", error={"code": code, "message": "no file"})
    clock.shift(timedelta(days=30))
    await log(seller, sync_cycle_id="c4", started_at=clock.rfc3339(clock.now()))
    [task] = await claim(seller)
    assert task["payload"]["month"] == month(months_ago[1])


async def test_a_failed_cycle_and_a_shop_without_orders_ask_for_nothing(a_seller):
    seller = await a_seller_with_orders(a_seller)
    await log(seller, "failed", sync_cycle_id="c1")
    assert await listed(seller) == []
    empty = await a_seller()
    await log(empty, sync_cycle_id="c1")
    assert await listed(empty) == []


@pytest.mark.parametrize("first", ["cycle", "task"])
async def test_the_full_history_is_a_task_until_a_first_sync_has_brought_it(a_seller, first):
    seller = await a_seller()
    await poll(seller)
    await log(seller)
    for _ in range(2):
        await seller.post("/api/v1/sync/request", json={"full_history": True})
    [task] = await listed(seller, kind="backfill_orders")
    assert (await seller.post("/api/v1/tasks", json={"kind": "backfill_orders"})).status_code == 200
    if first == "task":
        [claimed] = await claim(seller)
        assert claimed["id"] == task["id"]
    assert (await poll(seller))["first_sync"]
    await log(seller, "success", {"fetch_orders": "success"})
    if first == "task":
        assert (await end(seller, claimed))[1]["status"] == "completed"
    [task] = await listed(seller, kind="backfill_orders")
    assert task["status"] == "completed"
    assert await claim(seller) == []
