"""The plan that goes with a sync: who gets one, what it leaves out, when it is refused, and that
its holder hears it again.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import event

from builders import a_csv, a_row, log, poll
from cardsync.agents.sync.planner import STEPS
from cardsync.platform import clock

ALL = ",".join(f"{name}@1" for name in STEPS)
MINUTE = timedelta(minutes=1)
CHAIN = [
    "export_inventory",
    "upload_inventory",
    "await_repricing",
    "download_price_updates",
    "import_prices",
]
HISTORY = ["fetch_orders", "fetch_order_items", "fetch_shipping", "fetch_refunds", "fetch_feedback"]


async def able_poll(seller, capabilities=ALL, agent="agent-1") -> dict:
    """A poll of an agent that says what it can do."""
    return await poll(seller, agent, capabilities=capabilities)


async def ask(seller, kind="full") -> None:
    assert (await seller.post("/api/v1/sync/request", json={"kind": kind})).status_code == 200


async def ran(seller, *succeeded, status="success", failed=(), skipped=(), cycle=None) -> None:
    results = {"success": succeeded, "failed": failed, "skipped": skipped}
    steps = {name: result for result, names in results.items() for name in names}
    await log(seller, status, steps, **({"sync_cycle_id": cycle} if cycle else {}))


async def a_planned_seller(a_seller, **settings):
    """A seller who opted in and whose first sync is over, without a step that is fresh."""
    seller = await a_seller(planner_opt_in=True, **settings)
    await able_poll(seller, capabilities=None)
    await seller.import_csv(a_csv(a_row()))
    await seller.applied()
    await ran(seller)
    return seller


async def last_successes(seller) -> dict:
    rows = await seller.service.sql(seller.id, "SELECT name, last_succeeded_at FROM sync_step")
    return {row["name"]: row["last_succeeded_at"] for row in rows}


async def test_a_new_seller_who_opted_in_gets_every_step(a_seller):
    seller = await a_seller(planner_opt_in=True)
    answer = await able_poll(seller)
    assert (answer["action"], answer["kind"], answer["first_sync"]) == ("sync", "full", True)
    assert answer["plan"] == {"kind": "full", "steps": list(STEPS), "skipped": [], "error": None}


async def test_who_did_not_opt_in_gets_no_plan(a_seller):
    assert "plan" not in await able_poll(await a_seller())


@pytest.mark.parametrize("capabilities", [None, "", "x" * 2001, ["fetch_orders", "x" * 2000]])
async def test_an_agent_that_says_nothing_usable_gets_no_plan(a_seller, capabilities):
    answer = await able_poll(await a_seller(planner_opt_in=True), capabilities)
    assert answer["action"] == "sync"
    assert "plan" not in answer


@pytest.mark.night
async def test_a_wait_has_no_plan(a_seller):
    seller = await a_planned_seller(a_seller)
    assert await able_poll(seller) == {
        "action": "wait",
        "reason": "no_sync_needed",
        "sync_requested": False,
    }


async def test_capabilities_may_come_in_several_parameters(a_seller):
    seller = await a_planned_seller(a_seller)
    await ask(seller, "orders")
    answer = await able_poll(
        seller, ["fetch_orders,fetch_order_items@1", "make_coffee@7", "fetch_shipping"]
    )
    assert answer["plan"]["steps"] == ["fetch_orders", "fetch_order_items", "fetch_shipping"]


@pytest.mark.night
async def test_a_step_that_a_request_only_needs_is_left_out_while_it_is_fresh(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, "fetch_orders", "fetch_refunds")
    succeeded = (await last_successes(seller))["fetch_orders"]
    await ask(seller, "refunds")
    assert (await able_poll(seller))["plan"] == {
        "kind": "refunds",
        "steps": ["fetch_refunds"],
        "skipped": [
            {
                "name": "fetch_orders", "reason": "fresh",
                "last_succeeded_at": clock.rfc3339(succeeded),
                "freshness_seconds": 600,
            }
        ],
        "error": None,
    }  # fmt: skip


@pytest.mark.night
async def test_it_is_run_again_when_its_window_is_over(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, "fetch_orders")
    clock.shift(10 * MINUTE)
    await ask(seller, "feedback")
    assert (await able_poll(seller))["plan"]["steps"] == ["fetch_orders", "fetch_feedback"]


async def test_a_scheduled_cycle_leaves_out_what_is_fresh(a_seller):
    seller = await a_seller(planner_opt_in=True)
    await able_poll(seller)
    # Everything worked but the prices' last step; the schedule tries again five minutes later.
    await ran(
        seller,
        *(name for name in STEPS if name != "import_prices"),
        status="failed",
        failed=["import_prices"],
    )
    clock.shift(6 * MINUTE)
    answer = await able_poll(seller)
    assert (answer["reason"], answer["first_sync"]) == ("scheduled", False)
    assert answer["plan"]["steps"] == CHAIN
    assert [step["name"] for step in answer["plan"]["skipped"]] == [
        name for name in STEPS if name not in CHAIN
    ]


@pytest.mark.night
async def test_only_success_makes_a_step_fresh(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, status="partial", failed=["fetch_orders"], skipped=["refresh_account"])
    assert await last_successes(seller) == {}


@pytest.mark.night
async def test_the_newest_success_counts_and_names_we_do_not_know_are_not_kept(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, "fetch_orders", "make_coffee")
    first = await last_successes(seller)
    clock.shift(MINUTE)
    await ran(seller, "fetch_orders", "refresh_account")
    second = await last_successes(seller)
    assert (list(first), sorted(second)) == (["fetch_orders"], ["fetch_orders", "refresh_account"])
    assert second["fetch_orders"] - first["fetch_orders"] >= MINUTE


@pytest.mark.night
@pytest.mark.day
async def test_a_log_that_comes_twice_makes_nothing_fresher(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, "fetch_orders", status="partial", cycle="c1")
    first = await last_successes(seller)
    clock.shift(MINUTE)
    await ran(seller, "fetch_orders", "refresh_account", cycle="c1")
    second = await last_successes(seller)
    assert second["fetch_orders"] == first["fetch_orders"] < second["refresh_account"]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "account", [{"sync_mode": "read_only"}, {"plan": "free"}], ids=["chosen", "unpaid"]
)
async def test_a_read_only_account_imports_no_prices(a_seller, account):
    seller = await a_planned_seller(a_seller)
    await ask(seller, "pricing")
    await seller.set(**account)
    answer = await able_poll(seller, ALL.replace("import_prices@1", ""))
    assert (answer["plan"]["steps"], answer["plan"]["error"]) == (CHAIN[:-1], None)


async def test_a_refused_plan_takes_no_lock_and_the_request_waits_for_an_agent_that_can(a_seller):
    seller = await a_planned_seller(a_seller)
    await ask(seller, "orders")
    refused = {
        "kind": "orders",
        "steps": [],
        "skipped": [],
        "error": "capability_mismatch: fetch_shipping@1",
    }
    for _ in range(2):
        answer = await able_poll(seller, "fetch_orders@1,fetch_order_items@1,fetch_shipping@2")
        assert (answer["action"], answer["reason"], answer["sync_requested"]) == (
            "sync",
            "manual_request",
            True,
        )
        assert answer["plan"] == refused
    status = (await seller.get("/api/v1/status")).json()
    assert (status["sync_in_progress"], status["phase"]) == (False, "requested")
    answer = await able_poll(seller, agent="agent-2")
    assert answer["plan"]["steps"] == ["fetch_orders", "fetch_order_items", "fetch_shipping"]


async def test_a_refused_schedule_stays_due(a_seller):
    seller = await a_seller(planner_opt_in=True)
    assert (await able_poll(seller, "make_coffee"))["plan"][
        "error"
    ] == "capability_mismatch: export_inventory@1"
    assert (await able_poll(seller))["plan"]["error"] is None


@pytest.mark.night
async def test_the_holder_hears_the_same_plan_whatever_has_changed(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, "fetch_orders")
    await ask(seller, "refunds")
    first = await able_poll(seller)
    clock.shift(4 * MINUTE)
    await able_poll(seller)
    clock.shift(4 * MINUTE)
    await able_poll(seller)
    clock.shift(4 * MINUTE)
    await seller.set(planner_opt_in=False)
    assert [
        await able_poll(seller),
        await able_poll(seller, None),
        await able_poll(seller, "make_coffee"),
    ] == [first] * 3


async def test_a_cycle_without_a_plan_gets_none_afterwards(a_seller):
    seller = await a_planned_seller(a_seller)
    await ask(seller)
    first = await able_poll(seller, None)
    assert await able_poll(seller, ALL) == first


async def test_the_next_cycle_has_a_plan_of_its_own(a_seller):
    seller = await a_planned_seller(a_seller)
    await ask(seller, "sales")
    await able_poll(seller)
    await ran(seller)
    await ask(seller, "account")
    assert (await able_poll(seller))["plan"]["steps"] == ["refresh_account"]
    await ran(seller)
    await ask(seller, "account")
    assert "plan" not in await able_poll(seller, None)


@contextmanager
def statements_of(service) -> Iterator[list[str]]:
    """The statements of the application beside the one row that every request reads."""
    engine, seen = service.app.state.database.engine.sync_engine, []

    def note(_connection, _cursor, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_freshness_is_read_only_for_a_plan(a_seller, service):
    planned, other = await a_planned_seller(a_seller), await a_seller()
    with statements_of(service) as seen:
        assert (await able_poll(planned))["action"] == "wait"
        assert [statement for statement in seen if "sync_st" in statement] == []
        assert (await able_poll(other))["action"] == "sync"
        assert [statement for statement in seen if "sync_step" in statement] == []
        await ask(planned)
        assert (await able_poll(planned))["plan"]["error"] is None
        assert len([statement for statement in seen if "sync_step" in statement]) == 1


async def test_two_polls_at_once_take_one_lock_and_one_plan(a_seller):
    seller = await a_planned_seller(a_seller)
    await ask(seller, "orders")
    answers = await asyncio.gather(*(able_poll(seller, agent=f"agent-{n}") for n in range(6)))
    assert sorted(answer["action"] for answer in answers) == ["sync"] + ["wait"] * 5
    assert [answer["plan"]["kind"] for answer in answers if "plan" in answer] == ["orders"]


async def test_a_first_sync_is_over_when_each_step_of_the_history_succeeded_in_one(a_seller):
    seller = await a_seller(planner_opt_in=True)
    await able_poll(seller)
    await ran(seller, *HISTORY[:-1], status="failed", failed=["fetch_feedback"])
    clock.shift(6 * MINUTE)
    answer = await able_poll(seller)
    assert answer["first_sync"] is True
    assert [step["name"] for step in answer["plan"]["skipped"]] == HISTORY[:-1]
    await ran(seller, "fetch_feedback", status="failed", skipped=HISTORY[:-1])
    await ask(seller)
    assert (await able_poll(seller))["first_sync"] is False


@pytest.mark.night
async def test_a_fresh_step_of_no_first_sync_does_not_end_one(a_seller):
    seller = await a_planned_seller(a_seller)
    await ran(seller, *HISTORY)
    await seller.set(full_history_requested=True)
    await ask(seller, "feedback")
    answer = await able_poll(seller)
    assert (answer["first_sync"], answer["plan"]["steps"]) == (True, ["fetch_feedback"])
    await ran(seller, "fetch_feedback", skipped=["fetch_orders"])
    await ask(seller)
    assert (await able_poll(seller))["first_sync"] is True
