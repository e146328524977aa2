"""A guard only limits: whichever rule prices a card, the strictest of its guards holds, at every
door.
"""

from __future__ import annotations

import html
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
    for name in ("percent", "price_source", "cap_period", "holdout"):
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


async def test_a_rule_and_a_guards_daily_cap_are_told_together_at_every_door(shop):
    browser = await signed_in(shop)
    leaps = {"name": "No leaps", "guard": True, "query": "price>20", "cap": {"down_bp": 500}}
    told = await sent(shop, "/api/pricing/preview/draft", 200, rule=leaps)
    assert (told["selects"], told["governs"], told["held"]) == (2, 2, 2)
    shown = await sent(shop, "/api/pricing/preview", 200, rules=[{"name": "R"}, leaps])
    assert shown["held"] == 2
    made = await sent(shop, RULES, **leaps | {"state": "published"})
    assert made["cap"] == {
        "up_bp": None, "down_bp": 500, "period": "day", "mode": "clamp", "small": None,
    }  # fmt: skip
    assert await repriced(shop) == {1: "28.50", 2: "7.92", 3: "28.50"}
    [run, *_] = (await shop.get("/api/pricing/runs")).json()["runs"]
    assert run["held"] == 2
    for search, cards in (("is:held", [1, 3]), ("is:capped", [1, 3]), ("is:stuck", []),
                          ('rule:"No leaps"', [1, 3]), ("rule:Competitive", [1, 2, 3])):  # fmt: skip
        assert await found(shop, search) == cards, search
    said = "Daily limit of guard “No leaps”: can't go below 28.50 today; the rule sets 24.75."
    told = (await shop.get("/api/v1/pricing/explain/1")).json()
    [cap] = [step for step in told["steps"] if step["name"] == "cap"]
    assert (cap["summary"], cap["guard_cap_id"], cap["period"]) == (said, made["id"], "day")
    outcomes = {one["name"]: (one["kind"], one["outcome"]) for one in told["matching_rules"]}
    assert outcomes == {"Competitive": ("base", "governs"), "No leaps": ("guard", "decides")}
    page = (await browser.get("/cards")).text
    assert page.count("limited by daily cap") == 2
    [id] = [c["id"] for c in (await shop.get("/api/cards")).json()["cards"]
            if c["marketplace_id"] == 1]  # fmt: skip
    page = html.unescape((await browser.get(f"/cards/{id}")).text)
    assert said.partition(" 28.50")[0] in page
    # Uploads price the same way, and their receipts say it.
    await shop.import_csv(a_csv(*rows()))
    await shop.service.run_jobs()
    assert await targets(shop) == {1: "28.50", 2: "7.92", 3: "28.50"}
    then = (await shop.get("/api/v1/pricing/explain/1")).json()["historical_breakdown"]
    [cap] = [step for step in then["steps"] if step["name"] == "cap"]
    assert (cap["summary"], then["final_price"]) == (said, "28.50")
    # With a floor beside it, the floor decides; without a cap, nothing holds the card.
    floor = {"floor": "29.00"}
    answer = await shop.http.patch(f"{RULES}/{made['id']}", json=floor)
    assert answer.status_code == 200, answer.text
    assert (await repriced(shop))[1] == "29.00"
    answer = await shop.http.patch(f"{RULES}/{made['id']}", json={"cap": None})
    assert answer.status_code == 200, answer.text
    assert (await repriced(shop))[1] == "29.00"
    assert await found(shop, "is:held") == []


async def test_a_guards_daily_cap_is_written_on_its_page(shop):
    browser = await signed_in(shop)
    page = (await browser.get("/pricing/rules/new?guard=1")).text
    was = re.search(r'name="was" value="([^"]*)"', page)[1].replace("&#34;", '"')
    form = {"face": "form", "was": was, "action": "publish", "name": "Slow", "cap_up": "5"}
    saved = await browser.form("/pricing/rules/new", **form)
    assert saved.status_code == 303, saved.text
    [guard] = [rule for rule in (await shop.get(RULES)).json()["rules"] if "guard" in rule]
    assert (guard["cap"]["up_bp"], guard["cap"]["down_bp"]) == (500, None)
    page = (await browser.get(f"/pricing/rules/{guard['id']}")).text
    assert "Prices move at most 5% up per day" in page
    assert re.search(r'name="cap_up"[^>]*value="5"', page)
