"""Owner, agent, marketplace and imports act in any order, answers are lost and time passes: each
published delta is listed exactly once in effect, or rejected, or it is still shown to the owner as
published or pending.

The marketplace of this test applies a file's row or does not; what becomes known of it is drawn by
Hypothesis. A state machine in a thread of its own; its steps are run on the tests' event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
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
from browsers import signed_in
from builders import SellerBuilder, a_csv, a_row, read_csv
from cardsync.platform import clock
from quick_add_builder import (
    acknowledged,
    file_served,
    not_sent,
    published,
    rejected,
    settled,
)
from world import played

pytestmark = pytest.mark.day

SOAK_EXAMPLES = schedule.count("CARDSYNC_SOAK_EXAMPLES", 100, 10)
CARDS = (1, 2)
ENDED = ("listed", "rejected")


class QuickAdds(RuleBasedStateMachine):
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
        self.owner = self.now(signed_in(self.seller))
        # The marketplace's quantity of each card; each entry's quantity, and the part of it that
        # the marketplace took; the rows that an agent has in hand.
        self.listed = dict.fromkeys(CARDS, 0)
        self.asked: dict[int, tuple[int, int]] = {}
        self.taken: dict[int, int] = {}
        self.in_hand: set[int] = set()
        # The numbers of the files that each agent has had, oldest first. One has no name.
        self.files: dict[str | None, list[int]] = {None: [], "desk": [], "shop": []}

    def statuses(self) -> dict[int, str]:
        page = self.now(self.owner.get("/api/quick_add", params={"per_page": 200})).json()
        return {entry["id"]: entry["status"] for entry in page["entries"]}

    @rule(
        cards=st.lists(st.sampled_from(CARDS), min_size=1, max_size=3), quantity=st.integers(1, 3)
    )
    def publish(self, cards: list[int], quantity: int) -> None:
        entries = [
            {"name": f"Card {card}", "set": "Dominaria United", "number": str(card), "game": "magic",
             "condition": "NM", "quantity": quantity, "price": "1.00"}
            for card in cards
        ]  # fmt: skip
        for id, card in zip(self.now(published(self.owner, *entries)), cards, strict=True):
            self.asked[id], self.taken[id] = (card, quantity), 0

    @rule(
        agents=st.lists(st.sampled_from((None, "desk", "shop")), min_size=1, max_size=2),
        lost=st.booleans(),
        says=st.booleans(),
    )
    def fetch(self, agents: list[str | None], *, lost: bool = False, says: bool = True) -> None:
        """Agents ask at once; the answers arrive, or are lost. An agent takes a file once."""

        async def ask(agent: str | None) -> tuple[int | None, list[int], bytes]:
            had = self.files[agent]
            return await file_served(
                self.seller, agent, had[-1] if agent and says and had else None
            )

        async def together() -> list[tuple[int | None, list[int], bytes]]:
            return await asyncio.gather(*(ask(agent) for agent in agents))

        for agent, (number, ids, body) in zip(agents, self.now(together()), strict=True):
            if number is None or lost or number in self.files[agent]:
                continue
            assert not any(number in had for had in self.files.values())
            self.files[agent].append(number)
            for id, row in zip(ids, read_csv(body), strict=True):
                assert id not in self.in_hand
                assert int(row["Add to Quantity"]) == self.asked[id][1]
                self.in_hand.add(id)

    def some(self, data: st.DataObject) -> int:
        return int(data.draw(st.sampled_from(sorted(self.in_hand))))

    def take(self, id: int) -> None:
        card, quantity = self.asked[id]
        self.in_hand.discard(id)
        self.taken[id] += quantity
        self.listed[card] += quantity

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data(), told=st.booleans(), twice=st.booleans())
    def the_marketplace_takes(self, data: st.DataObject, told: bool, twice: bool) -> None:
        id = self.some(data)
        self.take(id)
        for _ in range(told + (told and twice)):
            self.now(acknowledged(self.seller, id))

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def the_marketplace_rejects(self, data: st.DataObject) -> None:
        id = self.some(data)
        self.in_hand.discard(id)
        self.now(rejected(self.seller, {id: "no such card"}))

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data(), told=st.booleans())
    def the_agent_dies_before_it(self, data: st.DataObject, told: bool) -> None:
        id = self.some(data)
        self.in_hand.discard(id)
        if told:
            self.now(not_sent(self.seller, id))

    @rule(card=st.sampled_from(CARDS))
    def sell(self, card: int) -> None:
        self.listed[card] = max(self.listed[card] - 1, 0)

    @rule()
    def upload(self) -> None:
        rows = [a_row(card, quantity=listed) for card, listed in self.listed.items() if listed]
        self.now(self.seller.import_csv(a_csv(a_row(99), *rows)))

    @rule(minutes=st.sampled_from([5, 31, 31]))
    def time_passes(self, minutes: int) -> None:
        clock.shift(timedelta(minutes=minutes))
        if minutes > 30:
            # No agent has a file in hand for so long.
            self.in_hand.clear()

    @rule()
    def the_owner_compares(self) -> None:
        """The owner looks at the marketplace and says the truth about every pending entry."""
        pending = self.now(self.owner.get("/api/quick_add/pending")).json()["pending"]
        for row in pending:
            id = row["entry"]["id"]
            if id in self.in_hand:
                continue
            status, told = self.now(settled(self.owner, id, listed=self.taken[id] > 0))
            if self.taken[id]:
                assert (status, told["status"]) == (200, "listed")
            elif row["retryable"]:
                assert (status, told["status"]) == (200, "published")
            else:
                assert (status, told["code"]) == (409, "listing_in_hand")

    @invariant()
    def each_delta_is_listed_once_and_nothing_is_lost(self) -> None:
        if not hasattr(self, "seller"):
            return
        statuses = self.statuses()
        assert statuses.keys() == self.asked.keys()
        for id, (_, quantity) in self.asked.items():
            assert self.taken[id] in (0, quantity)
            assert statuses[id] != "listed" or self.taken[id] == quantity
            assert statuses[id] != "rejected" or self.taken[id] == 0
            assert statuses[id] in ("published", "pending", *ENDED)
            assert statuses[id] != "published" or self.taken[id] == 0

    def teardown(self) -> None:
        """In the end everything comes to its end."""
        if not hasattr(self, "seller"):
            return
        for _ in range(2 * len(self.asked) + 1):
            self.time_passes(31)
            self.the_owner_compares()
            self.fetch([None])
            for id in sorted(self.in_hand):
                self.take(id)
                self.now(acknowledged(self.seller, id))
        assert set(self.statuses().values()) <= set(ENDED)
        self.each_delta_is_listed_once_and_nothing_is_lost()
        self.now(self.seller.http.aclose())
        self.now(self.owner.http.aclose())
        clock.reset()


EVERYDAY = settings(
    settings.get_profile("daily"),
    max_examples=schedule.examples(2, 6),
    stateful_step_count=15,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def run(a_seller: SellerBuilder, how: settings) -> None:
    await played(QuickAdds, a_seller, how)


async def test_each_delta_is_listed_exactly_once(a_seller: SellerBuilder) -> None:
    await run(a_seller, EVERYDAY)


@pytest.mark.night
async def test_each_delta_of_very_many_sequences_is_listed_exactly_once(
    a_seller: SellerBuilder,
) -> None:
    how = settings(EVERYDAY, max_examples=SOAK_EXAMPLES, stateful_step_count=30, derandomize=False)
    await run(a_seller, how)
