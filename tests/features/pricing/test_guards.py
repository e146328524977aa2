"""A guard only limits: whichever rule prices a card, the strictest of its guards holds, at every
door.
"""

from __future__ import annotations

import re

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from cards_builder import found

RULES = "/api/pricing/rules"
FOILS = {"name": "Foils", "guard": True, "query": "is:foil price>20", "floor_cost_bp": 1_500}


def rows():
    foil = {"condition": "Near Mint Foil"}
    return [
        a_row(1, name="Dear foil", price="30.00", market="25.00", low="25.00", **foil),
        a_row(2, name="Cheap foil", price="10.00", market="8.00", low="8.00", **foil),
        a_row(3, name="Plain", price="30.00", market="25.00", low="25.00"),
    ]


async def sent(seller, path, status=201, **body):
    answer = await seller.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def costs(seller, **of):
    for card_id, cost in of.items():
        answer = await seller.post(
            "/api/lots",
            json={"marketplace_id": int(card_id[1:]), "quantity": 1, "unit_cost": cost},
        )
        assert answer.status_code in (200, 201), answer.text


@pytest.fixture
async def shop(a_seller):
    seller = await a_seller()
    [rule] = (await seller.get(RULES)).json()["rules"]
    answer = await seller.http.patch(f"{RULES}/{rule['id']}", json={"never_lower": False})
    assert answer.status_code == 200, answer.text
    await seller.import_csv(a_csv(*rows()))
    return seller


async def targets(seller):
    return {
        card["marketplace_id"]: card["target_price"]
        for card in (await seller.get("/api/cards")).json()["cards"]
    }


async def repriced(seller):
    await sent(seller, "/api/pricing/reprice", 202)
    await seller.service.run_jobs()
    return await targets(seller)


async def test_a_guard_holds_beside_the_rule_that_prices_a_card(shop):
    before = await targets(shop)
    assert before == {1: "24.75", 2: "7.92", 3: "24.75"}
    draft = {k: v for k, v in FOILS.items() if k != "floor_cost_bp"} | {"floor": "28.00"}
    told = await sent(shop, "/api/pricing/preview/draft", 200, rule=draft)
    assert (told["selects"], told["governs"], told["shadowed_by"]) == (1, 1, [])
    made = await sent(shop, RULES, **draft | {"state": "published"})
    assert made["guard"] is True
    assert await repriced(shop) == {1: "28.00", 2: "7.92", 3: "24.75"}
    stricter = {"name": "Stricter", "guard": True, "floor": "29.00", "query": "price>20"}
    await sent(shop, RULES, **stricter | {"state": "published"})
    assert await repriced(shop) == {1: "29.00", 2: "7.92", 3: "29.00"}
    told = (await shop.get("/api/v1/pricing/explain/1")).json()
    guards = {
        one["name"]: one["outcome"] for one in told["matching_rules"] if one["kind"] == "guard"
    }
    assert guards == {"Foils": "holds", "Stricter": "decides"}
    assert told["governing_rule"]["name"] == "Competitive"
    [bounds] = [one for one in told["steps"] if one["name"] == "bounds"]
    assert bounds["summary"] == "24.75 is below the floor of guard “Stricter”, 29.00."
    assert "guards" not in told["inputs"]
    assert await found(shop, "rule:Foils") == [1]
    assert await found(shop, "rule:Stricter") == [1, 3]
    assert await found(shop, "rule:Competitive") == [1, 2, 3]
    # The next upload is priced the same, and its receipts as well.
    await shop.import_csv(a_csv(*rows()))
    await shop.service.run_jobs()
    assert await targets(shop) == {1: "29.00", 2: "7.92", 3: "29.00"}
    told = (await shop.get("/api/v1/pricing/explain/1")).json()
    then = told["historical_breakdown"]
    assert (then["final_price"], "guards" in then["inputs"]) == ("29.00", False)
    idle = (await shop.get("/api/today")).json()
    assert "rules_idle" not in {one["kind"] for one in idle["conditions"]}


async def test_a_guard_is_refused_a_price_and_needs_a_limit_and_can_be_undone(shop):
    said = await sent(shop, RULES, 422, **FOILS | {"adjust_bp": -100})
    assert "adjust_bp" in said["error"]
    said = await sent(shop, RULES, 422, name="Nothing", guard=True)
    assert "needs a limit" in said["error"]
    made = await sent(shop, RULES, **FOILS | {"state": "published"})
    [entry, *_] = (await shop.get("/api/v1/agent/activity")).json()["activity"]
    undone = await shop.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert undone.status_code == 200, undone.text
    assert made["id"] not in {rule["id"] for rule in (await shop.get(RULES)).json()["rules"]}
    assert not any("guard" in rule for rule in (await shop.get(RULES)).json()["rules"])
    shown = await sent(
        shop, "/api/pricing/preview", 200, rules=[{"name": "R"}, FOILS | {"floor": "50.00"}]
    )
    assert (shown["up"], shown["down"]) == (1, 2)


async def test_the_order_of_rules_needs_no_guards(shop):
    await sent(shop, RULES, **FOILS)
    first = await sent(shop, RULES, name="First")
    rules = (await shop.get(RULES)).json()["rules"]
    ids = [rule["id"] for rule in rules if "guard" not in rule]
    assert first["id"] in ids
    answer = await shop.http.put(f"{RULES}/order", json={"ids": ids})
    if answer.status_code in (404, 405):
        answer = await shop.post(f"{RULES}/reorder", json={"ids": ids})
    assert answer.status_code == 200, answer.text
    assert [rule["id"] for rule in answer.json()["rules"] if "guard" not in rule] == ids


async def test_a_guard_is_written_in_five_clicks_and_a_rule_is_copied(shop):
    browser = await signed_in(shop)
    # Rules, New guard, three fields, Save and publish.
    listed = (await browser.get("/pricing")).text
    [address] = set(re.findall(r'href="(/pricing/rules/new\?guard=1)"', listed))
    page = (await browser.get(address)).text
    assert "New guard" in page
    for name in ("percent", "price_source", "cap_up", "holdout"):
        assert f'name="{name}"' not in page
    was = re.search(r'name="was" value="([^"]*)"', page)[1].replace("&#34;", '"')
    texts = {"name": "Foils", "query": "is:foil price>20", "floor_cost": "15", "floor": "28.00"}
    form = {"face": "form", "was": was, "action": "publish"} | texts
    saved = await browser.form("/pricing/rules/new", **form)
    assert saved.status_code == 303, saved.text
    [guard] = [rule for rule in (await shop.get(RULES)).json()["rules"] if "guard" in rule]
    assert (guard["state"], guard["floor_cost_bp"]) == ("published", 1_500)
    page = (await browser.get(f"/pricing/rules/{guard['id']}")).text
    assert "Never below cost plus 15%." in page
    listed = (await browser.get("/pricing?counts=1")).text
    rules, _, guards = listed.partition('id="guards"')
    assert "Foils</bdi>" in guards
    assert "Foils</bdi>" not in rules
    assert (await repriced(shop))[1] == "28.00"
    empty = await browser.form("/pricing/rules/new", **form | {"floor_cost": "", "floor": ""})
    assert empty.status_code == 422
    assert "needs a limit" in empty.text
    [rule] = [one for one in (await shop.get(RULES)).json()["rules"] if "guard" not in one]
    copied = await browser.form(f"/pricing/rules/{rule['id']}/copy")
    assert copied.status_code == 303, copied.text
    [copy] = [
        one for one in (await shop.get(RULES)).json()["rules"] if one["name"].startswith("Copy of")
    ]
    assert (copy["name"], copy["state"], copy["cap"]) == (
        f"Copy of {rule['name']}",
        "draft",
        rule["cap"],
    )
