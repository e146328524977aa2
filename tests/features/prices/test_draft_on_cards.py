"""A draft rule on one to fifty cards, beside the live rules: prices and the steps to them."""

from __future__ import annotations

import pytest

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop

TEST = "/api/pricing/test"
RULES = "/api/pricing/rules"


@pytest.fixture
async def seller(a_seller):
    return await a_shop(
        a_seller,
        a_row(1, market="2.00", price="1.00", quantity=3),
        a_row(2, market="", low="", price="1.00"),
        a_row(3, market="30.00", price="25.00"),
    )


async def tried(seller, rule, **body):
    answer = await seller.post(TEST, json={"rule": rule, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def on_one(seller, rule, marketplace_id, **body):
    told = await tried(seller, rule, marketplace_id=marketplace_id, **body)
    [card] = told["cards"]
    assert (card["marketplace_id"], told["truncated"]) == (marketplace_id, False)
    return card


async def published(seller, **fields):
    answer = await seller.post(RULES, json={"name": "Mine", "state": "published"} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_draft_prices_a_card_beside_the_live_rules_by_the_same_steps(seller):
    card = await on_one(seller, {"name": "Dear", "adjust_bp": 1000}, 1)
    live = (await seller.get("/api/v1/pricing/explain/1")).json()
    assert (card["card"], card["current_price"]) == (live["card"], "1.00")
    assert card["live"] == {
        name: live[name] for name in ("target_price", "governing_rule", "blockers", "steps")
    }
    draft = card["draft"]
    assert draft["target_price"] == "2.20"
    assert draft["governing_rule"] == {"id": -1, "name": "Dear", "priority": 999}
    [formula] = [step for step in draft["steps"] if step["name"] == "formula"]
    assert (formula["input"], formula["output"]) == ("2.00", "2.20")
    rule = await published(seller, name="Dear", adjust_bp=1000, priority=999)
    saved = (await seller.get("/api/v1/pricing/explain/1")).json()

    def without_ids(steps):
        known = {"rule_id": None, "losing_candidates": None}
        return [{name: known.get(name, said) for name, said in step.items()} for step in steps]

    assert without_ids(saved["steps"]) == without_ids(draft["steps"])
    assert saved["governing_rule"]["id"] == rule["id"]


async def test_where_nothing_is_usable_the_price_is_null_and_the_steps_say_why(seller):
    card = await on_one(seller, {"adjust_bp": 1000}, 2)
    for by in ("live", "draft"):
        assert card[by]["target_price"] is None
        assert [blocker["code"] for blocker in card[by]["blockers"]] == ["no_usable_reference"]
        assert card[by]["steps"][-1]["name"] == "price_source"
    usable = await on_one(seller, {"price_source": "current", "adjust_bp": 1000}, 2)
    assert (usable["live"]["target_price"], usable["draft"]["target_price"]) == (None, "1.10")


async def test_a_draft_that_does_not_govern_a_card_changes_nothing_of_it(seller):
    first = await published(seller, priority=1, query="price>20")
    for marketplace_id, rule in ((3, {"adjust_bp": -5000}), (1, {"query": "price>20"})):
        card = await on_one(seller, rule, marketplace_id)
        assert card["draft"]["target_price"] == card["live"]["target_price"]
        assert card["draft"]["governing_rule"] == card["live"]["governing_rule"]
    card = await on_one(seller, {"adjust_bp": -5000}, 3)
    assert card["draft"]["governing_rule"]["id"] == first["id"]
    [chosen] = [step for step in card["draft"]["steps"] if step["name"] == "governing_rule"]
    assert -1 in chosen["losing_candidates"]


async def test_a_saved_rule_is_tried_with_other_fields(seller):
    rule = await published(seller, priority=5, query="price>20", adjust_bp=0)
    card = await on_one(seller, {"adjust_bp": -1000}, 3, rule_id=rule["id"])
    assert (card["live"]["target_price"], card["draft"]["target_price"]) == ("30.00", "27.00")
    assert card["draft"]["governing_rule"]["id"] == rule["id"]


async def test_a_search_chooses_at_most_fifty_cards(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, market="2.00", price="1.00") for n in range(1, 53))))
    told = await tried(seller, {"adjust_bp": 0}, search="price>0")
    assert [card["marketplace_id"] for card in told["cards"]] == list(range(1, 51))
    assert told["truncated"] is True
    assert {card["draft"]["target_price"] for card in told["cards"]} == {"2.00"}
    assert await tried(seller, {}, search="price>100") == {"cards": [], "truncated": False}
    assert len((await tried(seller, {}, search=""))["cards"]) == 50


async def test_nothing_is_written(seller):
    before = [(card["target_price"], card["price"]) for card in await seller.cards()]
    await tried(seller, {"adjust_bp": 5000}, search="")
    assert [(card["target_price"], card["price"]) for card in await seller.cards()] == before
    assert len((await seller.get(RULES)).json()["rules"]) == 1
    assert (await seller.get("/api/v1/status")).json()["phase"] == "push_queued"


@pytest.mark.parametrize(
    ("body", "status", "code", "named"),
    [
        ({"rule": {"colour": 1}, "marketplace_id": 1}, 422, "invalid_rule", "rule.colour"),
        ({"rule": {"adjust_bp": "5"}, "search": ""}, 422, "invalid_rule", "rule.adjust_bp"),
        ({"rule": {"cap": {"period": "year"}}, "search": ""}, 422, "invalid_rule", "rule."),
        ({"rule": {"query": "price>"}, "search": ""}, 422, "invalid_query", "rule.query"),
        ({"rule": {}, "search": "price>"}, 422, "invalid_query", "search"),
        ({"rule": {}, "search": 5}, 422, "invalid_payload", "search"),
        ({"rule": {}, "marketplace_id": "1"}, 422, "invalid_payload", "marketplace_id"),
        ({"rule": {}, "marketplace_id": True}, 422, "invalid_payload", "marketplace_id"),
        ({"rule": {}, "marketplace_id": 2**64}, 422, "invalid_payload", "marketplace_id"),
        ({"rule": {}}, 422, "invalid_payload", "either marketplace_id or search"),
        ({"rule": {}, "marketplace_id": 1, "search": ""}, 422, "invalid_payload", "either"),
        ({"search": ""}, 422, "invalid_payload", "rule"),
        ({"rule": [], "search": ""}, 422, "invalid_payload", "rule"),
        ({"rule": {}, "marketplace_id": 99}, 404, "not_found", "99"),
        ({"rule": {}, "rule_id": 99, "search": ""}, 404, "not_found", "99"),
    ],
    ids=str,
)
async def test_what_cannot_be_tried_is_refused_by_name(seller, body, status, code, named):
    answer = await seller.post(TEST, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert named in answer.json()["error"]
    if code == "invalid_query":
        assert "at offset" in answer.json()["error"]


async def test_another_sellers_card_is_not_found(seller, a_seller):
    other = await a_seller()
    answer = await other.post(TEST, json={"rule": {}, "marketplace_id": 1})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_owner_tries_a_draft_and_staff_does_not(seller):
    owner, bea = await signed_in(seller), await joined(seller, "bea-tries@example.invalid")
    body = {"rule": {}, "marketplace_id": 1}
    assert (await owner.send("POST", TEST, json=body)).status_code == 200
    answer = await bea.send("POST", TEST, json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "owner_required")
