"""Writers of every kind beside the sync write prices, decide what waits and undo, all at once; and
nothing is half done or done twice. Each rule has a name of its own, so a name shows what was done.
"""

import asyncio
from collections import Counter
from itertools import count, cycle

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.features.prices.plans.test_writers_machine import MARKET, Shop, rows_of

import schedule
from browsers import signed_in
from builders import a_csv
from cardsync.prices.recommendations.generate import RECOMMENDATIONS
from plans_builder import PLANS, PRICING, allow, changes

ACTIVITY = "/api/v1/agent/activity"
_names = count(1)
cards = st.sampled_from(sorted(MARKET))
# The first of what waits, so that callers meet.
place = st.integers(0, 2)
writers = st.sampled_from(["key", "token", "member"])
answers = st.sampled_from(["approve", "approve", "decline", "snooze"])
works = st.one_of(
    st.tuples(st.just("rule"), writers, cards, st.sampled_from([-9_000, -3_000, 20])),
    st.tuples(st.just("plan"), writers, cards),
    st.tuples(st.just("answer"), writers, place, answers),
    st.tuples(st.just("answer"), st.just("member"), place, answers),
    st.tuples(st.just("answer"), st.just("member"), place, answers),
    st.tuples(st.just("undo"), writers, place),
    st.tuples(st.just("sync"), cards, st.integers(-3_000, 6_000)),
    st.tuples(st.just("reprice"), writers),
    st.tuples(st.just("automatic")),
)
CREATED = """
    SELECT after ->> 'name' AS name, undone_by IS NOT NULL AS undone FROM activity
     WHERE seller_id = :id AND action = 'pricing.rule_created'
"""
PLANNED = """
    SELECT p.id, p.status, p.actions,
           (SELECT count(*) FROM activity a
             WHERE a.seller_id = :id AND a.action = 'plan.applied'
               AND a.summary LIKE 'plan ' || p.id || ':%') AS entries
      FROM agent_plan p WHERE p.seller_id = :id
"""
UNDONE = """
    SELECT e.id, e.action, e.undone_by, u.action AS by FROM activity e
      LEFT JOIN activity u ON u.seller_id = :id AND u.id = e.undone_by
     WHERE e.seller_id = :id AND (e.undone_by IS NOT NULL OR e.action = 'activity.undone')
"""
MADE = """
    SELECT r.id, r.state, count(c.card_id) AS prices FROM price_run r
      LEFT JOIN price_change c ON c.seller_id = :id AND c.run_id = r.id
     WHERE r.seller_id = :id AND r.trigger IN ('review', 'recommendation') GROUP BY r.id, r.state
"""
RULES = "SELECT name FROM pricing_rule WHERE seller_id = :id"


def a_rule(name, id, part):
    return {"name": name, "query": f"number:{id}", "state": "published", "adjust_bp": part}


class Crowd(Shop):
    """A shop, and what was answered to the writers about each rule and each waiting thing."""

    def __init__(self, seller, owners, token, rule_id):
        super().__init__(seller, owners[0], token, rule_id)
        # The owner works in several browsers.
        members = cycle([owner.send for owner in owners])
        self.http = {
            "key": seller.http.request,
            "token": token.request,
            "member": lambda *sent, **body: next(members)(*sent, **body),
        }
        # The status of the answer to each rule that was written by itself.
        self.written = {}
        self.runs = Counter()

    async def rows(self, query):
        return await self.seller.service.sql(self.seller.id, query, id=self.seller.id)

    async def at_once(self, works):
        """Everybody has seen the same things that wait and the same feed."""
        waiting = (await self.owner.get("/api/waiting")).json()["waiting"]
        feed = (await self.owner.get(ACTIVITY)).json()["activity"]
        undoable = [entry["id"] for entry in feed if entry["undoable"]]
        decided = Counter()
        await asyncio.gather(*(self.work(one, waiting, undoable, decided) for one in works))
        await self.seller.service.run_jobs()
        assert all(times == 1 for times in decided.values()), decided
        await self.is_whole()

    async def work(self, one, waiting, undoable, decided):
        match one:
            case ("rule", who, id, part):
                name = f"R{next(_names)}"
                body = a_rule(name, id, part) | ({"confirm": True} if who == "member" else {})
                answer = await self.http[who]("POST", f"{PRICING}/rules", json=body)
                assert answer.status_code in (201, 409), answer.text
                self.written[name] = answer.status_code
            case ("plan", who, id):
                pair = [f"P{next(_names)}", f"P{next(_names)}"]
                made = [{"op": "create", "set": a_rule(name, id, 10)} for name in pair]
                answer = await self.http[who]("POST", PLANS, json=changes(*made))
                assert answer.status_code in (200, 201, 202), answer.text
            case ("answer", who, place, word) if waiting:
                seen = waiting[place % len(waiting)]
                kind, id = seen["kind"], seen["id"]
                body = {"answer": word, "revision": seen["revision"]}
                answer = await self.http[who]("POST", f"/api/waiting/{kind}/{id}", json=body)
                assert answer.status_code in (200, 401, 403, 409, 422), answer.text
                if answer.status_code == 200 and answer.json()["waits"] is None:
                    decided[kind, id] += 1
                    self.runs.update({answer.json()["run_id"]} - {None})
            case ("undo", who, place) if undoable:
                entry = undoable[place % len(undoable)]
                answer = await self.http[who]("POST", f"{ACTIVITY}/{entry}/undo")
                assert answer.status_code < 500, answer.text
            case ("sync", id, part):
                self.market[id] = f"{float(MARKET[id]) * (10_000 + part) / 10_000:.2f}"
                answer = await self.seller.upload(a_csv(*rows_of(self.market)))
                assert answer.status_code == 202, answer.text
                await self.seller.service.run_jobs()
            case ("reprice", who):
                answer = await self.http[who]("POST", f"{PRICING}/reprice")
                assert answer.status_code in (202, 409), answer.text
            case ("automatic",):
                await RECOMMENDATIONS.work_off(self.seller.service.work, self.seller.id)

    async def is_whole(self):
        entries = await self.rows(CREATED)
        created = Counter(entry["name"] for entry in entries)
        assert all(times == 1 for times in created.values()), created
        # A rule is there unless its entry was undone.
        own = {row["name"] for row in await self.rows(RULES) if row["name"][0] in "RP"}
        assert own == {entry["name"] for entry in entries if not entry["undone"]}
        of_plans = set()
        for plan in await self.rows(PLANNED):
            done = plan["status"] == "applied"
            assert plan["entries"] == done, plan
            names = {
                change["set"]["name"] for action in plan["actions"] for change in action["changes"]
            }
            # All of it or nothing.
            assert names & created.keys() == (names if done else set()), plan
            of_plans |= names if done else set()
        for name, status in self.written.items():
            assert (name in created) == (status == 201 or name in of_plans), (name, status)
        undone = await self.rows(UNDONE)
        undoers = {entry["id"] for entry in undone if entry["action"] == "activity.undone"}
        assert undoers == {entry["undone_by"] for entry in undone if entry["undone_by"]}
        assert all(times == 1 for times in self.runs.values()), self.runs
        made = {run["id"]: run for run in await self.rows(MADE)}
        assert self.runs.keys() <= made.keys()
        assert all((run["state"], run["prices"]) == ("completed", 1) for run in made.values()), made


@pytest.mark.day
@pytest.mark.hypothesis
@schedule.deeper
@settings(
    max_examples=schedule.examples(2, schedule.count("WAITING_DAYS", 60, 12)),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
@example(
    steps=[
        [("plan", "key", 1), ("rule", "token", 2, -9_000)],
        [("answer", "member", 0, "approve")] * 2 + [("answer", "member", 0, "decline")],
        [("answer", "member", 0, "approve"), ("sync", 2, 4_000), ("undo", "member", 0)],
        [("undo", "member", 0), ("undo", "key", 0), ("answer", "member", 0, "approve")],
        [("answer", "key", 0, "approve"), ("answer", "member", 0, "approve"), ("reprice", "key")],
        [("automatic",), ("answer", "member", 0, "snooze"), ("undo", "member", 1)],
    ]
)
@given(steps=st.lists(st.lists(works, min_size=2, max_size=4), min_size=4, max_size=10))
async def test_what_many_write_and_decide_at_once_is_done_once_and_whole(a_limited_seller, steps):
    """This alone would find a plan, a price or an undo that is half done, or done twice, because
    others write, decide and sync meanwhile. WAITING_DAYS=10000 with `make soak` runs so many days.
    """
    seller = await a_limited_seller(loss_budget=100_000)
    await seller.import_csv(a_csv(*rows_of(MARKET)))
    owner = await signed_in(seller)
    [rule] = (await seller.get(f"{PRICING}/rules")).json()["rules"]
    plain = {"never_lower": False, "fallback_sources": [], "cap": None, "confirm": True}
    await owner.send("PATCH", f"{PRICING}/rules/{rule['id']}", json=plain)
    limits = {"review_up_bp": 1_000, "recommendations": "automatic"}
    await owner.send("PATCH", f"{PRICING}/settings", json=limits)
    await allow(seller, "always_ask", "key")
    await allow(seller, "auto_unless_critical", "token")
    owners = [owner, await signed_in(seller), await signed_in(seller)]
    crowd = Crowd(seller, owners, await seller.token("mcp:read", "mcp:write"), rule["id"])
    for works_of_step in steps:
        await crowd.at_once(works_of_step)
    await seller.fingerprint_is_right()
