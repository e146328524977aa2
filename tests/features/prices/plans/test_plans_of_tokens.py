"""Plans of tokens over HTTP: what each scope may do, and which mode answers by itself."""

import pytest

from browsers import signed_in
from plans_builder import PERMISSIONS, PLANS, a_plain_shop, allow, lowered, planned, rule_of


async def test_a_token_that_writes_asks_before_it_changes_anything(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    token = await seller.token("mcp:write")
    plan = await planned(token, lowered(rule_id, 1))
    assert (plan["status"], plan["risk"]) == ("pending_review", "low")
    assert plan["confirm_url"].endswith(f"/plans/{plan['plan_id']}")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    owner = await signed_in(seller)
    path = f"{PLANS}/{plan['plan_id']}/confirm"
    done = (await owner.post(path, json={"revision": plan["revision"]})).json()
    assert (done["status"], done["decided_by"]) == ("applied", f"member {owner.member_id}")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -1
    found = await seller.get("/api/v1/agent/activity", params={"action": "plan"})
    actors = [row["actor"].split()[0] for row in found.json()["activity"]]
    assert actors == ["member", "token"]


async def test_what_changes_nothing_needs_no_click_and_a_dry_run_says_what_would_happen(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    token = await seller.token("mcp:write")
    assert (await planned(token, lowered(rule_id, 0)))["status"] == "applied"
    plan = await planned(token, lowered(rule_id, 100, dry_run=True))
    assert (plan["status"], plan["expected_status"]) == ("previewed", "pending_review")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0


async def test_a_token_follows_its_own_mode_and_not_that_of_keys(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    token = await seller.token("mcp:write")
    await allow(seller, "auto_low_risk", "token")
    await allow(seller, "deny", "key")
    assert (await planned(token, lowered(rule_id, 300)))["status"] == "applied"
    assert (await planned(token, lowered(rule_id, 2000)))["status"] == "pending_review"
    assert (await planned(seller, lowered(rule_id, 1), 200))["limit"] == "key.pricing.change_set"
    await allow(seller, "deny", "token")
    plan = await planned(token, lowered(rule_id, 1), 200)
    assert (plan["status"], plan["limit"]) == ("refused_by_grant", "token.pricing.change_set")


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_token_that_only_reads_can_do_none_of_it(a_seller, dry_run):
    seller, rule_id = await a_plain_shop(a_seller)
    for kind in ("pricing.change_set", "pricing.pins", "lists.change_set"):
        await allow(seller, "auto_unless_critical", "token", kind)
    waiting = await planned(seller, lowered(rule_id, 1500))
    reader = await seller.token("mcp:read")
    # Refused before its arguments are looked at.
    for body in (lowered(rule_id, 1, dry_run=dry_run), {"actions": "none"}):
        answer = await reader.post(PLANS, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
        assert 'scope="mcp:write"' in answer.headers["WWW-Authenticate"]
    at = f"{PLANS}/{waiting['plan_id']}"
    assert (await reader.get(at)).json()["status"] == "pending_review"
    assert (await reader.get(PLANS)).json()["total"] == 1
    for method, path in (
        ("POST", f"{at}/confirm"),
        ("POST", f"{at}/decline"),
        ("GET", PERMISSIONS),
        ("PATCH", PERMISSIONS),
    ):
        answer = await reader.request(method, path, json={} if method != "GET" else None)
        assert (answer.status_code, answer.json()["code"]) == (403, "session_required")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0


async def test_a_token_that_writes_neither_reads_nor_confirms_its_plan(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    token = await seller.token("mcp:write")
    at = f"{PLANS}/{(await planned(token, lowered(rule_id, 10)))['plan_id']}"
    assert (await token.get(at)).json()["code"] == "insufficient_scope"
    for word in ("confirm", "decline"):
        answer = await token.post(f"{at}/{word}", json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "session_required")
    assert (await seller.get(at)).json()["status"] == "pending_review"


async def test_one_plan_key_makes_one_plan_whoever_sends_it(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    token = await seller.token("mcp:write")
    plan = await planned(token, lowered(rule_id, 10, plan_key="k"))
    assert await planned(token, lowered(rule_id, 10, plan_key="k")) == plan
    # A plan belongs to the seller, and so does its key.
    assert (await planned(seller, lowered(rule_id, 10, plan_key="k")))["plan_id"] == plan["plan_id"]
