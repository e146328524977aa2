"""Undo of a plan: all of its actions are taken back, or none, once, and while nothing has changed
since.
"""

import asyncio

from browsers import joined, signed_in
from plans_builder import PLANS, a_plain_shop, changes, lowered, planned, rule_of

FEED = "/api/v1/agent/activity"


async def entries(seller, action):
    answer = await seller.get(FEED, params={"action": action})
    return answer.json()["activity"]


async def undo(sender, entry):
    return await sender.post(f"{FEED}/{entry['id']}/undo")


async def state(seller):
    """Rules, pins and lists as they stand, without the times of their last change."""
    rules = (await seller.get("/api/pricing/rules")).json()["rules"]
    pins = (
        "SELECT marketplace_id, price FROM price_decision"
        " WHERE seller_id = :id AND kind = 'pin' ORDER BY 1"
    )
    return (
        [{name: value for name, value in rule.items() if name != "updated_at"} for rule in rules],
        await seller.service.sql(seller.id, pins, id=seller.id),
        (await seller.get("/api/lists")).json()["lists"],
    )


def everything(rule_id, other):
    """A plan with an action of every kind."""
    new = {"name": "New", "query": "number:none", "state": "published"}
    return {
        "actions": [
            {
                "type": "pricing.change_set",
                "changes": [
                    {"op": "update", "rule_id": rule_id, "set": {"adjust_bp": -100}},
                    {"op": "create", "set": new},
                    {"op": "delete", "rule_id": other},
                ],
            },
            {
                "type": "pricing.pins",
                "set": [{"marketplace_id": 2, "price": "9.90"}],
                "remove": [1],
            },
            {
                "type": "lists.change_set",
                "create": ["Binder"],
                "add": [{"list": "Binder", "marketplace_ids": [1, 2, 3]}],
            },
        ]
    }


async def applied(a_seller):
    """A seller with everything planned and done; what was before, and the plan's entry."""
    seller, rule_id = await a_plain_shop(a_seller)
    body = {"name": "Other", "query": "number:nil", "state": "published"}
    other = (await seller.post("/api/pricing/rules", json=body)).json()["id"]
    await seller.http.put("/api/pricing/pins/1", json={"price": "9.80"})
    before = await state(seller)
    owner = await signed_in(seller)
    answer = await owner.post(PLANS, json=everything(rule_id, other))
    assert answer.json()["status"] == "applied", answer.text
    assert await state(seller) != before
    [entry] = await entries(seller, "plan.applied")
    return seller, rule_id, before, entry


async def test_a_plan_with_every_kind_of_action_is_taken_back_whole(a_seller):
    seller, _, before, entry = await applied(a_seller)
    assert entry["undoable"]
    answer = await undo(seller, entry)
    assert answer.status_code == 200, answer.text
    assert await state(seller) == before
    # Its actions count as undone, too.
    feed = (await seller.get(FEED, params={"per_page": 50})).json()["activity"]
    mine = [row for row in feed if row["request_id"] == entry["request_id"]]
    assert len(mine) >= 6
    assert not [row["action"] for row in mine if row["undoable"]]


async def test_of_a_plan_of_which_a_part_was_changed_since_nothing_is_taken_back(a_seller):
    seller, rule_id, _, entry = await applied(a_seller)
    await seller.http.patch(f"/api/pricing/rules/{rule_id}", json={"adjust_bp": -200})
    after = await state(seller)
    answer = await undo(seller, entry)
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    assert "adjust_bp" in answer.json()["error"]
    assert await state(seller) == after
    assert (await entries(seller, "activity.undone")) == []
    await seller.http.patch(f"/api/pricing/rules/{rule_id}", json={"adjust_bp": -100})
    assert (await undo(seller, entry)).status_code == 200


async def test_a_part_that_was_undone_alone_is_left_out(a_seller):
    seller, _, before, entry = await applied(a_seller)
    [pin] = [
        row
        for row in await entries(seller, "pricing.pinned")
        if row["request_id"] == entry["request_id"]
    ]
    assert (await undo(seller, pin)).status_code == 200
    assert (await undo(seller, entry)).status_code == 200
    assert await state(seller) == before


async def test_undone_twice_and_at_once_it_is_undone_once(a_seller):
    seller, _, before, entry = await applied(a_seller)
    answers = await asyncio.gather(*(undo(seller, entry) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await entries(seller, "activity.undone")) == 1
    assert await state(seller) == before


async def test_a_confirmed_plan_is_undone_as_one_applied_at_once(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    owner = await signed_in(seller)
    await owner.post(f"{PLANS}/{plan['plan_id']}/confirm", json={"revision": 1})
    [waiting] = await entries(seller, "plan.pending_review")
    [entry] = await entries(seller, "plan.applied")
    assert (waiting["undoable"], entry["undoable"]) == (False, True)
    assert (await undo(seller, waiting)).json()["code"] == "not_undoable"
    assert (await undo(owner, entry)).status_code == 200
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0


async def test_who_may_undo_a_plan(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    await planned(seller, changes({"op": "update", "rule_id": rule_id, "set": {"name": "Mine"}}))
    [entry] = await entries(seller, "plan.applied")
    staff = await joined(seller, f"staff-{seller.email}")
    reader, writer = await seller.token("mcp:read"), await seller.token("mcp:write")
    assert (await undo(staff, entry)).json()["code"] == "owner_required"
    assert (await undo(reader, entry)).json()["code"] == "insufficient_scope"
    told = await undo(writer, entry)
    assert (told.status_code, told.json()["actor"].split()[0]) == (200, "token")
    assert (await rule_of(seller, rule_id))["name"] != "Mine"
