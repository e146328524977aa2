"""Prices that keys, tokens and members write outside plans: within the loss limits at once, beyond
them as a plan that waits; large changes of members are confirmed.
"""

import asyncio

import pytest

from browsers import signed_in
from builders import a_csv, a_row
from plans_builder import PLANS, PRICING, a_sale, a_shop_under_limits, needs_review, rule_of
from quick_add_builder import JAGUAR, drafted, entry_of


async def all_of(seller):
    """The rules, sales, pins and settings as they are."""
    rules = (await seller.get(f"{PRICING}/rules")).json()
    sales = (await seller.get(f"{PRICING}/sales")).json()
    settings = (await seller.get(f"{PRICING}/settings")).json()
    pins = await seller.service.sql(
        seller.id,
        "SELECT marketplace_id, price FROM price_decision"
        " WHERE seller_id = :id AND kind = 'pin' ORDER BY 1",
        id=seller.id,
    )
    return rules, sales, settings, pins


async def test_a_key_beyond_a_limit_changes_nothing_and_a_member_decides(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    before = await all_of(seller)
    path = f"{PRICING}/rules/{rule_id}"
    body = needs_review(await seller.http.patch(path, json={"adjust_bp": -9000}))
    assert (body["limit"], body["risk"], body["cards_affected"]) == ("card_hour", "critical", 10)
    assert body["listed_value_change"] == "-90.00"
    assert await all_of(seller) == before
    plan = (await seller.get(f"{PLANS}/{body['proposal_id']}")).json()
    assert (plan["status"], plan["confirm_url"]) == ("pending_review", body["confirm_url"])
    page = await owner.get(body["confirm_url"])
    assert page.status_code == 200
    done = await owner.post(f"{PLANS}/{plan['plan_id']}/confirm", json={"revision": 1})
    assert done.json()["status"] == "applied", done.text
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -9000


async def test_small_changes_of_a_key_are_done_at_once_and_add_up(a_limited_seller):
    seller, _, rule_id = await a_shop_under_limits(a_limited_seller)
    path = f"{PRICING}/rules/{rule_id}"
    statuses = [
        (await seller.http.patch(path, json={"adjust_bp": -400 * n})).status_code
        for n in range(1, 8)
    ]
    assert statuses == [200] * 5 + [409] * 2
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -2000
    # Whatever the way, it is the same sum.
    needs_review(await seller.http.put(f"{PRICING}/pins/1", json={"price": "7.99"}))
    assert (await seller.post(f"{PRICING}/sales", json=a_sale(-100))).status_code == 409


WAYS = {
    "a rule": ("POST", "/rules", {"name": "Low", "state": "published", "adjust_bp": -9000}),
    "a guard": (
        "POST",
        "/rules",
        {"name": "Low", "state": "published", "guard": True, "ceiling": "0.50"},
    ),
    "a pin": ("PUT", "/pins/1", {"price": "0.50"}),
    "a sale": ("POST", "/sales", lambda: a_sale(-9000)),
    "a sale of tomorrow": ("POST", "/sales", lambda: a_sale(-9000, starts=1)),
    "a floor": ("PATCH", "/settings", {"hard_floor": "50.00"}),
    "a rise": ("PUT", "/pins/1", {"price": "5000.00"}),
}


async def test_a_key_takes_no_guard_away_that_keeps_prices_up(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    guard = {"name": "High", "state": "published", "guard": True, "floor": "30.00"}
    made = await owner.post(f"{PRICING}/rules", json=guard | {"query": "qty>0"})
    assert made.status_code == 201, made.text
    await seller.service.run_jobs()
    path = f"{PRICING}/rules/{made.json()['id']}"
    for method, body in (
        ("DELETE", None),
        ("PATCH", {"enabled": False}),
        ("PATCH", {"floor": "3"}),
    ):
        needs_review(await seller.http.request(method, path, json=body))
    assert (await rule_of(seller, made.json()["id"]))["floor"] == "30.00"


@pytest.mark.parametrize("way", WAYS)
async def test_no_way_of_a_token_goes_round_the_limits(a_limited_seller, way):
    seller, _, _ = await a_shop_under_limits(a_limited_seller)
    token = await seller.token("mcp:read", "mcp:write")
    before = await all_of(seller)
    method, path, body = WAYS[way]
    sent = body() if callable(body) else body
    body = needs_review(await token.request(method, f"{PRICING}{path}", json=sent))
    assert await all_of(seller) == before
    plan = (await seller.get(f"{PLANS}/{body['proposal_id']}")).json()
    assert plan["actor"].startswith("token ")


@pytest.mark.night
@pytest.mark.parametrize("way", WAYS)
async def test_a_member_makes_of_a_proposal_what_was_asked(a_limited_seller, way):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    method, path, body = WAYS[way]
    sent = body() if callable(body) else body
    waits = needs_review(await seller.http.request(method, f"{PRICING}{path}", json=sent))
    before = await all_of(seller)
    done = await owner.post(f"{PLANS}/{waits['proposal_id']}/confirm")
    assert done.json()["status"] == "applied", done.text
    assert await all_of(seller) != before


async def test_a_sale_or_setting_that_changed_meanwhile_is_shown_before_a_write_applies(
    a_limited_seller,
):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    sale = (await owner.post(f"{PRICING}/sales", json=a_sale(-100))).json()
    path = f"{PRICING}/sales/{sale['id']}"
    deeper = needs_review(await seller.http.patch(path, json={"adjust_bp": -9000}))
    dearer = needs_review(
        await seller.http.patch(f"{PRICING}/settings", json={"hard_floor": "50.00"})
    )
    renamed = await owner.send("PATCH", path, json={"name": "Another"})
    assert renamed.status_code == 200, renamed.text
    floor = await owner.send("PATCH", f"{PRICING}/settings", json={"hard_floor": "0.11"})
    assert floor.status_code == 200, floor.text
    seen = (await owner.post(f"{PLANS}/{deeper['proposal_id']}/confirm")).json()
    assert seen["status"] == "drifted"
    assert any("“Another”: name was" in line for line in seen["drift"]), seen["drift"]
    seen = (await owner.post(f"{PLANS}/{dearer['proposal_id']}/confirm")).json()
    assert seen["status"] == "drifted"
    assert any("hard_floor was" in line and "0.11" in line for line in seen["drift"])


async def test_all_at_once_is_no_way_round_either(a_limited_seller):
    seller, _, _ = await a_shop_under_limits(a_limited_seller, budget="6.50")
    answers = await asyncio.gather(
        *(seller.http.put(f"{PRICING}/pins/{n}", json={"price": "8.00"}) for n in (1, 2, 3, 4, 5))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [409] * 2


@pytest.mark.night
async def test_a_sale_behind_a_gentler_one_is_judged_as_if_it_ran_alone(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    gentle = await owner.post(f"{PRICING}/sales", json=a_sale(-100, priority=1, days=1))
    assert gentle.status_code == 201
    waits = await seller.post(f"{PRICING}/sales", json=a_sale(-5000, priority=2, days=9))
    assert needs_review(waits)["limit"] == "card_hour"


async def test_presets_orders_deletions_and_undo_are_writes_of_prices(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    dear = {"name": "Dear", "state": "published", "adjust_bp": 20_000, "priority": 10}
    made = (await owner.post(f"{PRICING}/rules", json=dear)).json()
    needs_review(await seller.http.delete(f"{PRICING}/rules/{made['id']}"))
    needs_review(await seller.post(f"{PRICING}/rules/{made['id']}/disable"))
    order = {"ids": [rule_id, made["id"]]}
    asked = await owner.post(f"{PRICING}/rules/reorder", json=order)
    assert asked.json()["code"] == "confirmation_needed"
    sure = await owner.post(f"{PRICING}/rules/reorder", json=order | {"confirm": True})
    assert sure.status_code == 200
    assert (await rule_of(seller, made["id"]))["priority"] > (await rule_of(seller, rule_id))[
        "priority"
    ]
    needs_review(await seller.post(f"{PRICING}/rules/reorder", json={"ids": order["ids"][::-1]}))
    [entry] = [
        entry
        for entry in (await seller.get("/api/v1/agent/activity")).json()["activity"]
        if entry["action"] == "pricing.rules_reordered"
    ]
    undo = needs_review(await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo"))
    assert undo["confirm_url"].endswith("/activity")
    assert (await owner.post(f"/api/v1/agent/activity/{entry['id']}/undo")).status_code == 200


async def test_a_key_reprices_whatever_the_rules_ask(a_limited_seller):
    """The next sync would ask it anyway."""
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    path = f"{PRICING}/rules/{rule_id}"
    large = {"adjust_bp": -3000, "confirm": True}
    assert (await owner.send("PATCH", path, json=large)).status_code == 200
    assert (await seller.post(f"{PRICING}/reprice")).status_code == 202
    await seller.service.run_jobs()
    card = (await seller.get("/api/cards")).json()["cards"][0]
    assert card["target_price"] == "7.00"


@pytest.mark.night
async def test_a_list_that_a_rule_selects_is_a_price(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    made = (await owner.post("/api/lists", json={"name": "Cheap"})).json()
    body = {"name": "Cheap", "state": "published", "query": "list:cheap", "adjust_bp": -6000}
    assert (await owner.post(f"{PRICING}/rules", json=body)).status_code == 201
    path = f"/api/lists/{made['id']}/cards"
    needs_review(await seller.post(path, json={"marketplace_ids": [1]}))
    assert (await seller.get(f"/api/lists/{made['id']}")).json()["card_count"] == 0
    assert (
        await owner.post(f"{path}?confirm=true", json={"marketplace_ids": [1]})
    ).status_code == 200
    needs_review(
        await seller.http.request("DELETE", path, json={"marketplace_ids": [1]})
    )  # fmt: skip


async def test_a_rollback_by_a_key_is_under_the_limits(a_limited_seller):
    seller, owner, rule_id = await a_shop_under_limits(a_limited_seller)
    large = {"adjust_bp": 5000}
    path = f"{PRICING}/rules/{rule_id}"
    assert (await owner.send("PATCH", path, json=large)).status_code == 200
    run = (await owner.post(f"{PRICING}/reprice")).json()["run_id"]
    await seller.service.run_jobs()
    dry = await seller.post(f"{PRICING}/rollbacks", json={"run_id": run, "dry_run": True})
    assert (dry.status_code, dry.json()["cards"]) == (200, 10)
    # A later run makes this one an older one.
    await owner.post(f"{PRICING}/reprice")
    await seller.service.run_jobs()
    waits = needs_review(await seller.post(f"{PRICING}/rollbacks", json={"run_id": run}))
    assert (await seller.get(f"{PRICING}/rollbacks")).json()["rollbacks"] == []
    done = await owner.post(f"{PLANS}/{waits['proposal_id']}/confirm")
    assert done.json()["status"] == "applied", done.text
    [rollback] = (await seller.get(f"{PRICING}/rollbacks")).json()["rollbacks"]
    assert rollback["state"] == "requested"


@pytest.mark.night
async def test_drafts_and_names_move_no_price(a_limited_seller):
    seller, _, rule_id = await a_shop_under_limits(a_limited_seller)
    draft = await seller.post(f"{PRICING}/rules", json={"name": "Draft", "adjust_bp": -9900})
    assert draft.status_code == 201
    path = f"{PRICING}/rules/{draft.json()['id']}"
    assert (await seller.http.patch(path, json={"adjust_bp": -9800})).status_code == 200
    needs_review(await seller.post(f"{path}/publish"))
    named = await seller.http.patch(f"{PRICING}/rules/{rule_id}", json={"name": "Mine"})
    assert (named.status_code, named.json()["name"]) == (200, "Mine")
    assert (await seller.http.patch(f"{PRICING}/rules/{rule_id}", json={})).status_code == 200
    bad = await seller.http.patch(f"{PRICING}/rules/{rule_id}", json={"adjust_bp": "x"})
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_rule")
    assert (await seller.http.patch(f"{PRICING}/rules/987654", json={})).status_code == 404


@pytest.mark.first(1)
@pytest.mark.parametrize("bp", [-9001, -10_000, 1])
async def test_a_sale_takes_off_at_most_nine_tenths(a_limited_seller, bp):
    _, owner, _ = await a_shop_under_limits(a_limited_seller)
    answer = await owner.post(f"{PRICING}/sales", json=a_sale(bp))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_rule")
    assert "adjust_bp" in answer.json()["error"]


async def test_a_member_confirms_a_mistyped_sale_and_a_floor_holds(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    asked = await owner.post(f"{PRICING}/sales", json=a_sale(-9000))
    assert (asked.status_code, asked.json()["code"]) == (422, "confirmation_needed")
    assert asked.json() == {
        "error": asked.json()["error"],
        "code": "confirmation_needed",
        "cards_affected": 10,
        "listed_value_change": "-90.00",
        "deepest_fall_bp": 9000,
    }
    assert (await seller.get(f"{PRICING}/sales")).json()["sales"] == []
    # A floor holds, so that nothing falls far.
    held = await owner.post(f"{PRICING}/sales", json=a_sale(-9000, floor="9.00"))
    assert held.status_code == 201, held.text
    sure = await owner.post(f"{PRICING}/sales", json=a_sale(-9000) | {"confirm": True})
    assert sure.status_code == 201


@pytest.mark.first(1)
@pytest.mark.parametrize(("price", "needed"), [("5.00", False), ("4.99", True)])
async def test_a_member_confirms_what_halves_a_card(a_limited_seller, price, needed):
    _, owner, _ = await a_shop_under_limits(a_limited_seller)
    answer = await owner.send("PUT", f"{PRICING}/pins/1", json={"price": price})
    assert answer.status_code == (422 if needed else 200)
    if needed:
        again = await owner.send("PUT", f"{PRICING}/pins/1?confirm=true", json={"price": price})
        assert again.status_code == 200


async def test_the_page_shows_the_figures_before_it_writes(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    csrf = owner.session["csrf_token"]
    form = {"name": "Mistyped", "percent": "90", "ends": "2130-01-01T08:00", "csrf_token": csrf}
    form |= {"action": "schedule", "lower_all": "true"}
    asked = await owner.http.post("/pricing/sales/new", data=form)
    assert asked.status_code == 422
    assert "Nothing has changed yet" in asked.text
    assert 'name="confirm" value="true"' in asked.text
    assert 'name="percent" value="90"' in asked.text
    assert "90" in asked.text
    assert (await seller.get(f"{PRICING}/sales")).json()["sales"] == []
    done = await owner.http.post("/pricing/sales/new", data=form | {"confirm": "true"})
    assert done.status_code == 303
    assert len((await seller.get(f"{PRICING}/sales")).json()["sales"]) == 1


async def test_a_budget_is_a_members_to_set(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller, budget="1.00")
    needs_review(await seller.http.put(f"{PRICING}/pins/1", json={"price": "8.99"}))
    assert (await seller.http.patch("/api/account", json={"loss_budget": "9"})).status_code == 403
    set_ = await owner.send("PATCH", "/api/account", json={"loss_budget": "9.50"})
    assert (set_.status_code, set_.json()["loss_budget"]) == (200, "9.50")
    fine = await seller.http.put(f"{PRICING}/pins/1", json={"price": "8.99"})
    assert fine.status_code == 200
    none = await owner.send("PATCH", "/api/account", json={"loss_budget": None})
    assert none.json()["loss_budget"] is None


async def test_a_pin_of_many_and_an_end_of_pins_are_weighed(a_limited_seller):
    seller, owner, _ = await a_shop_under_limits(a_limited_seller)
    body = {"price": "100.00"}
    assert (await owner.send("PUT", f"{PRICING}/pins/1", json=body)).status_code == 200
    needs_review(await seller.http.delete(f"{PRICING}/pins/1"))
    waits = needs_review(
        await seller.post(f"{PRICING}/pins/unpin_many", json={"marketplace_ids": [1]})
    )
    done = await owner.post(f"{PLANS}/{waits['proposal_id']}/confirm")
    assert done.json()["status"] == "applied", done.text
    fine = await seller.post(f"{PRICING}/pins/pin_many", json={"marketplace_ids": [1, 2]})
    assert (fine.status_code, fine.json()["changed"]) == (200, 2)


@pytest.mark.night
async def test_the_page_of_sales_says_what_a_sale_may_take_off(a_limited_seller):
    _, owner, _ = await a_shop_under_limits(a_limited_seller)
    form = {"name": "All", "percent": "99", "ends": "2130-01-01T08:00", "action": "schedule"}
    refused = await owner.http.post(
        "/pricing/sales/new", data=form | {"csrf_token": owner.session["csrf_token"]}
    )
    assert refused.status_code == 422
    assert "Percent off must be 0 to 90." in refused.text


async def test_more_copies_of_a_listed_card_bring_no_price_beyond_the_limits(a_limited_seller):
    seller = await a_limited_seller(lines=["magic"], loss_budget=1000)
    jaguar = {"name": "Alacrian Jaguar", "set": "Aetherdrift", "number": "152", "game": "magic"}
    await seller.import_csv(a_csv(a_row(77, quantity=3, market="10.00", price="10.00", **jaguar)))
    owner = await signed_in(seller)
    [cheap] = await drafted(seller, JAGUAR | {"price": "0.10"})
    [near] = await drafted(seller, JAGUAR | {"price": "9.50"})
    [new] = await drafted(seller, JAGUAR | {"price": "0.10", "printing": "foil"})
    path = "/api/quick_add/publish"
    waits = needs_review(await seller.post(path, json={"ids": [cheap["id"]]}))
    assert waits["cards_affected"] == 1
    assert (await entry_of(owner, cheap["id"]))["status"] == "draft"
    # A price that is near is published, and so is a card that nothing of is listed.
    for entry in (near, new):
        answer = await seller.post(path, json={"ids": [entry["id"]]})
        assert answer.status_code == 200, answer.text
    done = await owner.post(f"{PLANS}/{waits['proposal_id']}/confirm")
    assert done.json()["status"] == "applied", done.text
    assert (await entry_of(owner, cheap["id"]))["status"] == "published"


async def test_a_confirmation_compares_like_with_like(a_limited_seller):
    """Ten cards are listed at 2.00 and their rules ask 10.00: they cannot fall by more than that."""
    rows = [a_row(n, market="10.00", price="2.00", low="") for n in range(1, 11)]
    _, owner, rule_id = await a_shop_under_limits(a_limited_seller, *rows)
    asked = await owner.send("PATCH", f"{PRICING}/rules/{rule_id}", json={"adjust_bp": -9000})
    assert asked.json()["code"] == "confirmation_needed"
    assert "would fall by 90.00 of 100.00" in asked.json()["error"]
    # Nine of a hundred dollars are no fifth of the shop, though they were one of what is listed.
    fine = await owner.send("PATCH", f"{PRICING}/rules/{rule_id}", json={"adjust_bp": -900})
    assert fine.status_code == 200, fine.text
