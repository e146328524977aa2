"""Whatever seller and agent do with rules, runs and rollbacks in whatever order, two of them at
the same time: prices, targets, files and rollbacks are what a small model says
(tests/pricing_model.py).

A Hypothesis state machine in a thread of its own; each of its steps is run on the tests' event
loop.
"""

from __future__ import annotations

import asyncio
import hashlib
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
    precondition,
    rule,
    run_state_machine_as_test,
)

import soak
from builders import Seller, SellerBuilder, a_csv, a_row, read_csv
from cardsync import clock
from pricing_model import CARDS, Model, Prices

pytestmark = pytest.mark.slow

SOAK_EXAMPLES = soak.count("CARDSYNC_SOAK_EXAMPLES", 120, 12)
TICK = timedelta(seconds=1)
RULES = "/api/pricing/rules"
ROLLBACKS = "/api/pricing/rollbacks"
Op = tuple[str, dict[str, Any]]

markets = st.fixed_dictionaries(dict.fromkeys(CARDS, st.sampled_from([100, 150, 200])))
reaches = st.sampled_from([CARDS, CARDS, (1,), (2,)])


def text(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def cents(value: Any) -> int | None:
    return None if value is None else round(float(value) * 100)


class Real:
    """The same calls over HTTP."""

    def __init__(self, seller: Seller) -> None:
        self.seller = seller
        self.rules: list[int] = []
        self.listed: Prices = dict.fromkeys(CARDS, 100)
        self.held: tuple[bytes, list[dict[str, Any]]] = (b"", [])

    async def make_rule(self, adjust_bp: int, cards: tuple[int, ...], published: bool) -> int:
        query = "" if cards == CARDS else " or ".join(f'"Card {card}"' for card in cards)
        body = {
            "name": "R",
            "priority": len(self.rules) + 1,
            "adjust_bp": adjust_bp,
            "query": query,
        }
        answer = await self.seller.post(
            RULES, json=body | {"state": "published" if published else "draft"}
        )
        self.rules.append(answer.json()["id"])
        return answer.status_code

    async def publish(self, number: int) -> int:
        return (await self.seller.post(f"{RULES}/{self.rules[number]}/publish")).status_code

    async def switch(self, number: int, enabled: bool) -> int:
        what = "enable" if enabled else "disable"
        return (await self.seller.post(f"{RULES}/{self.rules[number]}/{what}")).status_code

    async def upload(self, market: Prices) -> str:
        rows = [
            a_row(card, market=text(market[card]), price=text(self.listed[card])) for card in CARDS
        ]
        report = await self.seller.import_csv(a_csv(*rows))
        return str(report["state"])

    async def reprice(self) -> str:
        answer = await self.seller.post("/api/pricing/reprice")
        await self.seller.service.run_jobs()
        run = await self.seller.get(f"/api/pricing/runs/{answer.json()['run_id']}")
        return str(run.json()["state"])

    async def ask(self, scope: tuple[str, int]) -> tuple[int, str, int]:
        name, number = scope
        runs = [run["id"] for run in (await self.seller.get("/api/pricing/runs")).json()["runs"]][
            ::-1
        ]
        body = {"run_id": runs[number]} if name == "run" else {"rule_id": self.rules[number]}
        answer = await self.seller.post(ROLLBACKS, json=body)
        told = answer.json()
        return answer.status_code, told.get("state") or told["code"], told.get("cards", 0)

    async def work(self) -> None:
        await self.seller.service.run_jobs()

    async def cancel(self) -> tuple[int, str]:
        newest = (await self.seller.get(ROLLBACKS)).json()["rollbacks"][:1]
        if not newest:
            return 0, ""
        answer = await self.seller.post(f"{ROLLBACKS}/{newest[0]['id']}/cancel")
        return answer.status_code, answer.json().get("state") or answer.json()["code"]

    async def fetch(self) -> Prices:
        answer = await self.seller.export()
        assert answer.status_code == 200
        rows = {
            int(row["TCGplayer Id"]): row["TCG Marketplace Price"]
            for row in read_csv(answer.content)
        }
        self.held = (
            answer.content,
            [{"marketplace_id": card, "new_price": price} for card, price in rows.items()],
        )
        return {card: cents(price) or 0 for card, price in rows.items()}

    async def import_file(self) -> None:
        self.listed |= {row["marketplace_id"]: cents(row["new_price"]) or 0 for row in self.held[1]}

    async def report(self, outcome: str, with_rows: bool, number: int) -> int:
        data, rows = self.held
        body: dict[str, Any] = {
            "sync_cycle_id": f"c{number}",
            "imported_at": clock.rfc3339(clock.now()),
            "row_count": len(rows),
            "file_sha256": hashlib.sha256(data).hexdigest(),
        }
        if outcome == "failed":
            failure = {"step": "import_prices", "error": {"code": "no", "message": "no"}}
            return (
                await self.seller.post("/api/v1/repricing_events/failure", json=body | failure)
            ).status_code
        body |= {"rows": rows} if with_rows else {}
        return (await self.seller.post("/api/v1/repricing_events", json=body)).status_code

    async def jump(self, seconds: int) -> None:
        clock.shift(timedelta(seconds=seconds))

    async def kept(self) -> tuple[Any, Any]:
        cards = {
            card["marketplace_id"]: (cents(card["price"]), cents(card["target_price"]))
            for card in await self.seller.cards()
        }
        told = (await self.seller.get(ROLLBACKS)).json()["rollbacks"]
        await self.seller.fingerprint_is_right()
        return cards, [rollback["state"] for rollback in told[::-1]]


class Pricing(RuleBasedStateMachine):
    """One seller.

    `models` are all that may be true: of calls made at the same time either may have been the
    first.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, a_seller: SellerBuilder) -> None:
        super().__init__()
        self.loop, self.a_seller = loop, a_seller
        self.models: list[Model] = []
        self.reports = self.jumps = 0

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def do(self, *ops: Op) -> None:
        """One call, or several at the same time; some order of them must explain every answer."""
        answers = self.now(self._gather(ops))
        before, self.models, wrong = self.models, [], []
        told = list(zip(ops, answers, strict=True))
        for model in before:
            for order in (told, told[::-1]):
                after = deepcopy(model)
                after.now += 1
                for (name, arguments), actual in order:
                    expected = getattr(after, name)(**arguments)
                    if expected != actual:
                        wrong.append(
                            f"{name}{arguments}: the model says {expected}, the service {actual}"
                        )
                        break
                else:
                    if after not in self.models:
                        self.models.append(after)
        assert self.models, "\n".join(wrong)

    async def _gather(self, ops: tuple[Op, ...]) -> list[Any]:
        clock.shift(TICK)
        return await asyncio.gather(
            *(getattr(self.real, name)(**arguments) for name, arguments in ops)
        )

    @property
    def model(self) -> Model:
        return self.models[0]

    @initialize(market=markets)
    def begin(self, market: Prices) -> None:
        clock.reset()
        clock.stop()
        seller = self.now(self.a_seller())
        self.real = Real(seller)
        off = self.now(
            seller.http.patch("/api/pricing/settings", json={"default_rule_enabled": False})
        )
        assert off.status_code == 200
        self.models = [Model()]
        self.do(("make_rule", {"adjust_bp": 1000, "cards": CARDS, "published": True}))
        self.do(("upload", {"market": market}))

    @rule(adjust_bp=st.sampled_from([-1000, 0, 1000, 2500]), cards=reaches, published=st.booleans())
    def make_rule(self, adjust_bp: int, cards: tuple[int, ...], published: bool) -> None:
        self.do(("make_rule", {"adjust_bp": adjust_bp, "cards": cards, "published": published}))

    @rule(data=st.data(), how=st.sampled_from(["publish", "enable", "disable"]))
    def change_rule(self, data: st.DataObject, how: str) -> None:
        number = data.draw(st.integers(0, len(self.model.rules) - 1))
        if how == "publish":
            self.do(("publish", {"number": number}))
        else:
            self.do(("switch", {"number": number, "enabled": how == "enable"}))

    @rule(market=markets)
    def upload(self, market: Prices) -> None:
        self.do(("upload", {"market": market}))
        self.jumps = 0

    @rule()
    def reprice(self) -> None:
        self.do(("reprice", {}))

    def a_scope(self, data: st.DataObject) -> tuple[str, int]:
        runs = st.tuples(
            st.just("run"), st.integers(max(0, len(self.model.runs) - 4), len(self.model.runs) - 1)
        )
        rules = st.tuples(st.just("rule"), st.integers(0, len(self.model.rules) - 1))
        return data.draw(st.one_of(runs, rules))

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        self.do(("ask", {"scope": self.a_scope(data)}))

    @rule(data=st.data())
    def ask_and_prepare(self, data: st.DataObject) -> None:
        self.do(("ask", {"scope": self.a_scope(data)}))
        self.do(("work", {}))

    @rule(data=st.data(), other=st.sampled_from(["ask", "cancel", "fetch"]))
    def ask_at_once_with(self, data: st.DataObject, other: str) -> None:
        arguments = {"scope": self.a_scope(data)} if other == "ask" else {}
        self.do(("ask", {"scope": self.a_scope(data)}), (other, arguments))

    @rule(one=st.sampled_from(["fetch", "cancel"]), other=st.sampled_from(["fetch", "cancel"]))
    def two_at_once(self, one: str, other: str) -> None:
        self.do((one, {}), (other, {}))

    @rule()
    def work(self) -> None:
        self.do(("work", {}))

    @rule()
    def cancel(self) -> None:
        self.do(("cancel", {}))

    @rule()
    def fetch(self) -> None:
        self.do(("fetch", {}))

    def a_report(self, outcome: str, with_rows: bool) -> Op:
        self.reports += 1
        return "report", {"outcome": outcome, "with_rows": with_rows, "number": self.reports}

    @rule(with_rows=st.booleans())
    def the_agent_fetches_imports_and_reports(self, with_rows: bool) -> None:
        for op in (("fetch", {}), ("import_file", {}), self.a_report("imported", with_rows)):
            self.do(op)

    @precondition(lambda self: self.model.held)
    @rule(outcome=st.sampled_from(["imported", "failed"]), with_rows=st.booleans())
    def report(self, outcome: str, with_rows: bool) -> None:
        self.do(self.a_report(outcome, with_rows))

    @precondition(lambda self: self.model.held)
    @rule(
        outcome=st.sampled_from(["imported", "failed"]), other=st.sampled_from(["cancel", "report"])
    )
    def report_at_once_with(self, outcome: str, other: str) -> None:
        second = self.a_report("imported", True) if other == "report" else (other, {})
        self.do(self.a_report(outcome, True), second)
        self.do(("work", {}))

    @precondition(lambda self: self.jumps < 4)
    @rule(hours=st.sampled_from([1, 25]))
    def jump(self, hours: int) -> None:
        self.jumps += 1
        self.do(("jump", {"seconds": hours * 3600}))

    @invariant()
    def holds_what_is_true(self) -> None:
        if not self.models:
            return
        kept = self.now(self.real.kept())
        said = [model.kept() for model in self.models]
        assert kept in said
        self.models = [model for model in self.models if model.kept() == kept]

    def teardown(self) -> None:
        """A day later nothing is open, and the agent gets what the rules ask."""
        if not self.models:
            return
        self.do(("jump", {"seconds": 25 * 3600}))
        self.do(("upload", {"market": dict.fromkeys(CARDS, 150)}))
        self.do(("fetch", {}))
        self.holds_what_is_true()
        assert all(model.open is None for model in self.models)
        self.now(self.real.seller.http.aclose())
        clock.reset()


EVERYDAY = settings(
    max_examples=5,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def run(a_seller: SellerBuilder, how: settings) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(
        run_state_machine_as_test, lambda: Pricing(loop, a_seller), settings=how
    )
    await a_seller.service.run_jobs()


async def test_any_sequence_is_answered_as_the_model_says(a_seller: SellerBuilder) -> None:
    await run(a_seller, EVERYDAY)


@pytest.mark.soak
async def test_very_many_long_sequences_are_answered_as_the_model_says(
    a_seller: SellerBuilder,
) -> None:
    how = settings(EVERYDAY, max_examples=SOAK_EXAMPLES, stateful_step_count=40, derandomize=False)
    await run(a_seller, how)
