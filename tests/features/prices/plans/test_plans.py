"""Plans of assistants over HTTP: proposed, applied at once or after a member's click, refused."""

import asyncio
from datetime import timedelta

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.limits import PLAN_CARDS_LISTED, PLAN_CARDS_SHOWN
from cardsync.prices.plans import expired_plans, price_effect
from plans_builder import (
    PERMISSIONS,
    PLANS,
    a_plain_shop,
    allow,
    changes,
    lowered,
    planned,
    rule_of,
)


async def feed(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT action FROM activity WHERE seller_id = :id AND action LIKE 'plan.%' ORDER BY id",
        id=seller.id,
    )
    return [row["action"] for row in rows]


async def test_a_small_change_of_a_key_applies_at_once(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 400))
    assert (plan["status"], plan["risk"], plan["cards_affected"]) == ("applied", "low", 10)
    assert (plan["listed_value_before"], plan["listed_value_change"]) == ("100.00", "-4.00")
    assert plan["results"][0] | {"summary": ""} == {
        "place": "actions[0].changes[0]",
        "type": "pricing.change_set",
        "op": "update",
        "id": rule_id,
        "summary": "",
    }
    assert plan["confirm_url"] is None
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -400
    assert (await seller.get(f"{PLANS}/{plan['plan_id']}")).json()["status"] == "applied"
    assert await feed(seller) == ["plan.applied"]


@pytest.mark.night
async def test_a_dry_run_changes_nothing_and_says_what_would_happen(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1000, dry_run=True, plan_key="once"))
    assert (plan["status"], plan["expected_status"]) == ("previewed", "pending_review")
    assert plan["listed_value_change"] == "-10.00"
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    # A dry run does not use up its key.
    assert (await planned(seller, lowered(rule_id, 300, plan_key="once")))["status"] == "applied"


async def test_a_larger_change_waits_for_an_owner_and_applies_on_the_click(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    assert (plan["status"], plan["risk"]) == ("pending_review", "high")
    assert plan["confirm_url"].endswith(f"/plans/{plan['plan_id']}")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    path = f"{PLANS}/{plan['plan_id']}/confirm"
    refused = await seller.post(path, json={})
    assert (refused.status_code, refused.json()["code"]) == (403, "session_required")
    staff = await joined(seller, f"staff-{seller.email}")
    assert (await staff.post(path, json={})).json()["code"] == "owner_required"
    owner = await signed_in(seller)
    done = (await owner.post(path, json={"revision": plan["revision"]})).json()
    assert (done["status"], done["decided_by"]) == ("applied", f"member {owner.member_id}")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -1500
    assert await feed(seller) == ["plan.pending_review", "plan.applied"]


@pytest.mark.night
async def test_a_large_shop_is_weighed_in_parts_as_a_small_one_at_once(a_seller, monkeypatch):
    seller, rule_id = await a_plain_shop(a_seller)
    whole = await planned(seller, lowered(rule_id, 1500, dry_run=True))
    monkeypatch.setattr(price_effect, "PART", 3)
    parts = await planned(seller, lowered(rule_id, 1500, dry_run=True))
    assert (parts["cards_affected"], parts["listed_value_change"]) == (10, "-15.00")
    differs = {name for name in whole if whole[name] != parts[name]}
    assert differs <= {"plan_id", "created_at", "expires_at"}


async def test_a_plan_shows_the_cards_that_it_moves_furthest_with_prices_and_reason(a_seller):
    rows = [
        a_row(n, name=f"<b>Elf {n}", market=f"{n}.00", price=f"{n}.00", low="", quantity=2)
        for n in range(1, 41)
    ]
    seller, rule_id = await a_plain_shop(a_seller, *rows)
    plan = await planned(seller, lowered(rule_id, 1500))
    assert (plan["cards_affected"], len(plan["cards"])) == (40, PLAN_CARDS_SHOWN)
    first = dict(plan["cards"][0])
    assert "15%" in first.pop("reason")
    assert first == {
        "marketplace_id": 40,
        "product_name": "<b>Elf 40",
        "set_name": "Dominaria United",
        "condition": "Near Mint",
        "quantity": 2,
        "price_before": "40.00",
        "price_after": "34.00",
        "price_in_the_end": "34.00",
    }
    [listed] = (await seller.get(PLANS)).json()["plans"]
    assert listed["cards"] == plan["cards"][:PLAN_CARDS_LISTED]
    owner = await signed_in(seller)
    page = (await owner.get(f"/plans/{plan['plan_id']}")).text
    assert "The largest changes" in page
    assert "&lt;b&gt;Elf 40" in page
    assert "40.00 → <strong>34.00</strong>" in page


@pytest.mark.night
async def test_a_declined_plan_takes_no_click_any_more(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    owner = await signed_in(seller)
    at = f"{PLANS}/{plan['plan_id']}"
    assert (await owner.post(f"{at}/decline")).json()["status"] == "declined"
    assert (await owner.post(f"{at}/decline")).json()["status"] == "declined"
    late = await owner.post(f"{at}/confirm", json={})
    assert (late.status_code, late.json()["code"]) == (409, "plan_not_waiting")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0


@pytest.mark.night
async def test_a_plan_with_one_bad_change_changes_nothing(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    good = {"op": "update", "rule_id": rule_id, "set": {"adjust_bp": -100}}
    for bad, code, words in [
        ({"op": "update", "rule_id": rule_id, "set": {"floor": "x"}}, "invalid_rule", "floor"),
        ({"op": "create", "set": {"name": "R", "query": "price>"}}, "invalid_query", "query"),
        ({"op": "delete", "rule_id": 999_999}, "not_found", "999999"),
    ]:
        answer = await seller.post(PLANS, json=changes(good, bad))
        assert answer.json()["code"] == code
        assert answer.json()["error"].startswith("actions[0].changes[1]")
        assert words in answer.json()["error"]
    pins = {"type": "pricing.pins", "set": [{"marketplace_id": 4711, "price": "1.00"}]}
    both = {"actions": [*changes(good)["actions"], pins]}
    answer = await seller.post(PLANS, json=both)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.json()["error"].startswith("actions[1].set[0]")
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    assert (await seller.get(PLANS)).json()["total"] == 0
    assert await feed(seller) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "actions"),
        ({"actions": []}, "actions"),
        ({"actions": [{"type": "orders.delete"}]}, "actions[0].type"),
        (
            {"actions": [{"type": "pricing.change_set", "changes": [{"op": "fly"}]}]},
            "changes[0].op",
        ),
        ({"actions": [{"type": "pricing.change_set", "changes": [{"op": "enable"}]}]}, "rule_id"),
        ({"actions": [{"type": "pricing.pins"}]}, "actions[0]"),
        ({"actions": [{"type": "pricing.pins", "remove": [True]}]}, "remove[0]"),
        ({"actions": [{"type": "lists.change_set", "add": [{"card_ids": [1]}]}]}, "add[0]"),
        ({"actions": [{"type": "lists.change_set", "create": ["A"]}], "plan_key": ""}, "plan_key"),
        ({"actions": [{"type": "lists.change_set", "create": ["A"]}], "dry_run": 1}, "dry_run"),
    ],
)
async def test_a_body_of_another_shape_is_refused_by_its_place(a_seller, body, words):
    seller = await a_seller()
    answer = await seller.post(PLANS, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert words in answer.json()["error"]


async def rules_over(seller, *queries):
    ids = []
    for query in queries:
        body = {"name": query, "query": query, "state": "published", "enabled": False}
        answer = await seller.post("/api/pricing/rules", json=body)
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["id"])
    return ids


@pytest.mark.night
async def test_a_matrix_that_switches_a_rule_has_at_most_five_actions(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    ids = await rules_over(seller, *(f"price>{n * 100}" for n in range(1, 6)))
    five = [{"op": "enable", "rule_id": id, "scope": f"number:{id}"} for id in ids]
    assert (await planned(seller, changes(*five, dry_run=True)))["status"] == "previewed"
    sixth = {"op": "update", "rule_id": rule_id, "set": {"adjust_bp": -1}}
    answer = await seller.post(PLANS, json=changes(*five, sixth))
    assert (answer.status_code, answer.json()["code"]) == (422, "transition_matrix_too_large")
    pins = {"type": "pricing.pins", "set": [{"marketplace_id": 1, "price": "9.99"}]}
    split = {"actions": [*changes(*five)["actions"], pins]}
    assert (await seller.post(PLANS, json=split)).json()["code"] == "transition_matrix_too_large"
    # Without a rule that is switched there may be more.
    many = [{"op": "update", "rule_id": id, "set": {"name": f"N{id}"}} for id in (*ids, rule_id)]
    assert (await planned(seller, changes(*many)))["status"] == "applied"


@pytest.mark.night
async def test_overlap_is_judged_on_the_cards_that_both_scopes_select(a_seller):
    rows = [a_row(n, market="10.00", price="10.00", number=n) for n in (1, 2, 3)]
    seller, _ = await a_plain_shop(a_seller, *rows)
    low, high = await rules_over(seller, "number:1..2", "number:2..3")
    both = changes({"op": "enable", "rule_id": low}, {"op": "enable", "rule_id": high})
    answer = await seller.post(PLANS, json=both)
    assert (answer.status_code, answer.json()["code"]) == (422, "overlapping_rule_transitions")
    # The queries cross, but no card lies in both scopes.
    scoped = changes(
        {"op": "enable", "rule_id": low, "scope": "number:1"}, {"op": "enable", "rule_id": high}
    )
    assert (await planned(seller, scoped))["status"] == "applied"
    pinned = changes({"op": "disable", "rule_id": low})
    pinned["actions"].append(
        {"type": "pricing.pins", "set": [{"marketplace_id": 2, "price": "10.00"}]}
    )
    assert (await seller.post(PLANS, json=pinned)).json()["code"] == "overlapping_rule_transitions"


@pytest.mark.night
async def test_the_same_key_makes_one_plan(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    first = await planned(seller, lowered(rule_id, 300, plan_key="k"))
    assert await planned(seller, lowered(rule_id, 300, plan_key="k")) == first
    other = await seller.post(PLANS, json=lowered(rule_id, 200, plan_key="k"))
    assert (other.status_code, other.json()["code"]) == (422, "invalid_payload")
    assert "plan_key" in other.json()["error"]
    stranger, their_rule = await a_plain_shop(a_seller)
    theirs = await planned(stranger, lowered(their_rule, 300, plan_key="k"))
    assert theirs["plan_id"] != first["plan_id"]
    assert (await stranger.get(f"{PLANS}/{first['plan_id']}")).status_code == 404


async def test_the_same_key_at_once_from_two_callers_makes_one_plan(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    body = lowered(rule_id, 300, plan_key="k")
    answers = await asyncio.gather(*(seller.post(PLANS, json=body) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["plan_id"] for answer in answers}) == 1
    assert await feed(seller) == ["plan.applied"]


async def test_two_confirmations_at_once_apply_a_plan_once(a_seller):
    seller, _ = await a_plain_shop(a_seller)
    made = {"op": "create", "set": {"name": "New", "adjust_bp": -1500, "state": "published"}}
    plan = await planned(seller, changes(made))
    assert plan["status"] == "pending_review"
    browsers = [await signed_in(seller) for _ in range(3)]
    path = f"{PLANS}/{plan['plan_id']}/confirm"
    answers = await asyncio.gather(*(owner.post(path, json={}) for owner in browsers))
    assert {answer.json()["status"] for answer in answers} == {"applied"}
    rules = (await seller.get("/api/pricing/rules")).json()["rules"]
    assert [rule["name"] for rule in rules].count("New") == 1
    assert await feed(seller) == ["plan.pending_review", "plan.applied"]


async def test_a_confirmation_and_a_refusal_at_once_end_in_one_of_them(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    one, other = await signed_in(seller), await signed_in(seller)
    at = f"{PLANS}/{plan['plan_id']}"
    answers = await asyncio.gather(one.post(f"{at}/confirm", json={}), other.post(f"{at}/decline"))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    status = (await seller.get(at)).json()["status"]
    asked = (await rule_of(seller, rule_id))["adjust_bp"]
    assert (status, asked) in [("applied", -1500), ("declined", 0)]


async def test_what_drifted_is_shown_and_takes_a_new_click(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    await seller.http.patch(f"/api/pricing/rules/{rule_id}", json={"floor": "9.00"})
    owner = await signed_in(seller)
    at = f"{PLANS}/{plan['plan_id']}"
    seen = (await owner.post(f"{at}/confirm", json={"revision": 1})).json()
    assert (seen["status"], seen["revision"]) == ("drifted", 2)
    assert any("floor was nothing and is now 9.00" in line for line in seen["drift"])
    assert seen["listed_value_change"] == "-10.00"
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    # A click on what was shown before does not count.
    again = (await owner.post(f"{at}/confirm", json={"revision": 1})).json()
    assert again["status"] == "drifted"
    done = (await owner.post(f"{at}/confirm", json={"revision": 2})).json()
    assert done["status"] == "applied"
    assert await feed(seller) == ["plan.pending_review", "plan.drifted", "plan.applied"]


@pytest.mark.night
async def test_other_prices_and_a_deleted_rule_are_drift_too(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    [second] = await rules_over(seller, "price>1000")
    dear, gone = (
        await planned(seller, lowered(rule_id, 1500)),
        await planned(seller, changes({"op": "delete", "rule_id": second})),
    )
    assert gone["risk"] == "medium"
    await seller.import_csv(
        a_csv(*(a_row(n, market="20.00", price="20.00", low="") for n in range(1, 11)))
    )
    await seller.http.delete(f"/api/pricing/rules/{second}")
    owner = await signed_in(seller)
    for plan, words in ((dear, "listed value"), (gone, "cannot be applied")):
        seen = (await owner.post(f"{PLANS}/{plan['plan_id']}/confirm", json={})).json()
        assert seen["status"] == "drifted"
        assert any(words in line for line in seen["drift"])


@pytest.mark.night
async def test_a_plan_expires_after_a_day(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    await seller.service.sql(
        seller.id,
        "UPDATE agent_plan SET expires_at = :now WHERE seller_id = :id",
        id=seller.id,
        now=clock.now(),
    )
    at = f"{PLANS}/{plan['plan_id']}"
    shown = (await seller.get(at)).json()
    assert (shown["status"], shown["confirm_url"]) == ("expired", None)
    expired = (await seller.get(PLANS, params={"status": "expired"})).json()
    assert [one["plan_id"] for one in expired["plans"]] == [plan["plan_id"]]
    assert (await seller.get(PLANS, params={"status": "pending_review"})).json()["total"] == 0
    owner = await signed_in(seller)
    assert (await owner.post(f"{at}/confirm", json={})).json()["status"] == "expired"
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0


async def test_what_the_owner_forbids_is_refused_with_what_to_do(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    await allow(seller, "deny")
    plan = await planned(seller, lowered(rule_id, 1), 200)
    assert (plan["status"], plan["limit"]) == ("refused_by_grant", "key.pricing.change_set")
    assert "ask the owner" in plan["error"]
    assert plan["confirm_url"] is None
    lists = {"actions": [{"type": "lists.change_set", "create": ["Binder"]}]}
    assert (await planned(seller, lists))["status"] == "applied"


async def test_an_owner_reads_and_sets_permissions_and_nobody_else(a_seller):
    seller = await a_seller()
    owner, staff = await signed_in(seller), await joined(seller, f"staff-{seller.email}")
    first = (await owner.get(PERMISSIONS)).json()
    assert set(first["key"].values()) == {"auto_low_risk"}
    assert set(first["token"].values()) == {"ask_for_mutations"}
    body = {"token": {"pricing.pins": "auto_unless_critical"}}
    changed = (await owner.send("PATCH", PERMISSIONS, json=body)).json()
    assert changed["token"]["pricing.pins"] == "auto_unless_critical"
    assert changed["key"] == first["key"]
    for bad in ({"robot": {}}, {"key": {"x": "deny"}}, {"key": {"pricing.pins": "yes"}}):
        answer = await owner.send("PATCH", PERMISSIONS, json=bad)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert (await staff.get(PERMISSIONS)).json()["code"] == "owner_required"
    assert (await seller.get(PERMISSIONS)).json()["code"] == "session_required"


@pytest.mark.night
async def test_pins_and_lists_are_planned_with_rules(a_seller):
    seller, _ = await a_plain_shop(a_seller)
    body = {
        "actions": [
            {"type": "pricing.pins", "set": [{"marketplace_id": 1, "price": "9.80"}]},
            {
                "type": "lists.change_set",
                "create": [{"name": "Binder"}],
                "add": [{"list": "binder", "marketplace_ids": [1, 2, 3]}],
                "remove": [{"list": "Binder", "marketplace_ids": [3]}],
            },
        ]
    }
    plan = await planned(seller, body)
    assert (plan["status"], plan["listed_value_change"]) == ("applied", "-0.20")
    [made] = (await seller.get("/api/lists")).json()["lists"]
    assert (made["name"], made["card_count"]) == ("Binder", 2)
    lists = {"type": "lists.change_set", "rename": [{"id": made["id"], "name": "Folder"}]}
    pins = {"type": "pricing.pins", "remove": [1]}
    assert (await planned(seller, {"actions": [lists, pins]}))["status"] == "applied"
    deleted = {"actions": [{"type": "lists.change_set", "delete": [made["id"]]}]}
    assert (await planned(seller, deleted))["status"] == "pending_review"


@pytest.mark.night
async def test_cards_on_a_list_that_a_rule_names_are_a_change_of_prices(a_seller):
    seller, _ = await a_plain_shop(a_seller)
    made = await seller.post("/api/lists", json={"name": "Bulk"})
    rule = {"name": "Bulk", "query": "list:bulk", "state": "published", "adjust_bp": -2500}
    await seller.post("/api/pricing/rules", json=rule)
    adding = {"id": made.json()["id"], "marketplace_ids": [1, 2]}
    plan = await planned(seller, {"actions": [{"type": "lists.change_set", "add": [adding]}]})
    assert (plan["status"], plan["risk"]) == ("pending_review", "critical")
    assert plan["listed_value_change"] == "-5.00"


async def test_the_page_shows_a_plan_and_takes_a_click(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    path = f"/plans/{plan['plan_id']}"
    strange = seller.service.client()
    sent = await strange.get(path)
    assert (sent.status_code, sent.headers["Location"]) == (303, f"/sign-in?then={path}")
    assert f'name="next" value="{path}"' in (await strange.get(sent.headers["Location"])).text
    who = {"email": seller.email, "password": seller.password}
    for then, leads_to in ((path, path), ("https://elsewhere.invalid", "/today")):
        arrived = await seller.service.client().post("/sign-in", data=who | {"then": then})
        assert arrived.headers["Location"] == leads_to
    owner = await signed_in(seller)
    shown = await owner.get(path)
    assert shown.status_code == 200
    assert "100.00 → 85.00 (-15.00)" in shown.text
    assert "Apply this plan" in shown.text
    form = {"revision": "1", "word": "confirm"}
    assert (await owner.http.post(path, data=form)).status_code == 403
    form["csrf_token"] = owner.session["csrf_token"]
    other_site = await owner.http.post(path, data=form, headers={"Sec-Fetch-Site": "cross-site"})
    assert other_site.status_code == 403
    staff = await joined(seller, f"staff-{seller.email}")
    theirs = form | {"csrf_token": staff.session["csrf_token"]}
    assert (await staff.http.post(path, data=theirs)).status_code == 403
    assert (await rule_of(seller, rule_id))["adjust_bp"] == 0
    done = await owner.http.post(path, data=form)
    assert (done.status_code, done.headers["Location"]) == (303, path)
    assert "This plan has been applied." in (await owner.get(path)).text
    assert (await rule_of(seller, rule_id))["adjust_bp"] == -1500


async def test_the_page_declines_and_shows_drift(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    await seller.http.patch(f"/api/pricing/rules/{rule_id}", json={"name": "<b>Mine</b>"})
    owner = await signed_in(seller)
    path = f"/plans/{plan['plan_id']}"
    form = {"csrf_token": owner.session["csrf_token"], "revision": "1", "word": "confirm"}
    await owner.http.post(path, data=form)
    page = (await owner.get(path)).text
    assert "What is different now" in page
    assert "&lt;b&gt;Mine&lt;/b&gt;" in page
    await owner.http.post(path, data=form | {"word": "decline", "revision": "2"})
    assert "declined" in (await owner.get(path)).text


async def test_what_an_owner_sends_from_a_session_needs_no_second_click(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    owner = await signed_in(seller)
    answer = await owner.post(PLANS, json=lowered(rule_id, 5000))
    assert answer.json()["status"] == "applied"
    # It is a member's own doing, and takes nothing from what assistants may do in the hour.
    assert (await planned(seller, lowered(rule_id, 5050)))["status"] == "applied"


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("mode", "statuses"),
    [
        ("deny", ["refused_by_grant"] * 4),
        ("always_ask", ["pending_review"] * 4),
        ("ask_for_mutations", ["pending_review"] * 4),
        ("auto_low_risk", ["applied", "pending_review", "pending_review", "pending_review"]),
        ("auto_unless_critical", ["applied", "applied", "applied", "pending_review"]),
    ],
)
async def test_each_mode_answers_each_band_over_http(a_seller, mode, statuses):
    seller, rule_id = await a_plain_shop(a_seller)
    await allow(seller, mode)
    await seller.set(loss_budget=1000)
    expected = dict(zip(("low", "medium", "high", "critical"), statuses, strict=True))
    # Each sum is a part of 20 %, the cap of a seller whose rules have none.
    for whole, (risk, status) in zip((300, 900, 1800, -4000), expected.items(), strict=True):
        plan = (await seller.post(PLANS, json=lowered(rule_id, whole))).json()
        assert plan["status"] == status
        assert plan["risk"] == (None if mode == "deny" else risk)


@pytest.mark.night
async def test_a_plan_that_changes_nothing_asks_nobody_but_who_is_always_asked(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    await allow(seller, "ask_for_mutations")
    assert (await planned(seller, lowered(rule_id, 0)))["status"] == "applied"
    await allow(seller, "always_ask")
    assert (await planned(seller, lowered(rule_id, 0)))["status"] == "pending_review"


@pytest.mark.night
async def test_plans_are_listed_newest_first_in_pages(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    ids = [(await planned(seller, lowered(rule_id, n, dry_run=True)))["plan_id"] for n in (1, 2, 3)]
    first = (await seller.get(PLANS, params={"per_page": 2})).json()
    second = (await seller.get(PLANS, params={"per_page": 2, "page": 2})).json()
    assert (first["total"], first["total_pages"]) == (3, 2)
    assert [plan["plan_id"] for plan in first["plans"] + second["plans"]] == ids[::-1]
    bad = await seller.get(PLANS, params={"status": "lost"})
    assert (bad.status_code, bad.json()["code"]) == (422, "invalid_payload")


@pytest.mark.night
async def test_a_plan_makes_rules_in_another_order(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    one, two = await rules_over(seller, "price>1", "price>2")
    plan = changes({"op": "reorder", "set": {"ids": [two, one, rule_id]}})
    assert (await planned(seller, plan))["status"] == "applied"
    rules = (await seller.get("/api/pricing/rules")).json()["rules"]
    assert [rule["id"] for rule in rules] == [two, one, rule_id]


@pytest.mark.night
async def test_a_new_order_of_rules_waits_for_its_click_like_all_else(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    await allow(seller, "always_ask")
    one, two = await rules_over(seller, "price>1", "price>2")
    plan = await planned(seller, changes({"op": "reorder", "set": {"ids": [two, one, rule_id]}}))
    owner = await signed_in(seller)
    done = (await owner.post(f"{PLANS}/{plan['plan_id']}/confirm", json={"revision": 1})).json()
    assert (done["status"], done["decided_by"]) == ("applied", f"member {owner.member_id}")
    assert (done["drift"], done["limit"], done["error"]) == ([], None, None)
    rules = (await seller.get("/api/pricing/rules")).json()["rules"]
    assert [rule["id"] for rule in rules] == [two, one, rule_id]


@pytest.mark.night
async def test_the_sweep_writes_expiry_once_and_drops_what_was_decided_long_ago(a_seller):
    seller, rule_id = await a_plain_shop(a_seller)
    plan = await planned(seller, lowered(rule_id, 1500))
    at = f"{PLANS}/{plan['plan_id']}"
    clock.shift(timedelta(hours=25))
    assert (await seller.get(at)).json()["status"] == "expired"
    first, second = await asyncio.gather(
        expired_plans.expire(seller.service.database, clock.now()),
        expired_plans.expire(seller.service.database, clock.now()),
    )
    assert first + second >= 1
    found = await seller.get("/api/v1/agent/activity", params={"action": "plan.expired"})
    [entry] = found.json()["activity"]
    assert (entry["actor"], entry["outcome"], entry["undoable"]) == ("sweep", "expired", False)
    told = (await seller.get(at)).json()
    assert (told["status"], told["decided_at"]) == ("expired", plan["expires_at"])
    days = timedelta(days=seller.service.work.settings.plan_retention_days)
    await expired_plans.drop_old(seller.service.database, clock.now() - days)
    assert (await seller.get(at)).status_code == 200
    clock.shift(days)
    waiting = await planned(seller, lowered(rule_id, 1500))
    await expired_plans.drop_old(seller.service.database, clock.now() - days)
    assert (await seller.get(at)).status_code == 404
    assert (await seller.get(f"{PLANS}/{waiting['plan_id']}")).status_code == 200
