"""Seller, staff and agent act for a year, in any order and two at the same time.

Rules, sales, pauses, runs, rollbacks and refunds come in between: prices, targets, files, states
and amounts are what a small model says (tests/pricing_model.py).

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
)

import schedule
from browsers import A_PASSWORD, Browser, joined, signed_in
from builders import Seller, SellerBuilder, a_csv, a_row, an_order, read_csv
from cardsync.platform import clock
from pricing_model import CARDS, Model, Prices
from world import played

pytestmark = pytest.mark.day

SOAK_EXAMPLES = schedule.count("CARDSYNC_SOAK_EXAMPLES", 120, 12)
TICK = timedelta(seconds=1)
RULES = "/api/pricing/rules"
ROLLBACKS = "/api/pricing/rollbacks"
SALES = "/api/pricing/sales"
ACCOUNT = "/api/account"
# The other reasons explain and hold nothing back.
HOLDING = ("automatic_pricing_paused", "rollback_preparing")
# The requests that set prices: the method, the path and the body.
CHEAP = {"name": "Cheap", "adjust_bp": -9000}
ALWAYS = {"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z"}
FORBIDDEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "make a rule": ("POST", RULES, CHEAP | {"state": "published", "priority": 900}),
    "publish a rule": ("POST", RULES + "/{rule}/publish", {}),
    "switch a rule off": ("POST", RULES + "/{rule}/disable", {}),
    "make a sale": ("POST", SALES, CHEAP | ALWAYS),
    "change a sale": ("PATCH", SALES + "/{sale}", {"adjust_bp": -9000}),
    "delete a sale": ("DELETE", SALES + "/{sale}", {}),
    "pin": ("PUT", "/api/pricing/pins/1", {"price": "0.01"}),
    "set": ("PATCH", "/api/pricing/settings", {"default_rule_enabled": True}),
    "reprice": ("POST", "/api/pricing/reprice", {}),
    "roll back": ("POST", ROLLBACKS, {"since": "2020-01-01T00:00:00Z"}),
    "cancel": ("POST", ROLLBACKS + "/1/cancel", {}),
    "pause": ("PATCH", ACCOUNT, {"automatic_pricing_paused": True}),
    "go on": ("PATCH", ACCOUNT, {"automatic_pricing_paused": False}),
}
Op = tuple[str, dict[str, Any]]

markets = st.fixed_dictionaries(dict.fromkeys(CARDS, st.sampled_from([100, 150, 200])))
reaches = st.sampled_from([CARDS, CARDS, (1,), (2,)])
numbers = st.sampled_from(["A-1", "A-2", "A-3", "A-4"])
amounts = st.sampled_from([100, 250, 1181])
refund_rows = st.fixed_dictionaries(
    {},
    optional={
        "product_amt": amounts,
        "shipping_amt": st.sampled_from([0, 131]),
        "total_amt": amounts,
        "refund_type": st.sampled_from(["full", "partial"]),
    },
)


def text(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def selecting(cards: tuple[int, ...]) -> str:
    return "" if cards == CARDS else " or ".join(f'"Card {card}"' for card in cards)


def cents(value: Any) -> int | None:
    return None if value is None else round(float(value) * 100)


class Real:
    """The same calls over HTTP."""

    def __init__(self, seller: Seller) -> None:
        self.seller = seller
        self.rules: list[int] = []
        self.sales: list[int] = []
        self.browsers: dict[str, Browser] = {}
        self.listed: Prices = dict.fromkeys(CARDS, 100)
        self.held: tuple[bytes, list[dict[str, Any]]] = (b"", [])

    async def make_rule(self, adjust_bp: int, cards: tuple[int, ...], published: bool) -> int:
        body = {
            "name": "R",
            "priority": len(self.rules) + 1,
            "adjust_bp": adjust_bp,
            "query": selecting(cards),
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

    async def runs(self) -> list[int]:
        """Every one of them: in a year there are more than the interface lists."""
        query = "SELECT id FROM price_run WHERE seller_id = :id ORDER BY id"
        rows = await self.seller.service.sql(self.seller.id, query, id=self.seller.id)
        return [row["id"] for row in rows]

    async def ask(self, scope: tuple[str, int]) -> tuple[int, str, int]:
        name, number = scope
        runs = await self.runs()
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

    async def fetch(self) -> tuple[Prices, list[str]]:
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
        told = answer.headers.get("X-Price-Export-Empty-Reason", "").split(",")
        prices = {card: cents(price) or 0 for card, price in rows.items()}
        return prices, [reason for reason in HOLDING if reason in told]

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

    async def make_sale(
        self,
        adjust_bp: int,
        cards: tuple[int, ...],
        starts: int,
        hours: int,
    ) -> int:
        begin = clock.now() + timedelta(hours=starts)
        times = {
            "starts_at": clock.rfc3339(begin),
            "ends_at": clock.rfc3339(begin + timedelta(hours=hours)),
        }
        body = {"name": "S", "adjust_bp": adjust_bp, "query": selecting(cards)} | times
        answer = await self.seller.post(SALES, json=body)
        self.sales.append(answer.json()["id"])
        return answer.status_code

    async def _change_sale(self, number: int, change: dict[str, Any]) -> int:
        answer = await self.seller.http.patch(f"{SALES}/{self.sales[number]}", json=change)
        return answer.status_code

    async def switch_sale(self, number: int, enabled: bool) -> int:
        return await self._change_sale(number, {"enabled": enabled})

    async def end_sale(self, number: int) -> int:
        return await self._change_sale(number, {"ends_at": clock.rfc3339(clock.now())})

    async def delete_sale(self, number: int) -> int:
        return (await self.seller.http.delete(f"{SALES}/{self.sales[number]}")).status_code

    async def minute(self) -> None:
        clock.shift(timedelta(minutes=1))
        await self.seller.sweep()
        await self.seller.service.run_jobs()

    async def browser(self, role: str) -> Browser:
        """A member who signs in again when the session was over meanwhile."""
        email = self.seller.email if role == "owner" else f"staff-{self.seller.email}"
        known = self.browsers.get(role)
        if known is None and role == "staff":
            self.browsers[role] = await joined(self.seller, email)
        elif known is None or not await known.is_in():
            password = self.seller.password if role == "owner" else A_PASSWORD
            self.browsers[role] = await signed_in(self.seller, email, password)
            if known is not None:
                await known.http.aclose()
        return self.browsers[role]

    async def pause(self, paused: bool, by: str) -> int:
        if by == "operator":
            await self.seller.set(automatic_pricing_paused=paused)
            return 200
        owner = await self.browser("owner")
        answer = await owner.send("PATCH", ACCOUNT, json={"automatic_pricing_paused": paused})
        return answer.status_code

    async def staff_tries(self, what: str, number: int) -> tuple[int, str]:
        method, path, body = FORBIDDEN[what]
        rule = self.rules[number % len(self.rules)]
        sale = self.sales[number % len(self.sales)] if self.sales else 1
        staff = await self.browser("staff")
        options = {"json": body} if body else {}
        answer = await staff.send(method, path.format(rule=rule, sale=sale), **options)
        return answer.status_code, answer.json()["code"]

    async def order(self, number: str, total: int) -> str:
        report = await self.seller.orders([an_order(number, total_amt=text(total))])
        return str(report["state"])

    async def refund(self, number: str, row: dict[str, Any]) -> str:
        told = {name: text(v) if isinstance(v, int) else v for name, v in row.items()}
        report = await self.seller.refunds([{"order_number": number} | told])
        return str(report["state"])

    async def refunds(self, by: str) -> dict[str, tuple[int | None, str | None]]:
        reader = self.seller if by == "key" else await self.browser(by)
        answer = await reader.get("/api/orders", params={"refund": "true"})
        return {
            order["order_number"]: (cents(order["refund_amt"]), order["refund_type"])
            for order in answer.json()["orders"]
        }

    async def close(self) -> None:
        for browser in self.browsers.values():
            await browser.http.aclose()
        await self.seller.http.aclose()

    async def kept(self) -> tuple[Any, ...]:
        cards = {
            card["marketplace_id"]: (cents(card["price"]), cents(card["target_price"]))
            for card in await self.seller.cards()
        }
        told = (await self.seller.get(ROLLBACKS)).json()["rollbacks"]
        await self.seller.fingerprint_is_right()
        states = [rollback["state"] for rollback in told[::-1]]
        runs = len(await self.runs())
        listed = {rule["id"]: rule for rule in (await self.seller.get(RULES)).json()["rules"]}
        rules = [(listed[id]["state"] == "published", listed[id]["enabled"]) for id in self.rules]
        on = (await self.seller.get(SALES)).json()["sales"]
        sales = [(sale["adjust_bp"], sale["enabled"]) for sale in on]
        account = (await self.seller.get(ACCOUNT)).json()
        return cards, states, runs, rules, sales, account["automatic_pricing_paused"]


class Pricing(RuleBasedStateMachine):
    """One seller.

    `models` are all that may be true: of calls made at the same time either may have been the
    first.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, a_seller: SellerBuilder) -> None:
        super().__init__()
        self.loop, self.a_seller = loop, a_seller
        self.models: list[Model] = []
        self.reports = 0

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
    def the_agent_imports(self, with_rows: bool) -> None:
        self.the_agent_fetches_imports_and_reports(with_rows)

    def the_agent_fetches_imports_and_reports(self, with_rows: bool) -> None:
        for op in (("fetch", {}), ("import_file", {}), self.a_report("imported", with_rows)):
            self.do(op)

    @rule(market=markets, days=st.sampled_from([2, 4]))
    def an_import_makes_no_market_price_younger(self, market: Prices, days: int) -> None:
        self.do(("upload", {"market": market}))
        self.do(("jump", {"seconds": days * 24 * 3600}))
        self.the_agent_fetches_imports_and_reports(with_rows=True)
        self.do(("jump", {"seconds": 4 * 24 * 3600}))
        self.do(("reprice", {}))

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

    @rule(hours=st.sampled_from([1, 25, 25, 60, 8 * 24]))
    def jump(self, hours: int) -> None:
        self.do(("jump", {"seconds": hours * 3600}))

    @rule(days=st.sampled_from([10, 30, 90]), market=markets)
    def weeks_pass_and_the_next_upload_comes(self, days: int, market: Prices) -> None:
        self.do(("jump", {"seconds": days * 24 * 3600}))
        self.do(("upload", {"market": market}))

    @rule()
    def minute(self) -> None:
        self.do(("minute", {}))

    @rule(
        adjust_bp=st.sampled_from([-2000, -5000]),
        cards=reaches,
        starts=st.sampled_from([-1, 0, 1, 24]),
        hours=st.sampled_from([2, 30, 20 * 24]),
        then=st.sampled_from(["nothing", "minute", "upload"]),
    )
    def make_sale(
        self,
        adjust_bp: int,
        cards: tuple[int, ...],
        starts: int,
        hours: int,
        then: str,
    ) -> None:
        sale = {"adjust_bp": adjust_bp, "cards": cards, "starts": starts, "hours": hours}
        self.do(("make_sale", sale))
        if then == "minute":
            self.do(("minute", {}))
        elif then == "upload":
            self.do(("upload", {"market": self.model.market}))

    def a_change_of_a_sale(self, data: st.DataObject) -> Op:
        last = len(self.model.sales) - 1
        number = data.draw(st.integers(max(0, last - 3), last))
        how = data.draw(st.sampled_from(["on", "off", "end", "delete"]))
        if how in ("on", "off"):
            return "switch_sale", {"number": number, "enabled": how == "on"}
        return f"{how}_sale", {"number": number}

    @precondition(lambda self: self.model.sales)
    @rule(data=st.data(), then=st.sampled_from(["nothing", "fetch", "minute"]))
    def change_sale(self, data: st.DataObject, then: str) -> None:
        self.do(self.a_change_of_a_sale(data))
        if then != "nothing":
            self.do((then, {}))

    @precondition(lambda self: self.model.sales)
    @rule(data=st.data())
    def change_sale_at_once_with_fetch(self, data: st.DataObject) -> None:
        self.do(self.a_change_of_a_sale(data), ("fetch", {}))

    @rule(
        adjust_bp=st.sampled_from([-2000, -5000]),
        cards=reaches,
        paused=st.sampled_from(["not", "over its start", "over its end"]),
    )
    def a_sale_comes_and_goes(self, adjust_bp: int, cards: tuple[int, ...], paused: str) -> None:
        """Around each edge the agent asks before the timer has run, and again afterwards."""
        sale = {"adjust_bp": adjust_bp, "cards": cards, "starts": 1, "hours": 2}
        self.do(("make_sale", sale))
        for edge, hours in (("start", 1), ("end", 2)):
            if paused == f"over its {edge}":
                self.do(("pause", {"paused": True, "by": "owner"}))
            self.do(("jump", {"seconds": hours * 3600}))
            self.do(("fetch", {}))
            self.do(("minute", {}))
            self.holds_what_is_true()
            if paused == f"over its {edge}":
                self.do(("pause", {"paused": False, "by": "owner"}))
                self.do(("minute", {}))
                self.holds_what_is_true()
            self.do(("fetch", {}))

    @rule(by=st.sampled_from(["owner", "operator"]), with_fetch=st.booleans())
    def pause_or_go_on(self, by: str, with_fetch: bool) -> None:
        beside: list[Op] = [("fetch", {})] if with_fetch else []
        self.do(("pause", {"paused": not self.model.paused, "by": by}), *beside)

    @precondition(lambda self: self.model.paused)
    @rule()
    def go_on(self) -> None:
        self.do(("pause", {"paused": False, "by": "operator"}))
        self.do(("minute", {}))

    @rule(what=st.sampled_from(sorted(FORBIDDEN)), number=st.integers(0, 9))
    def staff_tries(self, what: str, number: int) -> None:
        self.do(("staff_tries", {"what": what, "number": number}))

    @rule(number=numbers, total=amounts)
    def order(self, number: str, total: int) -> None:
        self.do(("order", {"number": number, "total": total}))
        self.do(("refunds", {"by": "key"}))

    @rule(number=numbers, row=refund_rows, by=st.sampled_from(["key", "owner", "staff"]))
    def refund(self, number: str, row: dict[str, Any], by: str) -> None:
        self.do(("refund", {"number": number, "row": row}))
        self.do(("refunds", {"by": by}))

    @invariant()
    def holds_what_is_true(self) -> None:
        if not self.models:
            return
        kept = self.now(self.real.kept())
        said = [model.kept() for model in self.models]
        assert kept in said
        self.models = [model for model in self.models if model.kept() == kept]

    def teardown(self) -> None:
        """A day later nothing is open; without pause and sales the agent gets the rules' prices."""
        if not self.models:
            return
        self.do(("pause", {"paused": False, "by": "operator"}))
        for number in range(len(self.model.sales)):
            self.do(("delete_sale", {"number": number}))
        self.do(("jump", {"seconds": 25 * 3600}))
        self.do(("minute", {}))
        self.do(("upload", {"market": dict.fromkeys(CARDS, 150)}))
        self.do(("fetch", {}))
        self.do(("refunds", {"by": "key"}))
        self.holds_what_is_true()
        assert all(model.open is None for model in self.models)
        self.now(self.real.close())
        clock.reset()


EVERYDAY = settings(
    max_examples=schedule.examples(2, 4),
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def run(a_seller: SellerBuilder, how: settings) -> None:
    await played(Pricing, a_seller, how)
    await a_seller.service.run_jobs()


async def test_any_sequence_is_answered_as_the_model_says(a_seller: SellerBuilder) -> None:
    await run(a_seller, EVERYDAY)


@pytest.mark.night
async def test_very_many_long_sequences_are_answered_as_the_model_says(
    a_seller: SellerBuilder,
) -> None:
    how = settings(EVERYDAY, max_examples=SOAK_EXAMPLES, stateful_step_count=40, derandomize=False)
    await run(a_seller, how)
