"""A promotion before it starts: what it would do, and which limits it holds, over the API."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from browsers import signed_in
from builders import a_csv, a_row
from cardsync.platform import clock
from lots_builder import add, settle

PREVIEW = "/api/pricing/preview/sale"
SALES = "/api/pricing/sales"
FIGURES = (
    "cards", "copies", "reduced", "full", "limited", "not_priced", "below_cost", "unknown_cost",
    "never_lowered", "below_never_lower", "listed_value_before", "listed_value_after",
)  # fmt: skip

_WITHOUT_LIMITS = """
    UPDATE activity
       SET undo = undo #- '{was,floor_cost_bp}' #- '{was,keep_never_lower}'
                       #- '{became,floor_cost_bp}' #- '{became,keep_never_lower}'
     WHERE seller_id = :seller AND id = :id
"""


async def a_shop(a_seller, **rule):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(
            a_row(1, name="Cheap", price="1.00", market="1.00", quantity=3),
            a_row(2, name="Bought dear", price="10.00", market="10.00"),
            a_row(3, name="Sold out", price="5.00", market="5.00", quantity=0),
            a_row(4, name="Costs more than it asks", price="4.00", market="4.00"),
        )
    )
    answer = await seller.post(
        "/api/pricing/rules",
        json={"name": "At market", "state": "published", "priority": 1} | rule,
    )
    assert answer.status_code == 201, answer.text
    bought = date(2026, 1, 1)
    await add(seller, (2, 1, Decimal("9.00"), bought), (4, 1, Decimal("5.00"), bought))
    await settle(seller)
    return seller


def figures(answer):
    assert answer.status_code == 200, answer.text
    return {name: answer.json()[name] for name in FIGURES}


async def test_the_effect_of_a_promotion_says_what_stops_it(a_seller):
    seller = await a_shop(a_seller)
    owner = await signed_in(seller)
    free = figures(await owner.post(PREVIEW, json={"sale": {"adjust_bp": -2000}}))
    assert free == {
        "cards": 3, "copies": 5, "reduced": 3, "full": 3, "limited": 0, "not_priced": 0,
        "below_cost": 2, "unknown_cost": 1, "never_lowered": 0, "below_never_lower": 0,
        "listed_value_before": "17.00", "listed_value_after": "13.60",
    }  # fmt: skip
    kept = await owner.post(PREVIEW, json={"sale": {"adjust_bp": -2000, "floor_cost_bp": 0}})
    assert figures(kept) == free | {
        "reduced": 2, "full": 1, "limited": 2, "below_cost": 0,
        "listed_value_after": "15.40",
    }  # fmt: skip
    reasons = {move["product_name"]: move["reason"] for move in kept.json()["largest"]}
    assert "not below what the card cost: 9.00" in reasons["Bought dear"]
    found = await owner.post(PREVIEW, json={"sale": {"adjust_bp": -2000, "query": "cheap"}})
    assert figures(found)["cards"] == 1
    assert (await owner.get(SALES)).json()["sales"] == []


async def test_what_a_rule_never_lowers_stays_if_the_promotion_says_so(a_seller):
    seller = await a_shop(a_seller, never_lower=True)
    owner = await signed_in(seller)
    sale = {"adjust_bp": -2000, "keep_never_lower": True}
    kept = figures(await owner.post(PREVIEW, json={"sale": sale}))
    assert (kept["limited"], kept["never_lowered"], kept["below_never_lower"]) == (3, 3, 0)
    assert kept["listed_value_after"] == kept["listed_value_before"]
    lowered = figures(await owner.post(PREVIEW, json={"sale": {"adjust_bp": -2000}}))
    assert (lowered["limited"], lowered["below_never_lower"]) == (0, 3)


async def test_a_run_asks_what_the_effect_said_and_prices_go_back_at_the_end(a_seller):
    seller = await a_shop(a_seller)
    owner = await signed_in(seller)
    now = clock.now()
    sale = {
        "name": "Week", "adjust_bp": -2000, "floor_cost_bp": 0, "keep_never_lower": True,
        "enabled": False, "starts_at": clock.rfc3339(now),
        "ends_at": clock.rfc3339(now + timedelta(days=1)),
    }  # fmt: skip
    made = await owner.post(SALES, json=sale)
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    assert (made.json()["floor_cost_bp"], made.json()["keep_never_lower"]) == (0, True)
    await seller.service.run_jobs()
    assert await targets(seller) == {1: "1.00", 2: "10.00", 4: "4.00"}
    said = (await owner.post(PREVIEW, json={"sale_id": id, "sale": {}})).json()
    assert (await owner.send("PATCH", f"{SALES}/{id}", json={"enabled": True})).status_code == 200
    clock.shift(timedelta(minutes=1))
    await seller.sweep()
    await seller.service.run_jobs()
    assert await targets(seller) == {1: "0.80", 2: "9.00", 4: "4.00"}
    after = 3 * 0.80 + 9.00 + 4.00
    assert float(said["listed_value_after"]) == after
    clock.shift(timedelta(days=1, minutes=1))
    await seller.sweep()
    await seller.service.run_jobs()
    assert await targets(seller) == {1: "1.00", 2: "10.00", 4: "4.00"}


async def targets(seller):
    cards = (await seller.get("/api/cards?search=qty>0")).json()["cards"]
    return {card["marketplace_id"]: card["target_price"] for card in cards}


@pytest.mark.parametrize("older", [False, True])
async def test_a_change_of_a_promotion_is_undone_also_one_of_before_it_held_limits(a_seller, older):
    seller = await a_shop(a_seller)
    owner = await signed_in(seller)
    now = clock.now()
    times = {
        "starts_at": clock.rfc3339(now + timedelta(days=1)),
        "ends_at": clock.rfc3339(now + timedelta(days=2)),
    }
    id = (await owner.post(SALES, json={"name": "A", "adjust_bp": -100} | times)).json()["id"]
    limits = {} if older else {"keep_never_lower": True, "floor_cost_bp": 500}
    await owner.send("PATCH", f"{SALES}/{id}", json={"adjust_bp": -200} | limits)
    entry = (await owner.get("/api/v1/agent/activity")).json()["activity"][0]
    if older:
        async with seller.service.database.tenant(seller.id) as session:
            await session.execute(text(_WITHOUT_LIMITS), {"seller": seller.id, "id": entry["id"]})
    answer = await owner.post(f"/api/v1/agent/activity/{entry['id']}/undo")
    assert answer.status_code == 200, answer.text
    sale = (await owner.get(f"{SALES}/{id}")).json()
    assert (sale["adjust_bp"], sale["keep_never_lower"], sale["floor_cost_bp"]) == (
        -100, False, None,
    )  # fmt: skip


async def test_what_is_no_promotion_is_refused_in_words(a_seller):
    seller = await a_shop(a_seller)
    owner = await signed_in(seller)
    for body, said in (
        ({"sale": {"adjust_bp": -9500}}, "sale.adjust_bp"),
        ({"sale": {"floor_cost_bp": -20000}}, "sale.floor_cost_bp"),
        ({"sale": {"query": "prise>5"}}, "prise"),
    ):
        answer = await owner.post(PREVIEW, json=body)
        assert answer.status_code == 422, answer.text
        assert said in answer.json()["error"]
    missing = await owner.post(PREVIEW, json={"sale_id": 99, "sale": {}})
    assert missing.status_code == 404
