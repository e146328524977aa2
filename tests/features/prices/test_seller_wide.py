"""The undercut upward and the seller-wide floor, scope and adder over HTTP: in runs, previews,
explanations, receipts and backtests alike.
"""

from __future__ import annotations

from datetime import timedelta

from builders import a_csv, a_row
from cards_builder import explained
from cardsync.platform import clock

RULES = "/api/pricing/rules"
SETTINGS = "/api/pricing/settings"


async def made(seller, **rule):
    answer = await seller.post(RULES, json={"name": "A rule", "state": "published", **rule})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def set_to(seller, **settings):
    answer = await seller.http.patch(SETTINGS, json=settings)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def targets(seller):
    cards = (await seller.get("/api/cards?sort=name")).json()["cards"]
    return {card["marketplace_id"]: card["target_price"] for card in cards}


def step(told, name):
    return next(one for one in told["steps"] if one["name"] == name)


async def test_a_price_rises_to_just_under_the_low_of_the_upload(a_seller):
    seller = await a_seller()
    rule = await made(seller, undercut_up_bp=200)
    assert rule["undercut_up_bp"] == 200
    await seller.import_csv(a_csv(a_row(1, market="2.00", low="3.00", price="2.00")))
    assert await targets(seller) == {1: "2.94"}
    told = await explained(seller, 1)
    undercut = step(told, "undercut")
    assert (undercut["lowest_listing"], undercut["listing_source"]) == ("3.00", "low")
    assert undercut["summary"].endswith("to 2% below it: 2.94.")
    receipt = told["historical_breakdown"]
    assert step(receipt, "undercut") == undercut
    asked = {"rules": [{"undercut_up_bp": 1000}]}
    [move] = (await seller.post("/api/pricing/preview", json=asked)).json()["largest"]
    assert move["target_price"] == "2.70"


async def test_an_undercut_out_of_its_limits_is_refused(a_seller):
    seller = await a_seller()
    answer = await seller.post(RULES, json={"name": "x", "undercut_up_bp": 5_001})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_rule")
    assert answer.json()["error"] == "undercut_up_bp: must be between 0 and 5000"


async def test_the_hard_floor_and_the_adder_are_in_force_with_the_next_run(a_seller):
    seller = await a_seller()
    await made(seller)
    rows = [
        a_row(1, market="0.10", low="0.10", price="0.50"),
        a_row(2, market="60.00", low="60.00", price="60.00"),
        a_row(3, market="49.99", low="49.99", price="49.99"),
    ]
    await set_to(seller, hard_floor="0.25", shipping_adder="1.27")
    await seller.import_csv(a_csv(*rows))
    assert await targets(seller) == {1: "0.25", 2: "61.27", 3: "49.99"}
    told = await explained(seller, 1)
    assert step(told, "bounds")["summary"] == "0.10 is below your minimum price of 0.25."
    adder = step(await explained(seller, 2), "shipping_adder")
    assert (adder["output"], adder["tracking_threshold"]) == ("61.27", "50.00")
    # The threshold is the seller's.
    await seller.set(tracking_threshold="40")
    await seller.import_csv(a_csv(*rows))
    assert (await targets(seller))[3] == "51.26"


async def test_a_sale_does_not_pass_the_hard_floor(a_seller):
    seller = await a_seller()
    await made(seller)
    now = clock.now()
    sale = {
        "name": "Half",
        "adjust_bp": -5000,
        "starts_at": clock.rfc3339(now - timedelta(hours=1)),
        "ends_at": clock.rfc3339(now + timedelta(days=1)),
    }
    assert (await seller.post("/api/pricing/sales", json=sale)).status_code == 201
    await set_to(seller, hard_floor="1.50")
    await seller.import_csv(a_csv(a_row(1, market="2.00", low="2.00", price="2.00")))
    assert await targets(seller) == {1: "1.50"}
    said = step(await explained(seller, 1), "hard_floor")["summary"]
    assert said == "1.00 is below your minimum price of 1.50."


async def test_games_that_only_the_default_rule_selects_are_left_alone(a_seller):
    seller = await a_seller()
    await made(seller, query="name:card market>=3")
    rows = [
        a_row(1, line="Magic", market="4.00", low="4.00", price="1.00"),
        a_row(2, line="Magic", market="2.00", low="2.00", price="1.00"),
        a_row(3, line="Pokemon", market="2.00", low="2.00", price="1.00"),
    ]
    await set_to(seller, repricing_scope="games_with_rules")
    await seller.import_csv(a_csv(*rows))
    # The rule selects a card of Magic, so the default rule prices the rest of that game.
    found = await targets(seller)
    assert found[1] == "4.00"
    assert found[2] is not None
    assert found[3] is None
    told = await explained(seller, 3)
    assert [blocker["code"] for blocker in told["blockers"]] == ["game_without_rules"]
    asked = {"rules": [{"query": "market>=3"}, {"name": "rest", "priority": 1000}]}
    preview = (await seller.post("/api/pricing/preview", json=asked)).json()
    assert preview["blocked"] == {"game_without_rules": 1}
    # A backtest takes the moments of the files' exports.
    stamped = {"X-Exported-At": clock.rfc3339(clock.now() - timedelta(minutes=1))}
    await seller.import_csv(a_csv(*rows), **stamped)
    days = {"from": (clock.now() - timedelta(days=1)).date().isoformat()}
    days["to"] = clock.now().date().isoformat()
    answer = await seller.post("/api/pricing/backtest", json={**asked, **days})
    backtest = answer.json()
    assert answer.status_code == 200, backtest
    assert backtest["summary"]["blocked"] == {"game_without_rules": 1}, backtest
    await set_to(seller, repricing_scope="all_games")
    await seller.import_csv(a_csv(*rows))
    assert (await targets(seller))[3] is not None
