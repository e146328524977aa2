"""Agents, seller and workers act in any order and at the same time. The service
answers as a small model does (tests/sync_model.py), the ledger's sum is the balance, and in the
end nothing hangs.

A Hypothesis state machine in a thread of its own; each of its steps is run on the tests' event
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import schedule
from builders import Seller, SellerBuilder, a_csv, a_row
from cardsync.agents.seller_state.state import take_lease
from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.agents.sync.planner import HISTORY_STEPS, STEPS, steps_of
from cardsync.imports.drain import work_off_one
from cardsync.platform import clock
from cardsync.platform.work.streams import oldest_open
from sync_model import Answer, Model, matches
from world import played

pytestmark = pytest.mark.day

SOAK_EXAMPLES = schedule.count("CARDSYNC_SOAK_EXAMPLES", 120, 12)
# Each step is a little later than the one before, though the clock stands; a whole sequence takes
# less than a second.
TICK = timedelta(milliseconds=1)
Op = tuple[str, dict[str, Any]]

agents = st.sampled_from(["a", "b", None])
cycles = st.sampled_from([None, "c1", "c2", "c3"])
polls = st.fixed_dictionaries({"agent": agents, "can": st.sampled_from([None, "all", "nothing"])})
logs = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["success", "partial", "failed"]),
        "cycle": cycles,
        "agent": agents,
        "ago": st.sampled_from([0, 90, 5000]),
        "steps": st.sampled_from(
            [
                {},
                dict.fromkeys(HISTORY_STEPS, "success"),
                {"fetch_orders": "success", "fetch_refunds": "skipped"},
                {"fetch_orders": "success", "fetch_feedback": "failed"},
                {"make_coffee": "success"},
            ]
        ),
    }
)
keys = st.sampled_from(["k1", "k2", "k3"])
jumps = st.sampled_from([30, 30, 60, 360, 7200, 25 * 3600])
# Steps that may come at the same time as another: one request each.
calls = st.one_of(
    st.tuples(st.just("request"), st.fixed_dictionaries({"kind": st.sampled_from(KINDS)})),
    st.tuples(st.just("poll"), polls),
    st.tuples(st.just("heartbeat"), st.just({})),
    st.tuples(st.just("skip_wait"), st.fixed_dictionaries({"key": keys})),
    st.tuples(st.just("cancel"), st.just({})),
    st.tuples(st.just("log"), logs),
)
# Changes by the operator and the seller's dashboard.
words = st.one_of(
    st.tuples(st.just("grant"), st.fixed_dictionaries({"credits": st.integers(1, 2)})),
    st.tuples(st.just("pause"), st.fixed_dictionaries({"paused": st.booleans()})),
    st.tuples(st.just("ask_for_history"), st.just({})),
)


class Real:
    """The same calls over HTTP; what no request does (a worker, a lease, the clock) as it is
    done.
    """

    def __init__(self, seller: Seller, *, paid: bool) -> None:
        self.seller, self.paid = seller, paid
        self.began = clock.now()
        self.uploads: dict[int, int] = {}

    async def request(self, kind: str) -> Answer:
        answer = await self.seller.post("/api/v1/sync/request", json={"kind": kind})
        return answer.status_code, answer.json()

    async def poll(self, agent: str | None, can: str | None) -> Answer:
        query = {"agent_id": agent} if agent else {}
        if can:
            query["capabilities"] = ",".join(STEPS) if can == "all" else "brew_coffee"
        answer = await self.seller.get("/api/v1/sync/pending", params=query)
        return answer.status_code, _plan_checked(answer.json(), read_only=not self.paid)

    async def heartbeat(self) -> Answer:
        return (
            await self.seller.post("/api/v1/heartbeat", json={"version": "1.0.0"})
        ).status_code, None

    async def status(self) -> Answer:
        answer = await self.seller.get("/api/v1/status")
        told = answer.json()
        last = told["last_sync_at"] and int(
            (datetime.fromisoformat(told["last_sync_at"]) - self.began).total_seconds()
        )
        return answer.status_code, {
            "sync_in_progress": told["sync_in_progress"], "last_sync": last, "phase": told["phase"],
        }  # fmt: skip

    async def skip_wait(self, key: str) -> Answer:
        answer = await self.seller.post(
            "/api/v1/sync/skip_wait", headers={"X-Idempotency-Key": key}
        )
        return answer.status_code, answer.json()

    async def upload(self, number: int, cycle: str | None, readable: bool) -> Answer:
        # Never lower than it is: no price changes, so nothing is left for the agent to apply.
        data = a_csv(a_row(1, market=f"1.{number:02}", price="9.00"))
        answer = await self.seller.upload(data, **({"X-Sync-Cycle-Id": cycle} if cycle else {}))
        self.uploads[number] = answer.json()["upload_id"]
        if not readable:  # for the worker, later
            [kept] = await self._rows(
                "SELECT storage_key FROM upload", "id = :upload", upload=self.uploads[number]
            )
            await self.seller.service.work.store.delete(kept["storage_key"])
        return answer.status_code, answer.json()

    async def report(self, number: int) -> Answer:
        answer = await self.seller.get(f"/api/v1/uploads/{self.uploads[number]}")
        return answer.status_code, answer.json()["state"]

    async def cancel(self) -> Answer:
        answer = await self.seller.post("/api/v1/sync/cancel")
        return answer.status_code, answer.json()

    async def log(
        self, status: str, cycle: str | None, agent: str | None, steps: dict[str, str], ago: int
    ) -> Answer:
        began = clock.now() - timedelta(seconds=ago)
        body: dict[str, Any] = {
            "status": status,
            "sync_cycle_id": cycle,
            "started_at": began.isoformat(),
        }
        body["steps"] = [{"name": name, "status": result} for name, result in steps.items()]
        answer = await self.seller.post(
            "/api/v1/sync/log", json=body, params={"agent_id": agent} if agent else {}
        )
        return answer.status_code, answer.content or None

    async def grant(self, credits: int) -> Answer:
        await self.seller.grant(credits)
        return 200, None

    async def pause(self, paused: bool) -> Answer:
        await self.seller.set(auto_sync_paused=paused)
        return 200, None

    async def ask_for_history(self) -> Answer:
        await self.seller.set(full_history_requested=True)
        return 200, None

    async def jump(self, seconds: int) -> Answer:
        clock.shift(timedelta(seconds=seconds))
        return 200, None

    async def take_lease(self, holder: str) -> Answer:
        """With `sync`, what a worker leaves that is killed before its first slab."""
        async with self.seller.service.database.tenant(self.seller.id) as session:
            upload = await oldest_open(session, self.seller.id, "inventory")
            if holder == "sync" and upload is None:
                return 200, False
            if await take_lease(session, self.seller.id, holder, clock.now(), 30) is None:
                return 200, False
            if holder == "sync" and upload is not None:
                upload.state, upload.begun_at = "processing", clock.now()
                upload.attempts += 1
        return 200, True

    async def worker(self) -> Answer:
        while await work_off_one(self.seller.service.work, self.seller.id):
            pass
        return 200, None

    async def kept(self) -> tuple[list[str], list[tuple[str | None, str]], int]:
        """The keys charged, the cycles, and the balance, which every row of the ledger and its
        sum agree with.
        """
        ledger = await self._rows(
            "SELECT kind, amount, balance_after, idempotency_key FROM credit_transaction"
        )
        total = 0
        for row in ledger:
            total += row["amount"]
            assert row["balance_after"] == total >= 0
        [account] = await self._rows("SELECT credit_balance FROM account", order="seller_id")
        assert account["credit_balance"] == total
        cycles = await self._rows("SELECT sync_cycle_id, status FROM sync_cycle")
        charged = [row["idempotency_key"] for row in ledger if row["kind"] == "skip_wait"]
        return charged, sorted((row["sync_cycle_id"] or "", row["status"]) for row in cycles), total

    async def _rows(
        self, query: str, only: str = "true", order: str = "id", **values: Any
    ) -> list[dict[str, Any]]:
        whole = f"{query} WHERE seller_id = :seller AND {only} ORDER BY {order}"
        return await self.seller.service.sql(self.seller.id, whole, seller=self.seller.id, **values)


def _plan_checked(body: dict[str, Any], *, read_only: bool) -> dict[str, Any]:
    plan = body.get("plan")
    if plan is None:
        return body
    if plan["error"] is not None:
        assert plan["error"].startswith("capability_mismatch: ")
        assert (plan["steps"], plan["skipped"]) == ([], [])
        return body | {"plan": "refused"}
    named = [*plan["steps"], *(step["name"] for step in plan["skipped"])]
    assert sorted(named) == sorted(steps_of(body["kind"], read_only=read_only))
    return body


class Protocol(RuleBasedStateMachine):
    """One seller.

    `models` are all that may be true: of calls made at the same time either may have been the
    first.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, a_seller: SellerBuilder) -> None:
        super().__init__()
        self.loop, self.a_seller = loop, a_seller
        self.models: list[Model] = []
        self.known: dict[str, Any] = {}
        self.uploaded = 0

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def do(self, *ops: Op) -> None:
        """One call, or several at the same time; some order of them must explain every answer."""
        answers = self.now(self._gather(ops))
        before, self.models = self.models, []  # after a failure there is nothing left to tear down
        self.models = self._explained(before, list(zip(ops, answers, strict=True)))

    async def _gather(self, ops: tuple[Op, ...]) -> list[Answer]:
        clock.shift(TICK)
        return await asyncio.gather(
            *(getattr(self.real, name)(**arguments) for name, arguments in ops)
        )

    def _explained(self, models: list[Model], told: list[tuple[Op, Answer]]) -> list[Model]:
        left: list[Model] = []
        wrong, learned_by_all = [], dict(self.known)
        for model in models:
            model.ticks += 1
            for order in (told, told[::-1]) if len(told) > 1 else (told,):
                after, known = deepcopy(model), dict(self.known)
                for (name, arguments), actual in order:
                    expected = getattr(after, name)(**arguments)
                    learned = matches(expected, actual, known)
                    if learned is None:
                        wrong.append(
                            f"{name}{arguments}: the model says {expected}, the service {actual}"
                        )
                        break
                    known |= learned
                else:
                    learned_by_all |= known
                    if after not in left:
                        left.append(after)
        assert left, "\n".join(wrong)
        self.known = learned_by_all
        return left

    @initialize(
        plan=st.sampled_from(["founder", "free"]),
        metering=st.booleans(),
        planner=st.booleans(),
        paused=st.booleans(),
    )
    def begin(self, plan: str, metering: bool, planner: bool, paused: bool) -> None:
        clock.reset()
        clock.stop()
        options = {
            "credits_metering_enabled": metering,
            "planner_opt_in": planner,
            "auto_sync_paused": paused,
        }
        paid = plan == "founder"
        self.real = Real(self.now(self.a_seller(plan=plan, **options)), paid=paid)
        self.models = [Model(paid=paid, metering=metering, planner=planner, paused=paused)]

    @rule(call=calls)
    def call(self, call: Op) -> None:
        self.do(call)

    @rule(one=calls, other=calls)
    def two_at_once(self, one: Op, other: Op) -> None:
        self.do(one, other)

    @rule(cycle=cycles, readable=st.sampled_from([True, True, False]))
    def upload(self, cycle: str | None, readable: bool) -> None:
        self.do(self._upload(cycle, readable))

    @rule(cycle=cycles, other=calls)
    def upload_at_once_with(self, cycle: str | None, other: Op) -> None:
        self.do(self._upload(cycle, True), other)

    def _upload(self, cycle: str | None, readable: bool) -> Op:
        self.uploaded += 1
        return "upload", {"number": self.uploaded, "cycle": cycle, "readable": readable}

    @rule()
    def a_cycle_ends_and_its_cooldown_begins(self) -> None:
        for op in (self._upload(None, True), ("worker", {}), ("grant", {"credits": 1})):
            self.do(op)

    @rule()
    def the_worker_of_a_cancelled_cycle_dies(self) -> None:
        for op in (self._upload(None, True), ("take_lease", {"holder": "sync"}), ("cancel", {})):
            self.do(op)

    @precondition(lambda self: self.uploaded)
    @rule(data=st.data())
    def report(self, data: st.DataObject) -> None:
        self.do(("report", {"number": data.draw(st.integers(1, self.uploaded))}))

    @rule()
    def worker(self) -> None:
        self.do(("worker", {}))

    @rule(holder=st.sampled_from(["sync", "sync", "rollback", "preview"]))
    def take_lease(self, holder: str) -> None:
        self.do(("take_lease", {"holder": holder}))

    @rule(seconds=jumps)
    def jump(self, seconds: int) -> None:
        self.do(("jump", {"seconds": seconds}))

    @rule(word=words)
    def operator(self, word: Op) -> None:
        self.do(word)

    @invariant()
    def shows_what_is_true(self) -> None:
        if not self.models:
            return
        self.do(("status", {}))
        charged, cycles, balance = self.now(self.real.kept())
        said = [
            (
                model.charges,
                sorted(
                    [("", row.status) for row in model.nameless]
                    + [(c, row.status) for c, row in model.cycles.items()]
                ),
            )
            for model in self.models
        ]
        assert (charged, cycles) in said
        assert {model.balance for model in self.models} == {balance}

    def teardown(self) -> None:
        """A worker later everything that was begun is over, and a day later the seller is synced
        again.
        """
        if not self.models:
            return
        self.do(("jump", {"seconds": 30}))
        self.do(("worker", {}))
        for _ in range(2):  # the first ends what is stale, and the schedule waits a while then
            self.do(("jump", {"seconds": 25 * 3600}))
            self.do(("heartbeat", {}))
        self.do(("pause", {"paused": False}))
        self.do(("poll", {"agent": "z", "can": None}))
        assert all(model.lock and model.lock.agent == "z" for model in self.models)
        self.do(self._upload(None, True))
        self.do(("worker", {}))
        self.do(("log", {"status": "success", "cycle": None, "agent": "z", "steps": {}, "ago": 0}))
        self.do(("status", {}))
        assert not any(model.in_progress or model.open for model in self.models)
        self.now(self.real.seller.fingerprint_is_right())
        self.now(self.real.seller.http.aclose())
        clock.reset()


EVERYDAY = settings(
    max_examples=schedule.examples(2, 4),
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def run(a_seller: SellerBuilder, how: settings) -> None:
    await played(Protocol, a_seller, how)
    await a_seller.service.run_jobs()


async def test_an_import_that_goes_on_though_its_cycle_ended_is_cancelled_as_the_model_says(
    a_seller: SellerBuilder,
) -> None:
    loop = asyncio.get_running_loop()

    def story() -> None:
        protocol = Protocol(loop, a_seller)
        protocol.begin(plan="founder", metering=False, planner=False, paused=False)
        protocol.do(("request", {"kind": "feedback"}))
        protocol.do(("poll", {"agent": "a", "can": "all"}))
        protocol.do(protocol._upload(None, True))
        protocol.do(("take_lease", {"holder": "sync"}))
        protocol.do(
            ("log", {"status": "failed", "cycle": None, "agent": "a", "steps": {}, "ago": 0})
        )
        assert all(model.lock is None and model.open for model in protocol.models)
        protocol.shows_what_is_true()
        protocol.do(("cancel", {}))
        assert all(model.cancelling for model in protocol.models)
        protocol.shows_what_is_true()
        protocol.do(("jump", {"seconds": 60}))
        protocol.do(("worker", {}))
        protocol.shows_what_is_true()
        assert not any(model.open for model in protocol.models)
        protocol.teardown()

    await asyncio.to_thread(story)


async def test_any_sequence_is_answered_as_the_model_says(a_seller: SellerBuilder) -> None:
    await run(a_seller, EVERYDAY)


@pytest.mark.night
async def test_very_many_long_sequences_are_answered_as_the_model_says(
    a_seller: SellerBuilder,
) -> None:
    how = settings(EVERYDAY, max_examples=SOAK_EXAMPLES, stateful_step_count=50, derandomize=False)
    await run(a_seller, how)
