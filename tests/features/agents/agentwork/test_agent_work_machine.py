"""Whatever agents, seller, marketplace and clock do in whatever order: a task is in one agent's
hand at a time, what has ended stays ended as it did, a listing is in one file at most unless
somebody says that it did not arrive, current prices move by imports and events alone, and the
heartbeat announces tasks exactly when a claim finds one.

A state machine in a thread of its own; its steps are run on the tests' event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from datetime import timedelta
from decimal import Decimal
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
from builders import SellerBuilder, a_csv, a_row, read_csv
from cardsync.platform import clock
from tasks_builder import TASKS, claim, end, told
from world import played

pytestmark = pytest.mark.day

SOAK_EXAMPLES = schedule.count("CARDSYNC_SOAK_EXAMPLES", 100, 10)
CARDS = (1, 2, 3)
ENDED = ("completed", "failed", "cancelled")
CLAIM_LIVES = timedelta(minutes=10)
MARKETS = st.sampled_from(["2.00", "2.10", "2.20"])


class AgentWork(RuleBasedStateMachine):
    def __init__(self, loop: asyncio.AbstractEventLoop, a_seller: SellerBuilder) -> None:
        super().__init__()
        self.loop, self.a_seller = loop, a_seller

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        clock.shift(timedelta(seconds=1))
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    @initialize()
    def begin(self) -> None:
        clock.reset()
        clock.stop()
        self.seller = self.now(self.a_seller(lines=["magic"]))
        # The claimed tasks, and whether their agents live; the ended tasks, and their outcome.
        self.held: dict[str, dict[str, Any]] = {}
        self.crashed: list[dict[str, Any]] = []
        self.ended: dict[int, tuple[str, str]] = {}
        # Files that were served and not yet reported: kind, content, entries.
        self.files: list[tuple[str, bytes, list[int]]] = []
        self.sent: set[int] = set()
        # The files of listings that nobody has answered for, by their entries.
        self.unanswered: dict[tuple[int, ...], bytes] = {}
        self.prices = dict.fromkeys(CARDS, Decimal("2.00"))
        self.entries = 0
        self.upload("2.00")

    def work(self) -> None:
        """The workers' turn: jobs, and what is due by its time."""
        self.now(self.worked())

    async def worked(self) -> None:
        service = self.seller.service
        await self.seller.sweep()
        await service.run_jobs()

    @rule(market=MARKETS)
    def upload(self, market: str) -> None:
        rows = [a_row(n, number=n, market=market, price=str(p)) for n, p in self.prices.items()]
        self.now(self.seller.import_csv(a_csv(*rows)))

    @rule(kind=st.sampled_from(["refresh_orders", "refresh_account", "backfill_orders"]))
    def a_person_asks(self, kind: str) -> None:
        answer = self.now(self.seller.post(TASKS, json={"kind": kind}))
        assert answer.status_code in (200, 201), answer.text

    @rule(cards=st.integers(1, 2))
    def publish(self, cards: int) -> None:
        self.entries += 1
        entries = [
            {"name": f"Card {self.entries * 10 + n}", "set": "Dominaria United",
             "number": str(self.entries * 10 + n), "condition": "NM", "quantity": 1,
             "price": "1.00", "game": "magic"}
            for n in range(cards)
        ]  # fmt: skip
        self.now(self.published(entries))

    async def published(self, entries: list[dict[str, Any]]) -> None:
        made = await self.seller.post("/api/quick_add", json={"entries": entries})
        assert made.status_code == 201, made.text
        ids = [entry["id"] for entry in made.json()["entries"]]
        answer = await self.seller.post("/api/quick_add/publish", json={"ids": ids})
        assert answer.status_code == 200, answer.text

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        runs = self.now(self.seller.get("/api/pricing/runs")).json()["runs"]
        run = data.draw(st.sampled_from([run["id"] for run in runs[:3]]))
        answer = self.now(self.seller.post("/api/pricing/rollbacks", json={"run_id": run}))
        assert answer.status_code in (201, 409), answer.text
        self.work()

    @rule(change=st.sampled_from(["paused", "goes on", "read_only", "full"]))
    def the_account_changes(self, change: str) -> None:
        if change in ("read_only", "full"):
            self.now(self.seller.set(sync_mode=change))
        else:
            self.now(self.seller.set(automatic_pricing_paused=change == "paused"))

    @rule(agents=st.integers(1, 3), limit=st.integers(1, 3))
    def claim(self, agents: int, limit: int) -> None:
        waits = self.now(told(self.seller))

        async def together() -> list[list[dict[str, Any]]]:
            return await asyncio.gather(*(claim(self.seller, limit=limit) for _ in range(agents)))

        tasks = [task for found in self.now(together()) for task in found]
        assert waits == bool(tasks)
        assert len({task["id"] for task in tasks}) == len(tasks)
        at = clock.now()
        for task in tasks:
            assert task["id"] not in self.ended
            for other in [*self.held.values(), *self.crashed]:
                ran_out = other["until"] <= at
                assert other["id"] != task["id"] or other["over"] or ran_out
            self.held[task["claim_token"]] = task | {"until": at + CLAIM_LIVES, "over": False}

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def an_agent_dies(self, data: st.DataObject) -> None:
        """Its claim is abandoned; whether its answer was under way, nobody knows."""
        token = data.draw(st.sampled_from(sorted(self.held)))
        self.crashed.append(self.held.pop(token))

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        status=st.sampled_from(["completed", "completed", "failed"]),
        retryable=st.booleans(),
        twice=st.booleans(),
    )
    def an_agent_ends(self, data: st.DataObject, status: str, retryable: bool, twice: bool) -> None:
        token = data.draw(st.sampled_from(sorted(self.held)))
        task = self.held.pop(token)
        body = {"retryable": retryable} if status == "failed" else {}
        code, shown = self.now(end(self.seller, task, status, **body))
        task["over"] = True
        if code == 409:
            assert shown == "claim_expired"
            # It ran out, or the task ended otherwise: by an event, or with its rollback.
            assert task["until"] <= clock.now() or self.status_of(task["id"]) in ENDED
            return
        assert task["until"] > clock.now() or task["id"] in self.ended
        becomes = "pending" if status == "failed" and retryable else status
        assert shown["status"] in (becomes, "failed", "cancelled")
        if twice:
            assert self.now(end(self.seller, task, status, **body))[0] == 200
            other = "failed" if status == "completed" else "completed"
            assert self.now(end(self.seller, task, other)) == (409, "claim_expired")

    def status_of(self, task_id: int) -> str:
        return str(self.tasks()[task_id][0])

    @precondition(lambda self: self.crashed)
    @rule(data=st.data())
    def a_dead_agents_answer_comes_late(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.crashed))
        code, _ = self.now(end(self.seller, task))
        if code == 200:
            task["over"] = True
        else:
            assert code == 409
            over = task["over"] or task["until"] <= clock.now()
            assert over or self.status_of(task["id"]) in ENDED

    @rule(agents=st.integers(1, 2))
    def fetch(self, agents: int) -> None:
        async def together() -> list[Any]:
            return await asyncio.gather(*(self.seller.export() for _ in range(agents)))

        for answer in self.now(together()):
            assert answer.status_code == 200
            ids = [int(id) for id in answer.headers.get("X-Quick-Add-Ids", "").split(",") if id]
            if self.sent & set(ids):
                # Nobody has answered for the file yet, so its agent gets it again.
                assert self.unanswered[tuple(ids)] == answer.content
            self.sent |= set(ids)
            if ids:
                self.unanswered[tuple(ids)] = answer.content
            if read_csv(answer.content):
                file = (answer.headers["X-Price-Export-Kind"], answer.content, ids)
                # An agent that has the file does not take it a second time.
                if not ids or file not in self.files:
                    self.files.append(file)

    @precondition(lambda self: self.files)
    @rule(data=st.data(), twice=st.booleans())
    def the_marketplace_takes_a_file(self, data: st.DataObject, twice: bool) -> None:
        kind, content, ids = self.files.pop(data.draw(st.integers(0, len(self.files) - 1)))
        self.unanswered.pop(tuple(ids), None)
        moved = {
            int(row["TCGplayer Id"]): row["TCG Marketplace Price"]
            for row in read_csv(content)
            if kind != "quick_add"
        }
        self.prices |= {id: Decimal(price) for id, price in moved.items()}
        rows = [{"marketplace_id": id, "new_price": price} for id, price in moved.items()]
        self.tell("repricing_events", content, twice, rows=rows)

    @precondition(lambda self: self.files)
    @rule(data=st.data(), twice=st.booleans())
    def the_marketplace_refuses_a_file(self, data: st.DataObject, twice: bool) -> None:
        _, content, ids = self.files.pop(data.draw(st.integers(0, len(self.files) - 1)))
        self.sent -= set(ids)
        self.unanswered.pop(tuple(ids), None)
        error = {"code": "refused", "message": "the site was down"}
        self.tell("repricing_events/failure", content, twice, step="import_prices", error=error)

    @precondition(lambda self: self.files)
    @rule(data=st.data())
    def a_file_is_lost(self, data: st.DataObject) -> None:
        self.files.pop(data.draw(st.integers(0, len(self.files) - 1)))

    def tell(self, path: str, content: bytes, twice: bool, **body: Any) -> None:
        event = {
            "imported_at": clock.rfc3339(clock.now()),
            "row_count": len(read_csv(content)),
            "file_sha256": hashlib.sha256(content).hexdigest(),
        }
        answers = [
            self.now(self.seller.post(f"/api/v1/{path}", json=event | body))
            for _ in range(1 + twice)
        ]
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["id"] for answer in answers}) == 1
        self.work()

    @rule(minutes=st.sampled_from([5, 11, 11, 31, 60 * 25]))
    def time_passes(self, minutes: int) -> None:
        clock.shift(timedelta(minutes=minutes))
        self.work()

    def tasks(self) -> dict[int, tuple[str, str]]:
        found = self.now(self.seller.get(TASKS, params={"per_page": 200})).json()["tasks"]
        return {task["id"]: (task["status"], str(task["finished_at"])) for task in found}

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        if not hasattr(self, "ended"):
            return
        tasks = self.tasks()
        for id, how in self.ended.items():
            assert tasks[id] == how
        self.ended = {id: how for id, how in tasks.items() if how[0] in ENDED}

    @invariant()
    def prices_move_by_imports_and_events_alone(self) -> None:
        if not hasattr(self, "prices"):
            return
        cards = {card["marketplace_id"]: card["price"] for card in self.now(self.seller.cards())}
        assert {id: cards[id] for id in CARDS} == self.prices

    def teardown(self) -> None:
        """In the end every task comes to its end."""
        if not hasattr(self, "ended"):
            return
        for _ in range(4):
            self.time_passes(60 * 25)
            self.claim(1, 10)
            for token in sorted(self.held):
                self.now(end(self.seller, self.held.pop(token)))
        self.what_has_ended_stays_as_it_ended()
        assert not self.now(told(self.seller))
        self.now(self.seller.http.aclose())
        clock.reset()


EVERYDAY = settings(
    settings.get_profile("daily"),
    max_examples=schedule.examples(2, 3),
    stateful_step_count=10,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def run(a_seller: SellerBuilder, how: settings) -> None:
    await played(AgentWork, a_seller, how)


async def test_each_hand_over_counts_once(a_seller: SellerBuilder) -> None:
    await run(a_seller, EVERYDAY)


@pytest.mark.night
async def test_each_hand_over_of_very_many_sequences_counts_once(a_seller: SellerBuilder) -> None:
    how = settings(EVERYDAY, max_examples=SOAK_EXAMPLES, stateful_step_count=40, derandomize=False)
    await run(a_seller, how)
