"""Two to four phones pull one queue over the real routes: they mark without a network, send late, in
any order and again, while the desk marks orders and others are cancelled. Every copy is pulled at
most once, and nothing is lost.

A state machine in a thread of its own; its steps are run on the tests' event loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Coroutine
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
from browsers import signed_in
from builders import SellerBuilder
from orders_builder import an_item, an_order, change_order
from world import played

pytestmark = pytest.mark.day

SOAK_EXAMPLES = schedule.count("CARDSYNC_SOAK_EXAMPLES", 100, 10)
PHONES = st.integers(0, 3)
ITEMS = st.integers(0, 5)


class Pulls(RuleBasedStateMachine):
    def __init__(self, loop: asyncio.AbstractEventLoop, a_seller: SellerBuilder) -> None:
        super().__init__()
        self.loop, self.a_seller = loop, a_seller

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    @initialize(
        phones=st.integers(2, 4),
        wanted=st.lists(st.integers(1, 3), min_size=2, max_size=6),
    )
    def begin(self, phones: int, wanted: list[int]) -> None:
        self.seller = self.now(self.a_seller())
        self.owner = self.now(signed_in(self.seller))
        self.orders = [self.now(an_order(self.seller)) for _ in range(1 + len(wanted) // 2)]
        # The wanted copies of each item, and its order.
        self.wanted: dict[int, int] = {}
        self.order_of: dict[int, int] = {}
        for number, quantity in enumerate(wanted):
            order = self.orders[number % len(self.orders)]
            item = self.now(an_item(self.seller, order, product_name="A card", quantity=quantity))
            self.wanted[item], self.order_of[item] = quantity, order
        opened = self.now(self.seller.post("/api/pull_sessions", json={})).json()
        self.session = opened["id"]
        body = {"session_id": self.session}
        [made] = self.now(self.owner.post("/api/pull_links", json=body)).json()["links"]
        self.path = made["url"][made["url"].index("/p/") :]
        self.http = self.seller.service.client()
        self.numbers = itertools.count()
        self.outboxes: list[list[dict[str, Any]]] = [[] for _ in range(phones)]
        self.sent: list[tuple[str, dict[str, Any]]] = []
        # The copies that phones have in hand, and the orders that are not to be pulled any more.
        self.in_hand: Counter[int] = Counter()
        self.stopped: set[int] = set()

    def phone(self, number: int) -> int:
        return number % len(self.outboxes)

    def item(self, number: int) -> int:
        return list(self.wanted)[number % len(self.wanted)]

    def made(self, phone: int, kind: str, item: int, **more: Any) -> None:
        number = next(self.numbers)
        told = {"id": f"mark-{number:04}", "kind": kind, "item_id": item, "sequence": number}
        self.outboxes[phone].append(told | more)

    @rule(phone=PHONES, item=ITEMS, quantity=st.integers(1, 3))
    def pull(self, phone: int, item: int, quantity: int) -> None:
        phone, item = self.phone(phone), self.item(item)
        self.made(phone, "pulled", item, quantity=quantity)
        self.in_hand[item] += quantity

    @rule(phone=PHONES, item=ITEMS, kind=st.sampled_from(["defer", "missing"]))
    def say(self, phone: int, item: int, kind: str) -> None:
        self.made(self.phone(phone), kind, self.item(item))

    @rule(phone=PHONES, which=st.integers(0, 50))
    def undo(self, phone: int, which: int) -> None:
        phone = self.phone(phone)
        told = [*(mark for box in self.outboxes for mark in box), *(one for _, one in self.sent)]
        undone = {mark.get("undoes") for mark in told}
        mine = [*self.outboxes[phone], *(one for _, one in self.sent)]
        known = [m for m in mine if m["kind"] == "pulled" and m["id"] not in undone]
        if known:
            target = known[which % len(known)]
            self.made(phone, "undo", target["item_id"], undoes=target["id"])
            self.in_hand[target["item_id"]] -= target["quantity"]

    @rule(phones=st.sets(PHONES, min_size=1), data=st.data())
    def send(self, phones: set[int], data: st.DataObject) -> None:
        """Send some phones' outboxes at once, each in any order."""
        boxes = {phone: self.outboxes[phone] for phone in {self.phone(one) for one in phones}}
        told = {phone: data.draw(st.permutations(box)) for phone, box in boxes.items() if box}

        async def together() -> None:
            await asyncio.gather(*(self.deliver(f"phone-{p:04}", m) for p, m in told.items()))

        self.now(together())
        for phone, marks in told.items():
            self.sent.extend((f"phone-{phone:04}", mark) for mark in marks)
            self.outboxes[phone] = []

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        device, mark = data.draw(st.sampled_from(self.sent))
        self.now(self.deliver(device, [mark]))

    async def deliver(self, device: str, marks: list[dict[str, Any]]) -> None:
        body = {"device": device, "person": device, "marks": marks}
        answer = await self.http.post(f"{self.path}/marks", json=body)
        assert answer.status_code == 200, answer.text
        assert {one["id"] for one in answer.json()["outcomes"]} == {one["id"] for one in marks}

    @rule(phones=st.lists(PHONES, min_size=2, max_size=2), item=ITEMS)
    def show(self, phones: list[int], item: int) -> None:
        """One of two phones at once gets the card, or none if a third one has it."""

        async def claim(phone: int) -> bool:
            body = {"device": f"phone-{phone:04}", "item_id": self.item(item)}
            answer = await self.http.post(f"{self.path}/claims", json=body)
            return bool(answer.json()["claimed"])

        async def together() -> list[bool]:
            return await asyncio.gather(*(claim(self.phone(one)) for one in phones))

        claimed = self.now(together())
        if self.phone(phones[0]) != self.phone(phones[1]):
            assert sum(claimed) <= 1

    @rule(order=st.integers(0, 3))
    def cancel(self, order: int) -> None:
        order = self.orders[order % len(self.orders)]
        self.now(change_order(self.seller, order, status="Canceled"))
        self.stopped.add(order)

    @rule(order=st.integers(0, 3), mark=st.sampled_from(["pulled", "defer"]))
    def the_desk_marks(self, order: int, mark: str) -> None:
        order = self.orders[order % len(self.orders)]
        path = f"/api/pull_sessions/{self.session}/orders/{order}/{mark}"
        assert self.now(self.seller.post(path)).status_code in (200, 201)

    def queue(self) -> dict[int, dict[str, Any]]:
        answer = self.now(self.http.get(f"{self.path}/queue"))
        assert answer.status_code == 200, answer.text
        return {line["item_id"]: line for line in answer.json()["lines"]}

    @invariant()
    def every_copy_is_pulled_at_most_once(self) -> None:
        if not hasattr(self, "in_hand"):
            return
        lines = self.queue()
        assert lines.keys() == self.wanted.keys()
        for item, line in lines.items():
            stopped = self.order_of[item] in self.stopped
            assert line["state"] == "stopped" if stopped else line["state"] != "stopped"
            assert 0 <= line["pulled"] <= (0 if stopped else self.wanted[item])

    @invariant()
    def an_order_is_pulled_when_all_its_cards_are(self) -> None:
        if not hasattr(self, "in_hand"):
            return
        found = self.now(self.seller.get(f"/api/pull_sessions/{self.session}")).json()
        lines = self.queue()
        for order in found["orders"]:
            if order["id"] not in self.stopped:
                states = {lines[i]["state"] for i, o in self.order_of.items() if o == order["id"]}
                assert (order["pulled_at"] is not None) == (states == {"pulled"})

    def teardown(self) -> None:
        """Once all is sent, what is in hand is what is pulled and what is to be put back."""
        if not hasattr(self, "in_hand"):
            return
        for phone, box in enumerate(self.outboxes):
            if box:
                self.now(self.deliver(f"phone-{phone:04}", box))
        rows = self.now(
            self.seller.service.sql(
                self.seller.id,
                "SELECT item_id, sum(quantity) AS copies FROM pull_mark WHERE seller_id = :id"
                " AND device = 'desk' AND kind = 'pulled' AND NOT undone GROUP BY item_id",
                id=self.seller.id,
            )
        )
        at_the_desk = {row["item_id"]: int(row["copies"]) for row in rows}
        for item, line in self.queue().items():
            in_hand = self.in_hand[item] + at_the_desk.get(item, 0)
            assert line["pulled"] + line["surplus"] == in_hand
        self.an_order_is_pulled_when_all_its_cards_are()
        for http in (self.http, self.seller.http, self.owner.http):
            self.now(http.aclose())


EVERYDAY = settings(
    settings.get_profile("daily"),
    max_examples=schedule.examples(2, 10),
    stateful_step_count=20,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def run(a_seller: SellerBuilder, how: settings) -> None:
    await played(Pulls, a_seller, how)


async def test_every_copy_is_pulled_at_most_once_and_nothing_is_lost(
    a_seller: SellerBuilder,
) -> None:
    await run(a_seller, EVERYDAY)


@pytest.mark.night
async def test_very_many_pulls_lose_nothing(a_seller: SellerBuilder) -> None:
    how = settings(EVERYDAY, max_examples=SOAK_EXAMPLES, stateful_step_count=30, derandomize=False)
    await run(a_seller, how)
