"""Limits hold back what a key or a token has done to prices, net, and nothing else: a write counts
once, and what was taken back, is over or never happened counts nothing.
"""

from datetime import timedelta

import pytest

from browsers import signed_in
from cardsync.platform import clock
from plans_builder import (
    PLANS,
    PRICING,
    a_sale,
    a_shop_under_limits,
    lowered,
    needs_review,
)

KEYS = "/api/keys"


async def repriced(seller, by=None):
    answer = await (by or seller).post(f"{PRICING}/reprice")
    assert answer.status_code == 202, answer.text
    await seller.service.run_jobs()
    return answer.json()["run_id"]


async def pinned(seller, price, number=1):
    return await seller.http.put(f"{PRICING}/pins/{number}", json={"price": price})


async def test_a_write_counts_once_whoever_runs_it(a_limited_seller):
    seller, _, rule_id = await a_shop_under_limits(a_limited_seller)
    path = f"{PRICING}/rules/{rule_id}"
    assert (await seller.http.patch(path, json={"adjust_bp": -1200})).status_code == 200
    for _ in range(3):
        await repriced(seller)
    # 20 % is the limit, and 12 % of it are used.
    assert (await seller.http.patch(path, json={"adjust_bp": -2000})).status_code == 200
    await repriced(seller)
    needs_review(await seller.http.patch(path, json={"adjust_bp": -2100}))


async def test_a_promotion_that_is_over_counts_nothing(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    made = await seller.post(f"{PRICING}/sales", json=a_sale(-2000, days=1 / 24))
    assert made.status_code == 201, made.text
    needs_review(await pinned(seller, "7.90"))
    off = await owner.send("PATCH", f"{PRICING}/sales/{made.json()['id']}", json={"enabled": False})
    assert off.status_code == 200, off.text
    assert (await pinned(seller, "8.00")).status_code == 200
    assert (await seller.http.delete(f"{PRICING}/pins/1")).status_code == 200
    # Another one is over by itself.
    made = await seller.post(f"{PRICING}/sales", json=a_sale(-2000, days=1 / 48))
    assert made.status_code == 201, made.text
    needs_review(await pinned(seller, "7.90", 2))
    clock.shift(timedelta(minutes=31))
    assert (await pinned(seller, "8.00", 2)).status_code == 200


async def test_a_promotion_that_a_key_takes_back_counts_nothing(a_limited_seller):
    seller, _, _ = await a_shop_under_limits(a_limited_seller)
    for way in ("deleted", "undone"):
        made = await seller.post(f"{PRICING}/sales", json=a_sale(-2000))
        assert made.status_code == 201, (way, made.text)
        if way == "deleted":
            gone = await seller.http.delete(f"{PRICING}/sales/{made.json()['id']}")
        else:
            [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
            gone = await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")
        assert gone.status_code == 200, (way, gone.text)
    assert (await pinned(seller, "8.00")).status_code == 200
    needs_review(await pinned(seller, "12.10", 2))


@pytest.mark.parametrize("way", ["unpinned", "undone", "by a plan", "confirmed"])
async def test_what_a_member_takes_back_counts_nothing(a_limited_seller, way):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    assert (await pinned(seller, "8.00")).status_code == 200
    needs_review(await pinned(seller, "7.90"))
    if way == "unpinned":
        done = await owner.send("DELETE", f"{PRICING}/pins/1")
    elif way == "confirmed":
        done = await owner.send("DELETE", f"{PRICING}/pins/1?confirm=true")
    elif way == "undone":
        feed = (await seller.get("/api/v1/agent/activity")).json()["activity"]
        [entry] = [one for one in feed if one["action"] == "pricing.pinned"]
        done = await owner.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    else:
        actions = {"actions": [{"type": "pricing.pins", "remove": [1]}]}
        done = await owner.post(PLANS, json=actions)
    assert done.status_code in (200, 201), done.text
    assert (await pinned(seller, "8.00")).status_code == 200
    needs_review(await pinned(seller, "7.90"))


async def test_a_member_who_lowers_prices_takes_nothing_back(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    assert (await pinned(seller, "8.00")).status_code == 200
    lower = await owner.send("PUT", f"{PRICING}/pins/1", json={"price": "7.00"})
    assert lower.status_code == 200
    needs_review(await pinned(seller, "6.90"))


async def test_a_plan_that_was_declined_counts_nothing(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    waits = (await seller.post(PLANS, json=lowered(rule_id, 1500))).json()
    assert waits["status"] == "pending_review"
    declined = await owner.post(f"{PLANS}/{waits['plan_id']}/decline")
    assert declined.json()["status"] == "declined"
    assert (await pinned(seller, "8.00")).status_code == 200


async def risen(seller, owner, rule_id, bp=1500):
    """A run after which a rollback takes the cards down again."""
    path = f"{PRICING}/rules/{rule_id}"
    assert (await owner.send("PATCH", path, json={"adjust_bp": bp})).status_code == 200
    return await repriced(seller, owner)


async def test_a_key_takes_the_newest_run_back_whatever_it_moves(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    run = await risen(seller, owner, rule_id, 9_000)
    token = await seller.token("mcp:read", "mcp:write")
    needs_review(await token.post(f"{PRICING}/rollbacks", json={"run_id": run}))
    made = await seller.post(f"{PRICING}/rollbacks", json={"run_id": run})
    assert (made.status_code, made.json()["cards"]) == (201, 10)
    assert (await seller.post(f"{PRICING}/rollbacks/{made.json()['id']}/cancel")).status_code == 200
    assert (await pinned(seller, "16.00")).status_code == 200


async def test_after_a_day_it_is_weighed(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    run = await risen(seller, owner, rule_id, 9_000)
    clock.shift(timedelta(hours=24, minutes=1))
    needs_review(await seller.post(f"{PRICING}/rollbacks", json={"run_id": run}))


async def test_a_rollback_that_never_happened_counts_nothing(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    run = await risen(seller, owner, rule_id)
    clock.shift(timedelta(hours=25))
    for _ in range(3):
        made = await seller.post(f"{PRICING}/rollbacks", json={"run_id": run})
        assert made.status_code == 201, made.text
        again = await seller.post(f"{PRICING}/rollbacks", json={"run_id": run})
        assert again.json()["id"] == made.json()["id"]
        path = f"{PRICING}/rollbacks/{made.json()['id']}/cancel"
        assert (await seller.post(path)).status_code == 200
    assert (await pinned(seller, "9.20")).status_code == 200
    needs_review(await pinned(seller, "9.19"))


async def test_a_script_of_the_shops_own_is_not_weighed(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    [key] = (await owner.get(KEYS)).json()["keys"]
    assert key["own_script"] is False
    path = f"{KEYS}/{key['id']}"
    for by in (seller.http, await seller.token("mcp:read", "mcp:write")):
        refused = await by.request("PATCH", path, json={"own_script": True, "confirm": True})
        assert refused.status_code == 403, refused.text
    unsure = await owner.send("PATCH", path, json={"own_script": True})
    assert (unsure.status_code, unsure.json()["code"]) == (422, "invalid_payload")
    assert "confirm" in unsure.json()["error"]
    needs_review(await pinned(seller, "0.50"))
    marked = await owner.send("PATCH", path, json={"own_script": True, "confirm": True})
    assert (marked.status_code, marked.json()["own_script"]) == (200, True)
    page = (await owner.get("/settings/keys")).text
    assert "my own script" in page
    assert "Put back under the limits" in page
    [entry, *_] = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    assert (entry["action"], entry["risk"]) == ("key.own_script", "high")
    assert (await pinned(seller, "0.50")).status_code == 200
    plan = (await seller.post(PLANS, json=lowered(rule_id, 9_000))).json()
    assert plan["status"] == "applied", plan
    # A key in its place is one, too; another key is none, and what the script did does not count.
    made = (await owner.post(f"{path}/replace")).json()["api_key"]
    other = (await owner.post(KEYS, json={"name": "Other"})).json()["api_key"]
    heir, stranger = (
        seller.service.client(Authorization=f"Bearer {secret}") for secret in (made, other)
    )
    assert (await heir.put(f"{PRICING}/pins/2", json={"price": "90.00"})).status_code == 200
    assert (await stranger.put(f"{PRICING}/pins/3", json={"price": "0.90"})).status_code == 200
    needs_review(await stranger.put(f"{PRICING}/pins/2", json={"price": "50.00"}))


async def test_the_page_lifts_the_limits_for_a_key_and_puts_it_back(a_limited_seller):
    seller = await a_limited_seller()
    owner = await signed_in(seller)
    [key] = (await owner.get(KEYS)).json()["keys"]
    csrf = {"csrf_token": owner.session["csrf_token"]}
    for mark, own in (("own-script", True), ("limited", False)):
        done = await owner.http.post(f"/settings/keys/{key['id']}/{mark}", data=csrf)
        assert done.status_code == 303, done.text
        [now] = (await owner.get(KEYS)).json()["keys"]
        assert now["own_script"] is own
    wrong = await owner.http.post(f"/settings/keys/{key['id']}/free", data=csrf)
    assert wrong.status_code == 404


async def test_every_refusal_says_what_lifts_it(a_limited_seller):
    seller, _, rule_id = await a_shop_under_limits(a_limited_seller, budget="2.00")
    of_card = needs_review(await pinned(seller, "7.90"))
    assert of_card["limit"] == "card_hour"
    of_budget = needs_review(
        await seller.http.patch(f"{PRICING}/rules/{rule_id}", json={"adjust_bp": -500})
    )
    assert of_budget["limit"] == "loss_budget"
    assert "loss_budget" in of_budget["error"]
    plan = (await seller.post(PLANS, json=lowered(rule_id, 400))).json()
    assert (plan["status"], plan["limit"]) == ("refused_by_limit", "loss_budget")
    for said in (of_card, of_budget, plan):
        assert "confirm_url" in said["error"]
        assert "Settings, Keys" in said["error"]
        assert said["confirm_url"].startswith("http")
