"""Buy rules over HTTP: written, governing in order, bound by lists, days, stock and budget, judged by
their own tests.
"""

from __future__ import annotations

import asyncio

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, undo_newest
from buying_builder import a_catalog, a_moxfield_file, brought, valued
from cardsync.platform.limits import DEFAULT_PRIORITY

PAYS_HALF = {
    "name": "Half",
    "state": "published",
    "bands": [{"from": "0", "cash_bp": 5000, "credit_bp": 6000}],
}


@pytest.fixture
async def products(service, tmp_path):
    return await a_catalog(
        service,
        tmp_path,
        {"product_name": "Alacrian Jaguar", "number": "152", "rarity": "Rare"},
        {"product_name": "Air Response Unit", "number": "7"},
    )


@pytest.fixture
async def shop(a_seller, products):
    seller = await a_seller(lines=["magic"])
    usual = {"set": products.set_name, "market": "10.00", "low": "8.00", "quantity": 1}
    rows = [
        a_row(77, name="Alacrian Jaguar", number="152", rarity="R", **usual),
        a_row(78, name="Air Response Unit", number="7", **usual),
    ]
    await seller.import_csv(a_csv(*rows))
    return seller


@pytest.fixture
async def box(shop, products):
    code = products.set_code
    found = await brought(
        shop,
        a_moxfield_file(
            {"name": "Alacrian Jaguar", "set_code": code, "number": "152"},
            {"name": "Air Response Unit", "set_code": code, "number": "7"},
        ),
    )
    return found["id"]


async def made(who, **body):
    answer = await who.post("/api/buying/rules", json=PAYS_HALF | body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def cash(told):
    return [row["cash"] for row in told["rows"]]


async def test_the_first_rule_that_selects_governs(shop, box):
    owner = await signed_in(shop)
    rare = await made(owner, name="Rare", query="rarity:rare", base="low")
    assert (rare["query"], rare["base"], rare["priority"]) == ("rarity:rare", "low", 10)
    assert cash(await valued(owner, box)) == ["16.00", None]
    await made(owner, name="All")
    told = await valued(owner, box)
    assert cash(told) == ["16.00", "20.00"]
    assert [row["rule_name"] for row in told["rows"]] == ["Rare", "All"]
    path = f"/api/buying/rules/{rare['id']}"
    changed = await owner.send("PATCH", path, json={"enabled": False})
    assert (changed.status_code, changed.json()["enabled"]) == (200, False)
    assert cash(await valued(owner, box)) == ["20.00", "20.00"]
    assert (await owner.send("DELETE", path)).status_code == 200
    assert (await owner.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("name", "other", "kept"),
    [
        ("Now or Never", "Now", '"Now or Never"'),
        ("S:P Little Knight", "Little Knight", '"S:P Little Knight"'),
        ("Wooper -027/092", "Wooper", '"Wooper -027/092"'),
    ],
)
async def test_a_buy_rule_knows_the_names_of_cards_that_the_shop_lacks(
    a_seller, service, tmp_path, name, other, kept
):
    products = await a_catalog(
        service,
        tmp_path,
        {"product_name": name, "number": "1"},
        {"product_name": other, "number": "2"},
    )
    owner = await signed_in(shop := await a_seller(lines=["magic"]))
    rule = await made(owner, name="Named", query=name)
    assert rule["query"] == kept
    await made(owner, name="All", bands=[{"from": "0", "cash_bp": 1000, "credit_bp": 1000}])
    rows = [
        {"name": one, "set_code": products.set_code, "number": number, "copies": 1}
        for one, number in ((name, "1"), (other, "2"))
    ]
    found = await valued(owner, (await brought(shop, a_moxfield_file(*rows)))["id"])
    assert [row["rule_name"] for row in found["rows"]] == ["Named", "All"]
    effect = await owner.post("/api/buying/preview", json={"query": name})
    assert effect.status_code == 200, effect.text


async def test_the_own_target_is_what_the_shop_would_ask_today(shop, box):
    owner = await signed_in(shop)
    # The shop's own rules ask 1 % below the market price, also for a card that it has not priced.
    await made(owner, base="target")
    told = await valued(owner, box)
    assert cash(told) == ["19.80", "19.80"]
    said = told["rows"][0]["explanation"]
    assert "Your own target of a Near Mint copy is $9.90." in said


async def test_a_card_that_is_sold_out_is_bought_by_its_last_market_price(shop, box, products):
    owner = await signed_in(shop)
    usual = {"set": products.set_name, "market": "10.00", "low": "8.00"}
    rows = [
        a_row(77, name="Alacrian Jaguar", number="152", rarity="R", quantity=0, **usual),
        a_row(79, name="Another", number="9", quantity=1, **usual),
    ]
    # One is listed with no copies, the other is no longer in the file.
    await shop.import_csv(a_csv(*rows), **{"X-Full-History": "1"})
    rare = await made(owner, name="Rare", query="rarity:rare", base="low", most_copies=4)
    await made(owner, base="target")
    told = await valued(owner, box)
    assert cash(told) == ["16.00", "19.80"]
    assert told["rows"][0]["rule_name"] == rare["name"]


async def test_own_rules_may_look_where_a_collection_has_nothing(shop, box):
    """A copy that somebody brings has no cost, no age, no pin and no place yet."""
    owner = await signed_in(shop)
    for query, adjust in (
        ("cost>=0 or margin>=0 or age>=0 or is:pinned or has:list", 20_000),
        ("is:unshelved -has:list", 1_000),
    ):
        rule = {"name": query, "query": query, "state": "published", "adjust_bp": adjust}
        answer = await shop.post("/api/pricing/rules", json=rule)
        assert answer.status_code == 201, answer.text
    await made(owner, base="target")
    assert cash(await valued(owner, box)) == ["22.00", "22.00"]


async def test_a_rule_sees_lists_stock_and_budget(shop, box):
    owner = await signed_in(shop)
    card = (await owner.get("/api/cards", params={"search": "jaguar"})).json()["cards"][0]
    hot = (await owner.post("/api/lists", json={"name": "Hot"})).json()["id"]
    await owner.post(f"/api/lists/{hot}/cards", json={"card_ids": [card["id"]]})
    await made(
        owner,
        lists=[{"list_id": hot, "change_bp": 2000, "name": "Hot"}],
        most_copies=3,
        stock_steps=[{"from": 2, "less_bp": 5000}],
        budget={"offer_cash": "11.50"},
    )
    jaguar, unit = (await valued(owner, box))["rows"]
    assert jaguar["bought"] == [
        {"copies": 1, "cash": "6.00", "credit": "7.20"},
        {"copies": 1, "cash": "3.00", "credit": "3.60"},
    ]
    assert (jaguar["left"], jaguar["reason"]) == (2, "limit")
    assert unit["bought"] == [
        {"copies": 1, "cash": None, "credit": "6.00"},
        {"copies": 1, "cash": "2.50", "credit": "3.00"},
    ]


async def drafts_of(who, box, count):
    made = [
        (await who.post("/api/buying/offers", json={"collection_id": box})).json()
        for _ in range(count)
    ]
    return [{"revision": each["revision"], "id": each["id"]} for each in made]


async def offered(who, draft):
    body = {"revision": draft["revision"]}
    return await who.post(f"/api/buying/offers/{draft['id']}/offer", json=body)


async def test_offers_of_a_day_share_its_budget_whoever_races(shop, box):
    """Drafts were priced before any was offered; one of them is, and the value page knows it."""
    owner = await signed_in(shop)
    await made(owner, budget={"day_cash": "45.00"})
    assert cash(await valued(owner, box)) == ["20.00", "20.00"]
    drafts = await drafts_of(owner, box, 3)
    answers = await asyncio.gather(*(offered(owner, draft) for draft in drafts))
    assert sorted(answer.status_code for answer in answers) == [200, 422, 422]
    [said, _] = [answer.json()["error"] for answer in answers if answer.status_code == 422]
    assert "the rule Half has $5.00 in cash left; price the cards again" in said
    assert cash(await valued(owner, box)) == ["5.00", None]
    [again] = await drafts_of(owner, box, 1)
    assert (await offered(owner, again)).status_code == 200


async def test_copies_of_open_offers_count_to_the_limit(shop, box):
    owner = await signed_in(shop)
    await made(owner, most_copies=6)
    [first] = await drafts_of(owner, box, 1)
    assert [row["left"] for row in (await valued(owner, box))["rows"]] == [0, 0]
    assert (await offered(owner, first)).status_code == 200
    assert [row["left"] for row in (await valued(owner, box))["rows"]] == [3, 3]


@pytest.mark.parametrize(
    "rule",
    [
        {"most_copies": 6},
        {"stock_steps": [{"from": 5, "less_bp": 5000}]},
    ],
)
async def test_two_offers_at_once_never_take_the_same_room(shop, box, rule):
    """Both drafts were priced while one copy was in stock; each brings four more."""
    owner = await signed_in(shop)
    await made(owner, **rule)
    drafts = await drafts_of(owner, box, 2)
    answers = await asyncio.gather(*(offered(owner, draft) for draft in drafts))
    assert sorted(answer.status_code for answer in answers) == [200, 422]
    [said] = [answer.json()["error"] for answer in answers if answer.status_code == 422]
    assert "the rule Half buys fewer copies of A" in said
    assert said.endswith("or pays less for them; price the cards again")
    [again] = await drafts_of(owner, box, 1)
    assert (await offered(owner, again)).status_code == 200


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"bands": []}, "invalid_rule", "bands: needs 1 to 50 bands"),
        ({"query": "list:hot"}, "invalid_rule", "query: list cannot be asked"),
        ({"query": "market>="}, "invalid_query", "query: "),
        ({"lists": [{"list_id": 9, "change_bp": 1}]}, "invalid_rule", "lists: there is no list 9"),
        ({"base": "guess"}, "invalid_rule", "base: must be one of low, market, target"),
        ({"colour": 1}, "invalid_rule", "colour: is not a field"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused(shop, body, code, said):
    owner = await signed_in(shop)
    answer = await owner.post("/api/buying/rules", json=PAYS_HALF | body)
    assert (answer.status_code, answer.json()["code"]) == (422, code), answer.text
    assert answer.json()["error"].startswith(said)


async def test_presets_replace_each_other_and_staff_may_not(shop):
    owner = await signed_in(shop)
    presets = [f"/api/buying/presets/{name}" for name in ("hungry", "conservative")]
    await asyncio.gather(*(owner.post(path) for path in presets))
    [rule] = (await owner.get("/api/buying/rules")).json()["rules"]
    assert rule["preset"] in ("hungry", "conservative")
    assert (await owner.post("/api/buying/presets/greedy")).status_code == 404
    bea = await joined(shop, f"bea-{shop.email}")
    assert (await bea.post(presets[0])).json()["code"] == "owner_required"


async def test_rule_tests_judge_what_is_paid(shop):
    owner = await signed_in(shop)
    await made(owner)
    body = {"name": "Not too dear", "search": "jaguar", "expectation": "never over 4.00"}
    answer = await owner.post("/api/buying/rule_tests", json=body)
    assert answer.status_code == 201, answer.text
    told = (await owner.post("/api/buying/rule_tests/check")).json()
    [test] = told["rule_tests"]
    assert (told["red"], test["cards"], test["failing"]) == (1, 1, 1)
    assert test["first"][0]["cash"] == "5.00"
    assert (await owner.send("DELETE", f"/api/buying/rule_tests/{test['id']}")).status_code == 200
    moving = await owner.post("/api/buying/rule_tests", json=body | {"expectation": "never moves"})
    assert moving.status_code == 422


async def test_a_budget_fails_no_test_of_prices(shop):
    """Each card is judged by itself, though the budget pays for one of the two."""
    owner = await signed_in(shop)
    await made(owner, budget={"offer_cash": "5.00", "offer_credit": "6.00"})
    body = {"name": "Enough", "search": "", "expectation": "never under 5.00"}
    await owner.post("/api/buying/rule_tests", json=body)
    [test] = (await owner.post("/api/buying/rule_tests/check")).json()["rule_tests"]
    assert (test["cards"], test["failing"]) == (2, 0)


async def test_a_created_and_a_deleted_rule_test_are_undone(shop):
    owner = await signed_in(shop)
    path = "/api/buying/rule_tests"
    body = {"name": "Enough", "search": "jaguar", "expectation": "never under 5.00"}
    made_test = (await owner.post(path, json=body)).json()
    await owner.send("DELETE", f"{path}/{made_test['id']}")
    assert (await owner.get(path)).json() == {"rule_tests": []}
    assert (await undo_newest(owner, "buying.rule_test_deleted")).status_code == 200
    [back] = (await owner.get(path)).json()["rule_tests"]
    assert back.items() >= (body | {"id": made_test["id"]}).items()
    assert (await undo_newest(owner, "buying.rule_test_created")).status_code == 200
    assert (await owner.get(path)).json() == {"rule_tests": []}


async def test_what_was_done_to_rules_is_undone(shop):
    """One after the other, the newest first: a delete, a new place, an edit, and the rule itself."""
    owner = await signed_in(shop)
    await owner.post("/api/buying/presets/standard")

    async def rules():
        shown = (await owner.get("/api/buying/rules")).json()["rules"]
        return [{k: v for k, v in rule.items() if k != "updated_at"} for rule in shown]

    stands = [await rules()]
    await owner.post("/api/buying/presets/hungry")
    stands.append(await rules())
    path = f"/api/buying/rules/{(await made(owner))['id']}"
    stands.append(await rules())
    for body in ({"most_copies": 3, "name": "Third"}, {"priority": DEFAULT_PRIORITY + 5}):
        assert (await owner.send("PATCH", path, json=body)).status_code == 200
        stands.append(await rules())
    assert (await owner.send("DELETE", path)).status_code == 200
    while stands:
        feed = (await shop.get("/api/v1/agent/activity")).json()["activity"]
        entry = next(one for one in feed if one["undoable"])
        answer = await shop.post(f"/api/v1/agent/activity/{entry['id']}/undo")
        assert answer.status_code in (200, 201), answer.text
        assert await rules() == stands.pop()


async def test_an_undo_of_a_rule_never_overwrites_what_came_later(shop):
    owner = await signed_in(shop)
    rule = await made(owner, priority=7)
    path = f"/api/buying/rules/{rule['id']}"
    await owner.send("PATCH", path, json={"most_copies": 3})
    await owner.send("PATCH", path, json={"most_copies": 4})
    feed = (await shop.get("/api/v1/agent/activity")).json()["activity"]
    [_, first] = [one["id"] for one in feed if one["action"] == "buying.rule_changed"]
    answer = await shop.post(f"/api/v1/agent/activity/{first}/undo")
    assert (answer.status_code, answer.json()["code"]) == (409, "changed_since")
    assert "settings" not in answer.json()["error"]
    assert (await owner.send("DELETE", path)).status_code == 200
    await made(owner, name="In its place", priority=7)
    answers = await asyncio.gather(*(undo_newest(shop, "buying.rule_deleted") for _ in "ab"))
    assert {answer.status_code for answer in answers} == {409}
    assert "is now used by rule" in answers[0].json()["error"]
