"""Whatever agents, seller and time do to tasks in whatever order, and at the same time: the
service answers as a small model does (tests/tasks_model.py), and no task is ever in two hands.

A Hypothesis state machine in a thread of its own; its steps run on the tests' event loop. An agent
that dies after its claim is one that never ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

import schedule
from builders import Seller, SellerBuilder
from cardsync.platform import clock
from tasks_builder import TASKS, listed, queue, routine, told
from tasks_model import Answer, Model
from world import played

pytestmark = pytest.mark.day

SOAK_EXAMPLES = schedule.count("CARDSYNC_SOAK_EXAMPLES", 120, 12)
Op = tuple[str, dict[str, Any]]

REQUESTS = ("refresh_orders", "refresh_account", "backfill_orders")
ROUTINES = ("apply_price_updates", "backfill_sales_report", "refresh_orders")
SAID = (
    (),
    (),
    ("refresh_orders",),
    ("apply_price_updates", "quick_add_listing"),
    ("refresh_orders", "backfill_orders", "backfill_sales_report", "apply_price_updates",
     "quick_add_listing", "refresh_account"),
)  # fmt: skip
claims = st.fixed_dictionaries(
    {"kinds": st.sampled_from(SAID), "most": st.sampled_from([1, 1, 3, 10])}
)
requests = st.fixed_dictionaries({"kind": st.sampled_from(REQUESTS)})
routines = st.fixed_dictionaries({"kind": st.sampled_from(ROUTINES)})
changes = st.fixed_dictionaries(
    {"mode": st.sampled_from(["full", "full", "read_only"]), "held": st.booleans()}
)
jumps = st.sampled_from([1, 300, 300, 601, 601])
outcomes = st.sampled_from([("completed", False), ("failed", False), ("failed", True)])
ends = st.tuples(st.integers(0, 59), outcomes)


class Real:
    """The same calls over HTTP; what an operation of ours queues is queued by that operation."""

    def __init__(self, seller: Seller) -> None:
        self.seller = seller
        self.numbers: dict[int, int] = {}
        self.tokens: dict[tuple[int, int], str] = {}

    def _number(self, task_id: int) -> int:
        return self.numbers.setdefault(task_id, len(self.numbers) + 1)

    async def jump(self, seconds: int) -> Answer:
        clock.shift(timedelta(seconds=seconds))
        return 200, None

    async def request(self, kind: str) -> Answer:
        answer = await self.seller.post(TASKS, json={"kind": kind})
        return answer.status_code, answer.json()["id"]

    async def new_stock(self) -> Answer:
        return 200, await queue(self.seller, "quick_add_listing")

    async def routine(self, kind: str) -> Answer:
        return 200, await routine(self.seller, kind)

    async def change(self, mode: str, held: bool) -> Answer:
        await self.seller.set(sync_mode=mode, automatic_pricing_paused=held)
        return 200, None

    async def heartbeat(self) -> Answer:
        return 200, await told(self.seller)

    async def claim(self, number: int, kinds: tuple[str, ...], most: int) -> Answer:
        body = {"limit": most} | ({"kinds": list(kinds)} if kinds else {})
        answer = await self.seller.post(f"{TASKS}/claim", json=body)
        return answer.status_code, [
            (number, task["claim_token"], task["id"], task["attempt"])
            for task in answer.json()["tasks"]
        ]

    async def end(self, claim: int, number: int, status: str, retryable: bool) -> Answer:
        [task_id] = [id for id, known in self.numbers.items() if known == number]
        token = self.tokens.get((claim, number), "of another claim")
        body = {"status": status, "claim_token": token, "retryable": retryable}
        answer = await self.seller.http.patch(f"{TASKS}/{task_id}", json=body)
        shown = answer.json()
        if answer.status_code != 200:
            return answer.status_code, shown["code"]
        return 200, (shown["status"], shown["attempt"])

    async def listed(self) -> Answer:
        rows = await listed(self.seller, per_page="200")
        return 200, [
            (self._number(row["id"]), row["kind"], row["status"], row["attempt"])
            for row in reversed(rows)
        ]

    def read(self, name: str, answer: Answer) -> Answer:
        """Ids become numbers, in the order in which tasks were made; tokens are remembered."""
        status, shown = answer
        if name in ("request", "new_stock", "routine"):
            assert isinstance(shown, int)
            return status, self._number(shown)
        if name == "claim":
            assert isinstance(shown, list)
            for claim, token, task_id, _ in shown:
                self.tokens[claim, self._number(task_id)] = token
            return status, [(self._number(task_id), attempt) for _, _, task_id, attempt in shown]
        return answer


class Tasks(RuleBasedStateMachine):
    """One seller.

    `models` are all that may be true: of calls made at the same time either may have been first.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, a_seller: SellerBuilder) -> None:
        super().__init__()
        self.loop, self.a_seller = loop, a_seller
        self.models: list[Model] = []
        self.claimed = 0

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def do(self, *ops: Op) -> None:
        """One call, or several at the same time; some order of them must explain every answer."""
        raw = self.now(self._gather(ops))
        made = [shown for (name, _), (_, shown) in zip(ops, raw, strict=True) if name in MAKERS]
        for task_id in sorted(made):
            self.real._number(task_id)
        answers = [self.real.read(name, answer) for (name, _), answer in zip(ops, raw, strict=True)]
        before, self.models = self.models, []
        self.models = _explained(before, list(zip(ops, answers, strict=True)))

    async def _gather(self, ops: tuple[Op, ...]) -> list[Answer]:
        return await asyncio.gather(
            *(getattr(self.real, name)(**arguments) for name, arguments in ops)
        )

    @initialize()
    def begin(self) -> None:
        clock.reset()
        clock.stop()
        self.real = Real(self.now(self.a_seller()))
        self.models = [Model()]

    def _claim(self, claim: dict[str, Any]) -> Op:
        self.claimed += 1
        return "claim", {"number": self.claimed} | claim

    @rule(claim=claims)
    def claim(self, claim: dict[str, Any]) -> None:
        self.do(self._claim(claim))

    @rule(one=claims, other=claims)
    def two_claims_at_once(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        self.do(self._claim(one), self._claim(other))

    @rule(claim=claims, request=requests)
    def a_claim_and_a_request_at_once(self, claim: dict[str, Any], request: dict[str, Any]) -> None:
        self.do(self._claim(claim), ("request", request))

    @rule(claim=claims, change=changes)
    def a_claim_and_a_change_one_after_the_other(
        self, claim: dict[str, Any], change: dict[str, Any]
    ) -> None:
        self.do(("change", change))
        self.do(self._claim(claim))

    @rule(request=requests)
    def request(self, request: dict[str, Any]) -> None:
        self.do(("request", request))

    @rule()
    def new_stock(self) -> None:
        self.do(("new_stock", {}))

    @rule(task=routines)
    def work_that_comes_by_itself(self, task: dict[str, Any]) -> None:
        self.do(("routine", task))

    @rule(seconds=jumps)
    def jump(self, seconds: int) -> None:
        self.do(("jump", {"seconds": seconds}))

    def _end(self, drawn: tuple[int, tuple[str, bool]]) -> Op:
        """Mostly of a claim that was handed out; its token may be over."""
        place, outcome = drawn
        last = sorted(self.real.tokens)[-6:]
        claim, number = last[place % len(last)]
        told_of = {"claim": claim, "number": number, "status": outcome[0], "retryable": outcome[1]}
        return "end", told_of

    # Neither rules nor draws depend on the tasks that the service hands out, because its timing
    # decides them. Without any token a step does nothing.
    @rule(drawn=ends)
    def end(self, drawn: tuple[int, tuple[str, bool]]) -> None:
        if self.real.tokens:
            self.do(self._end(drawn))

    @rule(one=ends, other=ends)
    def end_twice_at_once(
        self, one: tuple[int, tuple[str, bool]], other: tuple[int, tuple[str, bool]]
    ) -> None:
        if self.real.tokens:
            self.do(self._end(one), self._end(other))

    @rule(drawn=ends, claim=claims)
    def end_and_claim_at_once(
        self, drawn: tuple[int, tuple[str, bool]], claim: dict[str, Any]
    ) -> None:
        if self.real.tokens:
            self.do(self._end(drawn), self._claim(claim))

    @invariant()
    def shows_what_is_true(self) -> None:
        if self.models:
            self.do(("listed", {}))
            self.do(("heartbeat", {}))

    def teardown(self) -> None:
        """In the end nothing hangs: claimed by an agent that can do all, every task comes to an
        end.
        """
        if not self.models:
            return
        self.do(("change", {"mode": "full", "held": False}))
        for _ in range(200):
            self.do(("jump", {"seconds": 601}))
            self.do(self._claim({"kinds": SAID[-1], "most": 10}))
            mine = [number for claim, number in self.real.tokens if claim == self.claimed]
            if not mine:
                break
            for number in mine:
                self.do(("end", {"claim": self.claimed, "number": number, "status": "completed", "retryable": False}))  # fmt: skip
        self.do(("listed", {}))
        assert {task.status for model in self.models for task in model.tasks} <= ENDED
        self.do(("heartbeat", {}))


MAKERS = ("request", "new_stock", "routine")
ENDED = {"completed", "failed", "cancelled"}


def _explained(models: list[Model], told_of: list[tuple[Op, Answer]]) -> list[Model]:
    left: list[Model] = []
    wrong = []
    for model in models:
        for order in (told_of, told_of[::-1]) if len(told_of) > 1 else (told_of,):
            after = deepcopy(model)
            for (name, arguments), actual in order:
                expected = getattr(after, name)(**arguments)
                if expected != actual:
                    wrong.append(
                        f"{name}{arguments}: the model says {expected}, the service {actual}"
                    )
                    break
            else:
                if after not in left:
                    left.append(after)
    assert left, "\n".join(wrong)
    return left


async def run(a_seller: SellerBuilder, examples: int, steps: int) -> None:
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    await played(Tasks, a_seller, profile)


async def test_the_service_answers_as_the_model_does(a_seller):
    await run(a_seller, schedule.examples(4, 15), 25)


@pytest.mark.night
async def test_it_does_so_however_long(a_seller):
    await run(a_seller, SOAK_EXAMPLES, 60)
