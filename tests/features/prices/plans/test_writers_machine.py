"""Writers of every kind beside the sync: whatever keys and tokens send, in any order and at once,
no card moves beyond its limits without a member's click. What is asked is looked at after each
write; what is stored, and handed out to the agent, after each sync and reprice.
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

import schedule
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
queries = st.sampled_from(
    [
        "",
        "list=cheap",
        "-list:cheap",
        'list:"Cheap"',
        "has:list",
        "cost>5",
        "margin<20%",
        "is:pinned",
    ]
)
machine_steps = st.one_of(
    st.tuples(st.just("pin"), cards, st.one_of(small, small, small, parts)),
    st.tuples(st.just("unpin"), cards),
    st.tuples(st.just("rule"), st.one_of(small, small, small, parts)),
    st.tuples(st.just("own rule"), cards, st.one_of(small, small, small, parts)),
    st.tuples(st.just("plan"), st.one_of(small, small, small, parts)),
    st.tuples(st.just("sale"), st.integers(-9_000, 0)),
    st.tuples(st.just("undo"), st.integers(0, 5)),
    st.tuples(st.just("reprice")),
    # What rules ask: any rule before any data, and the other way round.
    st.tuples(st.just("asking rule"), queries, st.one_of(small, parts), st.booleans()),
    st.tuples(st.just("asking rule"), queries, st.one_of(small, parts), st.booleans()),
    st.tuples(st.just("asking sale"), queries, st.integers(-9_000, 0)),
    st.tuples(st.just("listed"), cards, st.booleans()),
    st.tuples(st.just("list"), st.booleans()),
    st.tuples(st.just("lot"), cards, st.sampled_from(["0.10", "9.00", "45.00", "90000.00"])),
    st.tuples(st.just("last lot"), st.sampled_from([None, "0.50", "70000.00"])),
    st.tuples(st.just("last sale"), st.sampled_from(["delete", "disable", "enable"])),
    st.tuples(st.just("back")),
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

    async def list_id(self):
        lists = (await self.seller.get("/api/lists")).json()["lists"]
        return lists[0]["id"] if lists else 1

    async def asked(self):
        """The price that the live rules ask of each card, as a preview says, once it is known what
        cards cost.
        """
        await self.seller.service.run_jobs()
        answer = await self.seller.post(f"{PRICING}/preview?format=csv")
        assert answer.status_code == 200, answer.text
        rows = csv.DictReader(io.StringIO(answer.text))
        return {
            int(row["marketplace_id"]): Decimal(row["target_price"] or row["current_price"])
            for row in rows
        }

    async def stored(self):
        """The target of each card; none where no pricing has moved it."""
        return {card["marketplace_id"]: card["target_price"] for card in await self.seller.cards()}

    async def is_handed_out(self, was):
        """The newest pricing stored what the rules ask, or waits for a look and stored no price; the
        file that the agent imports has the stored targets and nothing else.
        """
        asked = await self.asked()
        [newest, *_] = (await self.seller.get(f"{PRICING}/runs")).json()["runs"]
        stored = await self.stored()
        file = (await self.seller.export()).content.decode()
        rows = [*csv.DictReader(io.StringIO(file))]
        sent = {int(row["TCGplayer Id"]): Decimal(row["TCG Marketplace Price"]) for row in rows}
        if newest["state"] == "awaiting_review":
            # A card whose price changed at the marketplace loses its former target.
            assert sent == {}
            assert all(target in (None, was[id]) for id, target in stored.items())
            return
        assert newest["state"] == "completed", newest
        now = {card["marketplace_id"]: card["price"] for card in await self.seller.cards()}
        targets = {id: now[id] if target is None else target for id, target in stored.items()}
        assert targets == asked
        assert sent == {id: target for id, target in targets.items() if target != now[id]}

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
            case ("asking rule", query, part, floor):
                rule = {"name": f"R{next(_names)}", "query": query, "state": "published"}
                rule |= {"priority": next(_names), "adjust_bp": part, "fallback_sources": []}
                rule |= {"floor_cost_bp": 0} if floor else {}
                return await http("POST", f"{PRICING}/rules", json=rule)
            case ("asking sale", query, part):
                return await http("POST", f"{PRICING}/sales", json=a_sale(part, query=query))
            case ("listed", id, on):
                path = f"/api/lists/{await self.list_id()}/cards"
                method = "POST" if on else "DELETE"
                return await http(method, path, json={"marketplace_ids": [id]})
            case ("list", on):
                if on:
                    return await http("POST", "/api/lists", json={"name": "Cheap"})
                return await http("DELETE", f"/api/lists/{await self.list_id()}")
            case ("lot", id, cost):
                lot = {"marketplace_id": id, "quantity": 1, "cost": cost}
                return await http("POST", "/api/buying/lots", json={"lots": [lot]})
            case ("last lot", cost):
                lots = (await self.seller.get("/api/buying/lots")).json()["lots"]
                path = f"/api/buying/lots/{lots[0]['id'] if lots else 1}"
                if cost is None:
                    return await http("DELETE", path)
                return await http("PATCH", path, json={"cost": cost})
            case ("last sale", what):
                sales = (await self.seller.get(f"{PRICING}/sales")).json()["sales"]
                path = f"{PRICING}/sales/{sales[-1]['id'] if sales else 1}"
                if what == "delete":
                    return await http("DELETE", path)
                return await http("PATCH", path, json={"enabled": what == "enable"})
            case ("back",):
                runs = (await self.seller.get(f"{PRICING}/runs")).json()["runs"]
                run = {"run_id": runs[-1]["id"] if runs else 1}
                answer = await http("POST", f"{PRICING}/rollbacks", json=run)
                if answer.status_code == 201:
                    done = f"{PRICING}/rollbacks/{answer.json()['id']}/cancel"
                    await http("POST", done)
                return answer
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

    def take_back(self, id, moved):
        """What a member did the other way takes back as much of what machines did."""
        added = self.added[id]
        if moved * added < 0:
            self.added[id] = added * (1 - min(Decimal(1), abs(moved / added)))

    async def alone(self, http, step):
        """Nothing else is sent meanwhile, so what a reprice stores is known."""
        was = await self.stored()
        answer = await self.send(http, step)
        if step == ("reprice",) and answer.status_code == 202:
            await self.is_handed_out(was)
        return answer

    async def by_machines(self, *sent):
        before = await self.asked()
        answers = await asyncio.gather(*sent)
        assert all(answer.status_code < 500 for answer in answers)
        after = await self.asked()
        for id, price in after.items():
            base = before[id] - self.added[id]
            self.added[id] += price - before[id]
            if price != before[id] and max(base, base + self.added[id]) > 1:
                # A ten-thousandth is lost where a member takes back a part.
                most = base * 20 / 100 + Decimal("0.0002")
                assert abs(self.added[id]) <= most, (id, base, self.added[id])
        if all(answer.status_code == 409 for answer in answers):
            assert after == before

    async def take(self, step):
        match step:
            case ("key", sent):
                await self.by_machines(self.alone(self.seller.http.request, sent))
            case ("token", sent):
                await self.by_machines(self.alone(self.token.request, sent))
            case ("at once", several):
                senders = [self.seller.http.request, self.token.request] * 2
                await self.by_machines(
                    *(self.send(http, sent) for http, sent in zip(senders, several, strict=False))
                )
            case ("member", sent):
                before = await self.asked()
                await self.send(self.owner.send, sent, confirm=True)
                for id, price in (await self.asked()).items():
                    self.take_back(id, price - before[id])
            case ("sync", id, part):
                price = Decimal(MARKET[id]) * (10_000 + part // 4) / 10_000
                self.market[id] = f"{price:.2f}"
                was = await self.stored()
                await self.seller.import_csv(a_csv(*rows_of(self.market)))
                await self.is_handed_out(was)
            case ("hour",):
                await self.seller.service.sql(
                    self.seller.id,
                    "DELETE FROM automated_move WHERE seller_id = :id",
                    id=self.seller.id,
                )
                self.added.clear()


def rows_of(market):
    return [a_row(n, market=price, price=price, low="", number=n) for n, price in market.items()]


@pytest.mark.day
@pytest.mark.hypothesis
@schedule.deeper
@settings(
    max_examples=schedule.examples(2, schedule.count("WRITERS_HISTORIES", 60, 12)),
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
@example(
    taken=[
        ("key", ("list", True)),
        ("key", ("asking rule", "list=cheap", -9_000, False)),
        ("key", ("listed", 1, True)),
        ("token", ("asking rule", "", 0, True)),
        ("key", ("lot", 2, "90000.00")),
        ("key", ("lot", 3, "45.00")),
        ("key", ("last lot", "70000.00")),
    ]
)
@example(
    taken=[
        ("key", ("sale", -1_800)),
        ("member", ("rule", 900)),
        ("key", ("last sale", "delete")),
        ("token", ("sale", -1_800)),
        ("token", ("last sale", "disable")),
        ("key", ("pin", 1, -1_500)),
    ]
)
@given(taken=st.lists(steps, min_size=8, max_size=16))
async def test_no_card_moves_beyond_its_limits_without_a_click(a_limited_seller, taken):
    """This alone would find an order of writes, by any route that a key or a token has, after which
    prices are beyond the limits though each write alone looked small. WRITERS_HISTORIES=10000 with
    `make soak` runs so many.
    """
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


days = st.lists(
    st.one_of(
        st.tuples(st.just("sync"), cards, parts),
        st.tuples(st.just("member"), st.tuples(st.just("rule"), parts)),
        st.tuples(st.just("key"), st.tuples(st.just("reprice"))),
        st.tuples(st.just("key"), st.tuples(st.just("reprice"))),
        st.tuples(st.just("as asked"), cards),
        st.tuples(st.just("newest back")),
        st.tuples(st.just("hour")),
    ),
    min_size=6,
    max_size=14,
)


@pytest.mark.day
@pytest.mark.hypothesis
@schedule.deeper
@settings(
    max_examples=schedule.examples(2, schedule.count("WRITERS_DAYS", 60, 12)),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
@example(
    day=[("member", ("rule", -9_000)), ("key", ("reprice",)), ("newest back",), ("as asked", 1)]
)
@given(day=days)
async def test_a_key_is_never_refused_what_the_next_sync_would_do(a_limited_seller, day):
    """This alone would find a day on which a key is held back though it asks no more than the rules
    do already, or only takes the newest run back.
    """
    seller = await a_limited_seller(loss_budget=0)
    await seller.import_csv(a_csv(*rows_of(MARKET)))
    owner = await signed_in(seller)
    [rule] = (await seller.get(f"{PRICING}/rules")).json()["rules"]
    shop = Shop(seller, owner, None, rule["id"])
    for step in day:
        match step:
            case ("as asked", id):
                price = f"{(await shop.asked())[id]:.2f}"
                sent = [await seller.http.put(f"{PRICING}/pins/{id}", json={"price": price})]
                sent.append(await seller.http.delete(f"{PRICING}/pins/{id}"))
            case ("newest back",):
                runs = (await seller.get(f"{PRICING}/runs")).json()["runs"]
                newest = next((run["id"] for run in runs if run["state"] == "completed"), None)
                made = await seller.post(f"{PRICING}/rollbacks", json={"run_id": newest or 1})
                sent = [made]
                if made.status_code == 201:
                    path = f"{PRICING}/rollbacks/{made.json()['id']}/cancel"
                    sent.append(await seller.post(path))
            case ("key", asked):
                sent = [await shop.alone(seller.http.request, asked)]
            case _:
                await shop.take(step)
                continue
        refused = [answer.text for answer in sent if "needs_review" in answer.text]
        assert not refused, (step, refused)
