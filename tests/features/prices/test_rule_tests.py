"""Rule tests: what a seller expects of prices is checked at every save of a rule, and red tests
hold a publish back unless the owner gives a reason.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import schedule
from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop

TESTS = "/api/pricing/rule_tests"
RULES = "/api/pricing/rules"
ROWS = [
    a_row(1, market="2.00", price="1.00"),
    a_row(2, market="0.50", price="1.00"),
    a_row(3, market="30.00", price="25.00"),
]


@pytest.fixture
async def seller(a_seller):
    return await a_shop(a_seller, *ROWS)


async def a_test(seller, expectation="never under 20.00", search="price>20", name="Staples"):
    body = {"name": name, "search": search, "expectation": expectation}
    answer = await seller.post(TESTS, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def a_rule(seller, **fields):
    body = {"name": "Mine", "price_source": "market"} | fields
    return await seller.post(RULES, json=body)


async def entries(seller, action):
    found = (await seller.get("/api/v1/agent/activity")).json()["activity"]
    return [entry for entry in found if entry["action"] == action]


async def test_a_test_is_made_read_changed_and_deleted_and_each_is_undone(seller):
    made = await a_test(seller, " Never UNDER $20 ")
    assert made["expectation"] == "never under 20.00"
    path = f"{TESTS}/{made['id']}"
    changed = await seller.http.patch(path, json={"name": "Other", "search": ""})
    assert (changed.json()["name"], changed.json()["search"]) == ("Other", "")
    assert (await seller.get(TESTS)).json()["rule_tests"] == [changed.json()]
    assert (await seller.http.delete(path)).json() == {"deleted": True}
    back = {
        "deleted": [(made["id"], "Other")],
        "changed": [(made["id"], made["name"])],
        "created": [],
    }
    for action in back:
        [entry] = await entries(seller, f"pricing.rule_test_{action}")
        undone = await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")
        assert undone.status_code == 200, undone.text
        told = [
            (test["id"], test["name"]) for test in (await seller.get(TESTS)).json()["rule_tests"]
        ]
        assert told == back[action]


async def test_what_is_no_test_is_refused_in_words(seller):
    for body, told in (
        ({"name": "A", "expectation": "is cheap"}, "expectation: must be one of: never moves"),
        ({"name": "", "expectation": "never moves"}, "name: must have 1 to 100"),
        ({"expectation": "never moves"}, "name: is missing"),
        ({"name": "A"}, "expectation: is missing"),
        ({"name": "A", "expectation": "never moves", "colour": 1}, "colour: is not a field"),
        ({"name": "A", "expectation": "never moves", "search": 'list:"None"'}, "search: "),
    ):
        answer = await seller.post(TESTS, json=body)
        assert answer.status_code == 422, answer.text
        assert told in answer.json()["error"]
    assert (await seller.http.delete(f"{TESTS}/1")).status_code == 404


async def test_a_draft_is_judged_at_its_save_and_not_refused(seller):
    test = await a_test(seller)
    answer = await a_rule(seller, adjust_bp=-5000)
    assert answer.status_code == 201, answer.text
    [verdict] = answer.json()["rule_tests"]
    assert {name: verdict[name] for name in ("id", "red", "cards", "failing", "unread")} == {
        "id": test["id"],
        "red": True,
        "cards": 1,
        "failing": 1,
        "unread": None,
    }
    [card] = verdict["first"]
    assert (card["marketplace_id"], card["product_name"]) == (3, "Card 3")
    assert (card["current_price"], card["price"]) == ("25.00", "15.00")
    assert card["reason"].endswith(".")
    checked = (await seller.post(f"{TESTS}/check")).json()
    assert checked == {"red": 1, "rule_tests": [verdict]}
    repaired = await seller.http.patch(
        f"{RULES}/{answer.json()['id']}",
        json={"floor": "21.00"} | {"rule_tests": []},
    )
    assert [each["red"] for each in repaired.json()["rule_tests"]] == [False]
    assert (await seller.post(f"{TESTS}/check")).json()["red"] == 0


async def test_a_rule_reads_as_its_save_was_answered_with_its_tests(seller):
    await a_test(seller)
    for fields in ({"adjust_bp": -5000}, {"query": "price>20", "state": "published"}):
        saved = (await a_rule(seller, **fields)).json()
        [verdict] = saved["rule_tests"]
        assert (await seller.get(f"{RULES}/{saved['id']}")).json() == saved
    assert verdict["red"] is False


async def test_a_red_test_holds_every_kind_of_publish_back(seller):
    default = (await seller.get(RULES)).json()["rules"][0]["id"]
    floored = (await a_rule(seller, floor="21.00", query="price>20", state="published")).json()
    draft = (await a_rule(seller, adjust_bp=-5000)).json()
    await a_test(seller)
    one, other = f"{RULES}/{floored['id']}", f"{RULES}/{draft['id']}"
    await seller.http.patch(other, json={"priority": 1})
    before = (await seller.get(RULES)).json()
    orders = {"ids": [floored["id"], draft["id"], default]}
    assert (await seller.post(f"{other}/publish")).status_code == 409
    assert (await seller.post(f"{RULES}/reorder", json=orders)).status_code == 200
    assert (await seller.post(f"{other}/publish")).status_code == 200
    for method, path, body in (
        ("POST", f"{RULES}/reorder", {"ids": [draft["id"], floored["id"], default]}),
        ("PATCH", one, {"floor": None, "ceiling": "5.00"}),
        ("PATCH", one, {"state": "draft"}),
        ("POST", f"{one}/disable", None),
        ("DELETE", one, None),
        ("POST", RULES, {"name": "New", "adjust_bp": -6000, "priority": 2, "state": "published"}),
    ):
        options = {"json": body} if body else {}
        answer = await seller.http.request(method, path, **options)
        assert answer.status_code == 409, (method, path, answer.text)
        assert answer.json()["code"] == "rule_tests_failed"
        assert (
            "“Staples” (never under 20.00) fails for 1 of 1 cards, first Card 3"
            in (answer.json()["error"])
        )
    after = (await seller.get(RULES)).json()
    assert [rule["id"] for rule in after["rules"]] == orders["ids"]
    assert len(after["rules"]) == len(before["rules"])


async def test_an_override_publishes_and_its_reason_stays(seller):
    await a_test(seller)
    draft = (await a_rule(seller, adjust_bp=-5000)).json()
    path = f"{RULES}/{draft['id']}/publish"
    blank = await seller.post(path, params={"override_reason": "  "})
    assert blank.status_code == 422
    assert "override_reason: must have 1 to 300 characters" in blank.json()["error"]
    answer = await seller.post(path, params={"override_reason": "A <b>sale</b> for the fair"})
    assert answer.status_code == 200, answer.text
    assert [verdict["red"] for verdict in answer.json()["rule_tests"]] == [True]
    [entry] = await entries(seller, "pricing.rule_tests_overridden")
    assert entry["after"]["reason"] == "A <b>sale</b> for the fair"
    assert [test["name"] for test in entry["after"]["rule_tests"]] == ["Staples"]
    assert entry["risk"] == "high"


async def test_an_assistants_token_overrides_nothing_and_its_plans_are_held_back(seller):
    await a_test(seller)
    draft = (await a_rule(seller, adjust_bp=-5000)).json()
    http = await seller.token("mcp:read", "mcp:write")
    answer = await http.post(
        f"{RULES}/{draft['id']}/publish",
        params={"override_reason": "I say so"},
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "rule_tests_failed")
    change = {"op": "update", "rule_id": draft["id"], "set": {"state": "published"}}
    plan = {
        "title": "Publish",
        "actions": [{"type": "pricing.change_set", "changes": [change]}],
    }
    answer = await http.post("/api/v1/agent/plans", json=plan)
    assert (answer.status_code, answer.json()["code"]) == (409, "rule_tests_failed"), answer.text
    assert answer.json()["error"].startswith("actions[0].changes[0]: 1 rule test is failing")


async def test_a_plan_is_judged_by_the_rules_after_its_last_change(seller):
    await a_test(seller)
    draft = (await a_rule(seller, adjust_bp=-5000)).json()

    def plan(*values):
        sets = [{"op": "update", "rule_id": draft["id"], "set": value} for value in values]
        return {"actions": [{"type": "pricing.change_set", "changes": sets}], "dry_run": True}

    live, mild = {"state": "published"}, {"adjust_bp": 0}
    refused = await seller.post("/api/v1/agent/plans", json=plan(mild, live, {"adjust_bp": -5000}))
    assert refused.json()["code"] == "rule_tests_failed"
    told = refused.json()["error"]
    assert told.startswith("actions[0].changes[0], actions[0].changes[1], actions[0].changes[2]: 1")
    done = await seller.post("/api/v1/agent/plans", json=plan(live, mild))
    assert done.status_code == 201, done.text


async def test_a_plan_that_waits_is_not_applied_over_a_test_that_is_red_by_then(seller):
    owner = await signed_in(seller)
    modes = {"key": {"pricing.change_set": "always_ask"}}
    await owner.send("PATCH", "/api/v1/agent/plans/permissions", json=modes)
    draft = (await a_rule(seller, adjust_bp=-5000)).json()
    change = {"op": "update", "rule_id": draft["id"], "set": {"state": "published"}}
    actions = [{"type": "pricing.change_set", "changes": [change]}]
    plan = (await seller.post("/api/v1/agent/plans", json={"actions": actions})).json()
    await a_test(seller)
    path = f"/api/v1/agent/plans/{plan['plan_id']}"
    answer = await owner.post(f"{path}/confirm", json={})
    assert answer.json()["status"] == "drifted", answer.text
    assert (await seller.get(f"{RULES}/{draft['id']}")).json()["state"] == "draft"


async def test_a_test_whose_search_is_gone_is_red_and_says_so(seller):
    made = (await seller.post("/api/lists", json={"name": "Binder"})).json()
    await a_test(seller, "never moves", 'list:"Binder"')
    await seller.http.delete(f"/api/lists/{made['id']}")
    [verdict] = (await seller.post(f"{TESTS}/check")).json()["rule_tests"]
    assert (verdict["red"], verdict["cards"]) == (True, 0)
    assert verdict["unread"] == "there is no list 'binder'"
    draft = (await a_rule(seller)).json()
    answer = await seller.post(f"{RULES}/{draft['id']}/publish")
    assert answer.status_code == 409
    assert "cannot be checked: " in answer.json()["error"]


async def test_staff_neither_reads_nor_writes_tests(seller):
    staff = await joined(seller, f"staff-{seller.email}")
    for method, path in (("GET", TESTS), ("POST", TESTS), ("POST", f"{TESTS}/check")):
        options = {"json": {"name": "A", "expectation": "never moves"}} if path == TESTS else {}
        answer = await staff.send(method, path, **options)
        assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")


async def test_a_test_and_a_publish_at_once_never_leave_a_red_test_behind(seller):
    draft = (await a_rule(seller, adjust_bp=-5000)).json()
    owner = await signed_in(seller)
    made, published = await asyncio.gather(
        a_test(seller),
        owner.post(f"{RULES}/{draft['id']}/publish"),
    )
    assert made["id"]
    # Either the publish saw the test, or the test came later and is shown as red.
    red = (await seller.post(f"{TESTS}/check")).json()["red"]
    assert published.status_code in (200, 409)
    assert red == 1


EXPECTATIONS = st.sampled_from(
    ["never moves", "never under 1.00", "never over 20.00", "at most +50%", "at most -20%",
     "equals 2.00"]
)  # fmt: skip
SEARCHES = st.sampled_from(["", "price>20", "price<2", 'name:"Card 1"'])
SAVES = st.lists(
    st.fixed_dictionaries(
        {
            "adjust_bp": st.sampled_from([-6000, -1000, 0, 4000]),
            "query": SEARCHES,
            "override": st.booleans(),
        }
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.day
@schedule.deeper
@settings(
    max_examples=schedule.examples(3, 15),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(EXPECTATIONS, SEARCHES), min_size=1, max_size=3), SAVES)
async def test_no_publish_passes_a_red_test_and_an_override_leaves_its_trace(
    a_seller, expected, saves
):
    seller = await a_seller()
    await seller.import_csv(a_csv(*ROWS))
    for expectation, search in expected:
        await a_test(seller, expectation, search)
    overridden = 0
    for save in saves:
        override = save.pop("override")
        draft = (await a_rule(seller, **save)).json()
        told = [verdict["red"] for verdict in draft["rule_tests"]]
        query = {"override_reason": "as I say"} if override else {}
        answer = await seller.post(f"{RULES}/{draft['id']}/publish", params=query)
        assert answer.status_code == (200 if override or not any(told) else 409)
        overridden += override and any(told)
        if answer.status_code == 409:
            await seller.http.delete(f"{RULES}/{draft['id']}")
        else:
            assert [verdict["red"] for verdict in answer.json()["rule_tests"]] == told
    assert len(await entries(seller, "pricing.rule_tests_overridden")) == overridden


def holds(expectation, now, then):
    """Judge whether an expectation holds, written a second time and apart from the code."""
    words = expectation.split()
    if then is None or expectation == "never moves":
        return then is None or now == then
    amount = Decimal((words[-2] if words[-1] == "%" else words[-1]).rstrip("%"))
    match words[:2]:
        case ["never", "under"]:
            return then >= amount
        case ["never", "over"]:
            return then <= amount
        case ["lands", "at"]:
            return then == amount
    move = now * (1 + amount / 100)
    return then <= move if amount > 0 else then >= move


SHOPS = st.lists(
    st.tuples(st.sampled_from(["0.50", "2.00", "30.00", "80.00"]), st.sampled_from(["1", "25"])),
    min_size=2,
    max_size=5,
)
WAYS = st.lists(
    st.tuples(
        st.sampled_from(["create", "publish", "change", "disable", "delete", "reorder"]),
        st.sampled_from([-6000, -1000, 0, 4000]),
        SEARCHES,
        st.integers(0, 9),
    ),
    min_size=2,
    max_size=6,
)


async def one_way(seller, way, adjust, search, which):
    """Publish in one of its ways; return whether other rules govern since."""
    rules = (await seller.get(RULES)).json()["rules"]
    if not rules and way not in ("create", "publish"):
        return False
    before = await governing(seller)
    # Without any rule only a new one can be published.
    rule = f"{RULES}/{rules[which % len(rules)]['id']}" if rules else RULES
    if way == "create":
        answer = await a_rule(seller, adjust_bp=adjust, query=search, state="published")
    elif way == "publish":
        draft = (await a_rule(seller, adjust_bp=adjust, query=search)).json()
        answer = await seller.post(f"{RULES}/{draft['id']}/publish")
        if answer.status_code == 409:
            await seller.http.delete(f"{RULES}/{draft['id']}")
    elif way == "change":
        answer = await seller.http.patch(rule, json={"adjust_bp": adjust, "query": search})
    elif way == "disable":
        answer = await seller.post(f"{rule}/disable")
    elif way == "delete":
        answer = await seller.http.delete(rule)
    else:
        ids = [each["id"] for each in rules]
        shift = which % len(ids)
        answer = await seller.post(f"{RULES}/reorder", json={"ids": ids[shift:] + ids[:shift]})
    assert answer.status_code in (200, 201, 409, 422), answer.text
    assert answer.status_code in (200, 201) or await governing(seller) == before
    return await governing(seller) != before


async def governing(seller):
    rules = (await seller.get(RULES)).json()["rules"]
    fields = ("id", "adjust_bp", "query", "ceiling")
    live = [rule for rule in rules if rule["enabled"] and rule["state"] == "published"]
    return [[rule[field] for field in fields] for rule in live]


@pytest.mark.day
@schedule.deeper
@settings(
    max_examples=schedule.examples(3, 12),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(SHOPS, st.lists(st.tuples(EXPECTATIONS, SEARCHES), min_size=1, max_size=3), WAYS)
async def test_prices_of_a_generated_seller_never_pass_a_red_test(a_seller, shop, expected, ways):
    """No way of publishing makes the next run ask a price that breaks a test."""
    seller = await a_seller()
    rows = [a_row(n, market=m, price=p) for n, (m, p) in enumerate(shop, start=1)]
    await seller.import_csv(a_csv(*rows))
    made = [await a_test(seller, expectation, search) for expectation, search in expected]
    for way in ways:
        if not await one_way(seller, *way):
            continue
        await seller.post("/api/pricing/reprice", json={})
        await seller.service.run_jobs()
        runs = (await seller.get("/api/pricing/runs")).json()["runs"]
        assert runs[0]["state"] == "completed", runs[0]
        verdicts = (await seller.post(f"{TESTS}/check")).json()["rule_tests"]
        for test, verdict in zip(made, verdicts, strict=True):
            found = await seller.get("/api/cards", params={"search": test["search"]})
            red = [
                card
                for card in found.json()["cards"]
                if not holds(
                    test["expectation"],
                    Decimal(card["price"]),
                    Decimal(card["target_price"] or card["price"]),
                )
            ]
            assert len(red) == verdict["failing"], (test, red, verdict)
            assert not verdict["red"], (way, verdict)
