"""Writers of every kind beside the sync: whatever keys and tokens send, in any order and at once,
no card moves beyond its limits without a member's click.
"""

import asyncio
import csv
import io
from collections import defaultdict
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import soak
from browsers import signed_in
from builders import a_csv, a_row
from plans_builder import PLANS, PRICING, a_sale, allow, changes

MARKET = {1: "10.00", 2: "40.00", 3: "3.00", 4: "0.80", 5: "250.00"}
KINDS = ("pricing.change_set", "pricing.pins", "lists.change_set")
_names = count(1)
cards = st.sampled_from(sorted(MARKET))
parts = st.integers(-9_000, 12_000)
# Every change is of what is asked now, so that small ones in one direction add up.
small = st.one_of(st.integers(-1_200, -300), st.integers(-1_200, -300), st.integers(300, 1_200))
machine_steps = st.one_of(
    st.tuples(st.just("pin"), cards, st.one_of(small, small, small, parts)),
    st.tuples(st.just("unpin"), cards),
    st.tuples(st.just("rule"), st.one_of(small, small, small, parts)),
    st.tuples(st.just("own rule"), cards, st.one_of(small, small, small, parts)),
    st.tuples(st.just("plan"), st.one_of(small, small, small, parts)),
    st.tuples(st.just("sale"), st.integers(-9_000, 0)),
    st.tuples(st.just("undo"), st.integers(0, 5)),
    st.tuples(st.just("reprice")),
)
writers = st.sampled_from(["key", "token"])
steps = st.one_of(
    st.tuples(writers, machine_steps),
    st.tuples(writers, machine_steps),
    st.tuples(st.just("at once"), st.lists(machine_steps, min_size=2, max_size=3)),
    st.tuples(st.just("member"), st.tuples(st.just("pin"), cards, parts)),
    st.tuples(st.just("member"), st.tuples(st.just("rule"), small)),
    st.tuples(st.just("sync"), cards, parts),
    st.tuples(st.just("hour")),
)


class Shop:
    """What was asked of each card, and what machines added to it within the hour."""

    def __init__(self, seller, owner, token, rule_id):
        self.seller, self.owner, self.token, self.rule_id = seller, owner, token, rule_id
        self.market = dict(MARKET)
        self.added = defaultdict(Decimal)

    async def asked(self):
        """The price that the live rules ask of each card, as a preview says."""
        answer = await self.seller.post(f"{PRICING}/preview?format=csv")
        assert answer.status_code == 200, answer.text
        rows = csv.DictReader(io.StringIO(answer.text))
        return {
            int(row["marketplace_id"]): Decimal(row["target_price"] or row["current_price"])
            for row in rows
        }

    async def send(self, http, step, *, confirm=False):
        query = "?confirm=true" if confirm else ""
        match step:
            case ("pin", id, part):
                price = (await self.asked())[id] * (10_000 + part) / 10_000
                body = {"price": f"{max(price, Decimal('0.01')):.2f}"}
                return await http("PUT", f"{PRICING}/pins/{id}{query}", json=body)
            case ("unpin", id):
                return await http("DELETE", f"{PRICING}/pins/{id}{query}")
            case ("rule", part):
                path = f"{PRICING}/rules/{self.rule_id}{query}"
                return await http("PATCH", path, json={"adjust_bp": await self.adjusted(part)})
            case ("own rule", id, part):
                rule = {"name": f"R{next(_names)}", "query": f"number:{id}", "state": "published"}
                return await http("POST", f"{PRICING}/rules", json=rule | {"adjust_bp": part})
            case ("plan", part):
                adjust = await self.adjusted(part)
                change = {"op": "update", "rule_id": self.rule_id, "set": {"adjust_bp": adjust}}
                return await http("POST", PLANS, json=changes(change))
            case ("sale", part):
                return await http("POST", f"{PRICING}/sales", json=a_sale(part))
            case ("undo", place):
                feed = (await self.seller.get("/api/v1/agent/activity")).json()["activity"]
                entry = feed[min(place, len(feed) - 1)]["id"]
                return await http("POST", f"/api/v1/agent/activity/{entry}/undo")
            case ("reprice",):
                answer = await http("POST", f"{PRICING}/reprice")
                await self.seller.service.run_jobs()
                return answer
        raise AssertionError(step)

    async def adjusted(self, part):
        """What the rule's part becomes if its price changes by that part again."""
        rule = (await self.seller.get(f"{PRICING}/rules/{self.rule_id}")).json()
        return max((10_000 + rule["adjust_bp"]) * (10_000 + part) // 10_000 - 10_000, -9_900)

    async def by_machines(self, *sent):
        before = await self.asked()
        answers = await asyncio.gather(*sent)
        assert all(answer.status_code < 500 for answer in answers)
        after = await self.asked()
        for id, price in after.items():
            base = before[id] - self.added[id]
            self.added[id] += price - before[id]
            if price != before[id] and max(base, base + self.added[id]) > 1:
                assert abs(self.added[id]) * 100 <= base * 20, (id, base, self.added[id])
        if all(answer.status_code == 409 for answer in answers):
            assert after == before

    async def take(self, step):
        match step:
            case ("key", sent):
                await self.by_machines(self.send(self.seller.http.request, sent))
            case ("token", sent):
                await self.by_machines(self.send(self.token.request, sent))
            case ("at once", several):
                senders = [self.seller.http.request, self.token.request] * 2
                await self.by_machines(
                    *(self.send(http, sent) for http, sent in zip(senders, several, strict=False))
                )
            case ("member", sent):
                await self.send(self.owner.send, sent, confirm=True)
            case ("sync", id, part):
                price = Decimal(MARKET[id]) * (10_000 + part // 4) / 10_000
                self.market[id] = f"{price:.2f}"
                await self.seller.import_csv(a_csv(*rows_of(self.market)))
            case ("hour",):
                await self.seller.service.sql(
                    self.seller.id,
                    "DELETE FROM automated_move WHERE seller_id = :id",
                    id=self.seller.id,
                )
                self.added.clear()


def rows_of(market):
    return [a_row(n, market=price, price=price, low="", number=n) for n, price in market.items()]


@pytest.mark.slow
@pytest.mark.hypothesis
@soak.deeper
@settings(
    max_examples=soak.examples(2, 12),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    # A run of writers takes seconds: the examples are short as they are.
    phases=(Phase.explicit, Phase.generate),
)
@example(taken=[("key", ("pin", 1, -600))] * 6)
@example(taken=[("token", ("rule", -600)), ("key", ("plan", -600))] * 3)
@example(taken=[("key", ("pin", 2, -900)), ("sync", 2, 400), ("member", ("pin", 1, -3_000))] * 4)
@example(taken=[("at once", [("pin", 1, 700), ("pin", 1, 700), ("rule", 700)])] * 4)
@given(taken=st.lists(steps, min_size=8, max_size=16))
async def test_no_card_moves_beyond_its_limits_without_a_click(a_limited_seller, taken):
    seller = await a_limited_seller(loss_budget=100_000)
    await seller.import_csv(a_csv(*rows_of(MARKET)))
    owner = await signed_in(seller)
    [rule] = (await seller.get(f"{PRICING}/rules")).json()["rules"]
    plain = {
        "never_lower": False,
        "adjust_bp": 0,
        "fallback_sources": [],
        "cap": None,
        "confirm": True,
    }
    await owner.send("PATCH", f"{PRICING}/rules/{rule['id']}", json=plain)
    for kind in KINDS:
        for credential in ("key", "token"):
            await allow(seller, "auto_unless_critical", credential, kind)
    shop = Shop(seller, owner, await seller.token("mcp:read", "mcp:write"), rule["id"])
    for step in taken:
        await shop.take(step)
