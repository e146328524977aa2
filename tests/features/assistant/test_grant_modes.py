"""Permission modes of one grant, for its plans and its single writes, and the page that sets them."""

import re

import pytest

from browsers import joined, signed_in
from oauth_builder import connected
from plans_builder import PLANS, a_plain_shop, lowered, rule_of

ASSISTANTS = "/api/assistants"


async def a_shop_with_an_assistant(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    assistant, tokens = await connected(seller, access="write")
    owner = await signed_in(seller)
    [shown] = (await owner.get(ASSISTANTS)).json()["assistants"]
    return seller, rule_id, owner, shown["id"], assistant.bearer(tokens)


async def allow(owner, grant_id, **modes):
    answer = await owner.send("PATCH", f"{ASSISTANTS}/{grant_id}", json={"modes": modes})
    assert answer.status_code == 200, answer.text
    return answer.json()["modes"]


async def test_a_grant_asks_for_plans_and_makes_single_edits_of_lists(a_seller):
    _, rule_id, _, grant_id, http = await a_shop_with_an_assistant(a_seller)
    async with http:
        plan = (await http.post(PLANS, json=lowered(rule_id, 100))).json()
        assert (plan["status"], plan["actor"]) == ("pending_review", f"grant {grant_id}")
        made = await http.post("/api/lists", json={"name": "Binder"})
        assert made.status_code == 201
        assert (await http.get(f"{PLANS}/{plan['plan_id']}")).json()["status"] == "pending_review"


@pytest.mark.parametrize(
    ("mode", "list_status", "plan_status"),
    [
        ("deny", 403, "refused_by_grant"),
        ("always_ask", 409, "pending_review"),
        ("ask_for_mutations", 409, "pending_review"),
        ("auto_low_risk", 201, "applied"),
        ("auto_unless_critical", 201, "applied"),
    ],
)
async def test_the_mode_of_a_grant_holds_for_its_plans_and_single_writes(
    a_seller, mode, list_status, plan_status
):
    _, _, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    assert await allow(owner, grant_id, **{"lists.change_set": mode}) == {"lists.change_set": mode}
    async with http:
        made = await http.post("/api/lists", json={"name": "Binder"})
        assert made.status_code == list_status, made.text
        body = {"actions": [{"type": "lists.change_set", "create": ["Folder"]}]}
        plan = (await http.post(PLANS, json=body)).json()
    assert plan["status"] == plan_status
    names = {one["name"] for one in (await owner.get("/api/lists")).json()["lists"]}
    assert names == ({"Binder", "Folder"} if list_status == 201 else set())
    if list_status == 409:
        told = made.json()
        assert (told["code"], told["limit"]) == ("needs_review", "permission")
        done = await owner.post(f"{PLANS}/{told['proposal_id']}/confirm", json={})
        assert done.json()["status"] == "applied"
        names = {one["name"] for one in (await owner.get("/api/lists")).json()["lists"]}
        assert names == {"Binder"}
    if list_status == 403:
        assert made.json()["code"] == "refused_by_grant"


async def test_a_deletion_asks_where_only_small_changes_are_made(a_seller):
    _, _, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    await allow(owner, grant_id, **{"lists.change_set": "auto_low_risk"})
    async with http:
        made = (await http.post("/api/lists", json={"name": "Binder"})).json()
        path = f"/api/lists/{made['id']}"
        assert (await http.patch(path, json={"name": "Folder"})).status_code == 200
        refused = await http.delete(path)
        assert (refused.status_code, refused.json()["risk"]) == (409, "medium")


async def test_a_price_of_a_grant_waits_with_its_cards_until_the_owner_clicks(a_seller):
    seller, rule_id, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    await allow(owner, grant_id, **{"pricing.change_set": "ask_for_mutations"})
    async with http:
        refused = await http.patch(f"/api/pricing/rules/{rule_id}", json={"adjust_bp": -100})
        told = refused.json()
        assert (refused.status_code, told["code"], told["cards_affected"]) == (
            409,
            "needs_review",
            10,
        )
        plan = (await http.get(f"{PLANS}/{told['proposal_id']}")).json()
    assert (plan["status"], len(plan["cards"])) == ("pending_review", 10)
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    page = await owner.get(f"/plans/{plan['plan_id']}")
    assert "10.00 → <strong>9.90</strong>" in page.text
    await owner.post(f"{PLANS}/{plan['plan_id']}/confirm", json={"revision": plan["revision"]})
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -100


async def test_only_an_owner_sets_modes_and_bad_ones_are_refused(a_seller):
    seller, _, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    staff = await joined(seller, f"staff-{seller.email}")
    path, body = f"{ASSISTANTS}/{grant_id}", {"modes": {"pricing.pins": "deny"}}
    assert (await staff.send("PATCH", path, json=body)).json()["code"] == "owner_required"
    async with http:
        assert (await http.patch(path, json=body)).json()["code"] == "session_required"
    for bad in ({"modes": {"pricing.pins": "sometimes"}}, {"modes": {"prices": "deny"}}, {}):
        answer = await owner.send("PATCH", path, json=bad)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload"), bad
    other = await signed_in(await a_seller())
    assert (await other.send("PATCH", path, json=body)).status_code == 404
    assert await allow(owner, grant_id, **body["modes"]) == body["modes"]
    assert await allow(owner, grant_id, **{"pricing.pins": None}) == {}


async def test_the_page_shows_sets_and_disconnects(a_seller):
    _, _, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    page = (await owner.get("/settings/assistants")).text
    assert "A Helper" in page
    assert "Read and change, without buyers’ names and notes" in page
    [token] = set(re.findall(r'name="csrf_token" value="([^"]+)"', page))
    form = {"csrf_token": token, "lists.change_set": "deny", "pricing.pins": ""}
    at = f"/settings/assistants/{grant_id}"
    assert (await owner.http.post(f"{at}/modes", data=form)).status_code == 303
    [shown] = (await owner.get(ASSISTANTS)).json()["assistants"]
    assert shown["modes"] == {"lists.change_set": "deny"}
    assert '<option value="deny" selected>' in (await owner.get("/settings/assistants")).text
    assert (await owner.http.post(f"{at}/revoke", data={"csrf_token": token})).status_code == 303
    async with http:
        assert (await http.get("/api/lists")).status_code == 401
    assert "No assistants connected" in (await owner.get("/settings/assistants")).text


async def test_every_client_has_its_page_with_the_address(a_seller):
    owner = await signed_in(await a_seller())
    page = (await owner.get("/settings/assistants")).text
    links = re.findall(r'href="(/settings/assistants/connect/[^"]+)"', page)
    assert len(links) >= 5
    for link in links:
        shown = (await owner.get(link)).text
        assert "/mcp" in shown or "cardsync-agent" in shown
    assert (await owner.get("/settings/assistants/connect/nobody")).status_code == 404


async def test_a_grant_undoes_only_its_own_and_keeps_off_rule_tests(a_seller):
    seller, _, owner, _, http = await a_shop_with_an_assistant(a_seller)
    made = await owner.post("/api/lists", json={"name": "Binder"})
    test = {"name": "Floor", "search": "price>20", "expectation": "never under 20.00"}
    kept = (await owner.post("/api/pricing/rule_tests", json=test)).json()["id"]
    feed = (await owner.get("/api/v1/agent/activity")).json()["activity"]
    [theirs] = [entry["id"] for entry in feed if entry["action"] == "list.created"]
    async with http:
        undone = await http.post(f"/api/v1/agent/activity/{theirs}/undo")
        assert (undone.status_code, undone.json()["code"]) == (403, "refused_by_grant")
        own = await http.post("/api/lists", json={"name": "Folder"})
        feed = (await http.get("/api/v1/agent/activity")).json()["activity"]
        assert (await http.post(f"/api/v1/agent/activity/{feed[0]['id']}/undo")).status_code == 200
        for method in ("PATCH", "DELETE"):
            path = f"/api/pricing/rule_tests/{kept}"
            changed = await http.request(method, path, json={"name": "Other"})
            assert changed.json()["code"] == "refused_by_grant"
    names = [one["name"] for one in (await owner.get("/api/lists")).json()["lists"]]
    assert (made.status_code, own.status_code, names) == (201, 201, ["Binder"])
    assert (await seller.get("/api/pricing/rule_tests")).json()["rule_tests"][0]["name"] == "Floor"


async def test_what_any_token_may_not_do_a_grant_may_not_either(a_seller):
    _, _, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    await allow_tokens(owner, "deny")
    async with http:
        refused = await http.post("/api/lists", json={"name": "Binder"})
        assert refused.json()["code"] == "refused_by_grant"
        await allow(owner, grant_id, **{"lists.change_set": "auto_low_risk"})
        assert (await http.post("/api/lists", json={"name": "Binder"})).status_code == 201


async def allow_tokens(owner, mode):
    body = {"token": {"lists.change_set": mode}}
    answer = await owner.send("PATCH", f"{PLANS}/permissions", json=body)
    assert answer.status_code == 200, answer.text


DECISIONS = [
    "/api/recommendations/1/dismiss",
    "/api/recommendations/1/snooze",
    "/api/pricing/runs/1/discard",
    "/api/pricing/rollbacks/1/cancel",
]


@pytest.mark.parametrize("path", DECISIONS)
async def test_what_waits_for_a_decision_is_none_of_a_denied_grant(a_seller, path):
    _, _, owner, grant_id, http = await a_shop_with_an_assistant(a_seller)
    body = {"revision": "2026-01-01T00:00:00.000000Z"}
    async with http:
        assert (await http.post(path, json=body)).status_code == 404
        await allow(owner, grant_id, **{"pricing.change_set": "deny"})
        refused = await http.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "refused_by_grant")
