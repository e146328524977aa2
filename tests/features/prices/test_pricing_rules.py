"""Rules, sales, pins and settings over HTTP: what a seller may write, what is refused and why,
and what it does to prices.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.platform import clock

RULES = "/api/pricing/rules"
SALES = "/api/pricing/sales"
SETTINGS = "/api/pricing/settings"
CAP = {
    "up_bp": 2000,
    "down_bp": None,
    "period": "week",
    "mode": "hold",
    "small": {"below": "5.00", "up_bp": 1, "down_bp": 2},
}
STALE = {"after_days": 60, "step_bp": 500, "every_days": 7, "limit_bp": 4000}
GATE = {"min_listings": 3, "min_sales_30d": 2, "max_age_hours": 24, "undercut_bp": 100}


async def made(seller, path=RULES, **fields):
    answer = await seller.post(path, json={"name": "A rule"} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def refused(seller, path=RULES, **fields):
    answer = await seller.post(path, json={"name": "A rule"} | fields)
    assert answer.status_code == 422, answer.text
    return answer.json()["code"], answer.json()["error"]


async def names(seller):
    return [rule["name"] for rule in (await seller.get(RULES)).json()["rules"]]


async def targets(seller, **headers):
    return [str(card["target_price"]) for card in await seller.cards()]


def a_sale(**fields):
    now = clock.now()
    times = {
        "starts_at": clock.rfc3339(now - timedelta(days=1)),
        "ends_at": clock.rfc3339(now + timedelta(days=1)),
    }
    return {"name": "Sale", "adjust_bp": -1000} | times | fields


async def test_a_new_seller_has_the_competitive_presets_rule(a_seller):
    seller = await a_seller(capped=True)
    [rule] = (await seller.get(RULES)).json()["rules"]
    assert (rule["name"], rule["priority"], rule["state"], rule["enabled"]) == (
        "Competitive",
        1000,
        "published",
        True,
    )
    assert (rule["price_source"], rule["fallback_sources"], rule["adjust_bp"]) == (
        "market",
        ["low"],
        -100,
    )
    small = {"below": "5.00", "up_bp": 1500, "down_bp": 1500}
    assert rule["cap"] == {
        "up_bp": 2000,
        "down_bp": 2000,
        "period": "day",
        "mode": "clamp",
        "small": small,
    }


async def test_a_posted_rule_has_the_defaults_of_the_specification(a_seller):
    rule = await made(await a_seller())
    times = {rule.pop(name) for name in ("created_at", "updated_at")}
    assert len(times) == 1
    assert rule == {
        "id": rule["id"], "name": "A rule", "priority": 10, "enabled": True, "state": "draft",
        "query": "",
        "price_source": "market", "fallback_sources": ["market"], "adjust_bp": 0,
        "adjust_amount": "0.00", "review": None, "holdout_bp": None, "floor": None,
        "floor_cost_bp": None, "ceiling": None, "never_lower": False, "stale": None, "velocity_boost_enabled": False,
        "cap": None, "market_gate": None, "undercut_up_bp": None,
        "fee_gap_adjustment": False, "rounding": "cent", "warnings": [],
        "rule_tests": [],
    }  # fmt: skip


async def test_every_field_comes_back_as_it_was_written(a_seller):
    seller = await a_seller()
    written = {
        "name": "Everything", "priority": 5, "enabled": False, "state": "published",
        "query": "price>=5 cond:NM", "price_source": "low",
        "fallback_sources": ["market", "current"], "adjust_bp": -250, "adjust_amount": "-0.05",
        "floor": "0.25", "floor_cost_bp": 2_000, "ceiling": "1000.00",
        "never_lower": True, "stale": STALE, "velocity_boost_enabled": True, "cap": CAP,
        "market_gate": GATE, "undercut_up_bp": 250,
        "fee_gap_adjustment": True, "rounding": "x49_x99",
    }  # fmt: skip
    rule = await made(seller, **written)
    assert {name: rule[name] for name in written} == written
    again = (await seller.get(f"{RULES}/{rule['id']}")).json()
    assert again == rule
    # An answer can be sent back as it came.
    same = await seller.http.patch(f"{RULES}/{rule['id']}", json=again)
    assert (same.status_code, same.json()) == (200, rule)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"adjust": 5}, "adjust"),
        ({"name": " "}, "name"),
        ({"name": None}, "name"),
        ({"adjust_bp": "5"}, "adjust_bp"),
        ({"adjust_bp": 1.5}, "adjust_bp"),
        ({"adjust_bp": -10001}, "adjust_bp"),
        ({"floor": "abc"}, "floor"),
        ({"floor": "NaN"}, "floor"),
        ({"floor": "1e3"}, "floor"),
        ({"floor": "99999999.99995"}, "floor"),
        ({"floor": "2.00", "ceiling": "1.00"}, "floor"),
        ({"never_lower": 1}, "never_lower"),
        ({"price_source": "cheapest"}, "price_source"),
        ({"fallback_sources": "market"}, "fallback_sources"),
        ({"rounding": "x5"}, "rounding"),
        ({"state": "live"}, "state"),
        ({"priority": 0}, "priority"),
        ({"priority": 1000}, "priority"),
        ({"stale": {**STALE, "every_days": 0}}, "stale.every_days"),
        ({"stale": {"after_days": 3}}, "stale."),
        ({"cap": {"upp_bp": 3}}, "cap.upp_bp"),
        ({"cap": {"small": {}}}, "cap.small.below"),
        ({"cap": {"period": "month"}}, "cap.period"),
        ({"market_gate": []}, "market_gate"),
    ],
)
async def test_what_a_rule_may_not_say_is_refused_by_the_fields_name(a_seller, fields, field):
    code, message = await refused(await a_seller(), **fields)
    assert code == "invalid_rule"
    assert message.startswith(field)


@pytest.mark.parametrize(
    ("query", "offset"),
    [("prise>5", 0), ("cond:XX", 0), ("list:nowhere", 0), ("cond:NM (price>5", 8)],
)
async def test_a_query_that_does_not_read_is_refused_with_its_offset(a_seller, query, offset):
    code, message = await refused(await a_seller(), query=query)
    assert (code, f"offset {offset}" in message) == ("invalid_query", True), message


async def test_rules_without_a_priority_line_up_directly_before_the_default(a_seller):
    seller = await a_seller()
    for name in ("one", "two", "three"):
        await made(seller, name=name)
    await made(seller, name="last but one", priority=999)
    clock.shift(timedelta(minutes=1))
    await made(seller, name="last")
    moved = [rule for rule in (await seller.get(RULES)).json()["rules"] if rule["priority"] < 1000]
    assert {rule["updated_at"] for rule in moved} == {moved[-1]["created_at"]}
    assert await names(seller) == ["one", "two", "three", "last but one", "last", "Competitive"]
    priorities = [rule["priority"] for rule in (await seller.get(RULES)).json()["rules"]]
    assert priorities == sorted(set(priorities))
    assert priorities[-1] == 1000


async def test_a_rule_is_published_disabled_enabled_and_deleted(a_seller):
    seller = await a_seller()
    rule = await made(seller)
    path = f"{RULES}/{rule['id']}"
    for action, field, value in (
        ("publish", "state", "published"),
        ("disable", "enabled", False),
        ("enable", "enabled", True),
    ):
        for _ in range(2):
            answer = await seller.post(f"{path}/{action}")
            assert (answer.status_code, answer.json()[field]) == (200, value)
    gone = await seller.http.delete(path)
    assert (gone.status_code, gone.json()) == (200, {"deleted": True})
    assert (await seller.http.delete(path)).json()["code"] == "not_found"
    assert (await seller.post(f"{path}/publish")).status_code == 404


async def test_nobody_sees_or_touches_anothers_rules(a_seller):
    mine, other = await a_seller(), await a_seller()
    rule, sale = await made(mine), await made(mine, SALES, **a_sale())
    for path in (f"{RULES}/{rule['id']}", f"{SALES}/{sale['id']}"):
        for answer in (
            await other.get(path),
            await other.http.patch(path, json={}),
            await other.http.delete(path),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert len((await other.get(RULES)).json()["rules"]) == 1


async def test_rules_are_reordered_and_the_default_keeps_its_place(a_seller):
    seller = await a_seller()
    ids = {
        name: (await made(seller, name=name, state="published"))["id"]
        for name in ("one", "two", "three")
    }
    default = (await seller.get(RULES)).json()["rules"][-1]["id"]
    answer = await seller.post(
        f"{RULES}/reorder", json={"ids": [ids["three"], ids["one"], default, ids["two"]]}
    )
    assert [rule["name"] for rule in answer.json()["rules"]] == [
        "three",
        "one",
        "Competitive",
        "two",
    ]
    assert answer.json()["rules"][2]["priority"] == 1000
    short = await seller.post(f"{RULES}/reorder", json={"ids": [ids["one"]]})
    assert (short.status_code, short.json()["code"]) == (422, "invalid_rule")


async def test_a_preset_takes_the_place_of_the_one_before(a_seller):
    seller = await a_seller()
    for preset, name in (
        ("premium", "Premium"),
        ("move", "Sell-through"),
        ("buy-box", "Lowest price"),
        ("competitive", "Competitive"),
    ):
        answer = await seller.post(f"/api/pricing/presets/{preset}")
        assert (answer.status_code, answer.json()["priority"], answer.json()["state"]) == (
            200,
            1000,
            "published",
        )
        assert await names(seller) == [name]
    assert (await seller.post("/api/pricing/presets/greedy")).status_code == 404


async def test_two_publishers_at_once_never_share_a_priority(a_seller):
    seller = await a_seller()
    answers = await asyncio.gather(
        *(seller.post(RULES, json={"name": f"rule {n}", "state": "published"}) for n in range(6))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["priority"] for answer in answers}) == 6
    same = await asyncio.gather(
        *(seller.post(RULES, json={"name": f"rule {n}", "priority": 500}) for n in range(4))
    )
    assert sorted(answer.status_code for answer in same) == [201, 422, 422, 422]


async def test_settings_are_read_and_changed(a_seller):
    seller = await a_seller()
    assert (await seller.get(SETTINGS)).json() == {
        "direct_minimum": "0.40", "direct_program": False, "default_rule_enabled": True,
        "minimum_move": "0.01", "minimum_cap_step": "0.05",
        "review_up_bp": None, "review_down_bp": None, "review_first_price": False,
        "attribution_logging": True, "max_age_hours": 168, "fee_level": "1-4",
        "hard_floor": None, "repricing_scope": "all_games", "shipping_adder": None,
        "recommendations": "review",
    }  # fmt: skip
    changed = {
        "direct_minimum": "0.50",
        "fee_level": "pro",
        "max_age_hours": 24,
        "default_rule_enabled": False,
    }
    answer = await seller.http.patch(SETTINGS, json=changed)
    assert answer.status_code == 200, answer.text
    assert changed.items() <= answer.json().items()
    for wrong in (
        {"fee_level": "5"},
        {"max_age_hours": 0},
        {"direct_minimum": "-1"},
        {"hard_floor": "0"},
        {"repricing_scope": "some"},
        {"shipping_adder": "-1"},
        {"recommendations": "sometimes"},
        {"nothing": 1},
    ):
        refused = await seller.http.patch(SETTINGS, json=wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_rule")
        assert refused.json()["error"].startswith(next(iter(wrong)))
    assert (await seller.get(SETTINGS)).json() == answer.json()


async def test_a_published_rule_prices_the_next_upload_and_a_draft_does_not(a_seller):
    seller = await a_seller()
    rule = await made(seller, adjust_bp=1000)
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    assert await targets(seller) == ["1.9800"]
    await seller.post(f"{RULES}/{rule['id']}/publish")
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    assert await targets(seller) == ["2.2000"]


async def test_a_sale_reduces_prices_while_it_is_active(a_seller):
    seller = await a_seller()
    sale = await made(seller, SALES, **a_sale(adjust_bp=-5000, floor="0.50"))
    assert (sale["adjust_bp"], sale["floor"], sale["enabled"]) == (-5000, "0.50", True)
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    assert await targets(seller) == ["0.9900"]
    clock.shift(timedelta(days=2))
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    assert await targets(seller) == ["1.9800"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"adjust_bp": 1}, "adjust_bp"),
        ({"adjust_bp": -9001}, "adjust_bp"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({"starts_at": "soon"}, "starts_at"),
        ({"state": "draft"}, "state"),
    ],
)
async def test_what_a_sale_may_not_say_is_refused_by_the_fields_name(a_seller, fields, field):
    code, message = await refused(await a_seller(), SALES, **a_sale(**fields))
    assert (code, message.startswith(field)) == ("invalid_rule", True), message


@pytest.mark.day
async def test_a_pinned_card_keeps_its_price_until_it_is_unpinned(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    pinned = await seller.http.put("/api/pricing/pins/1", json={"price": "7.77"})
    assert (pinned.status_code, pinned.json()) == (200, {"marketplace_id": 1, "price": "7.77"})
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    assert await targets(seller) == ["7.7700"]
    assert (await seller.http.delete("/api/pricing/pins/1")).json() == {"deleted": True}
    assert (await seller.http.delete("/api/pricing/pins/1")).status_code == 404
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    assert await targets(seller) == ["1.9800"]


async def test_a_card_that_is_not_there_cannot_be_pinned_nor_a_price_below_a_cent(a_seller):
    seller = await a_seller()
    assert (await seller.http.put("/api/pricing/pins/1", json={"price": "1.00"})).json()[
        "code"
    ] == "not_found"
    await seller.import_csv(a_csv(a_row(1)))
    for price in ("0.00", "-1", None, "x", "1.005"):
        answer = await seller.http.put("/api/pricing/pins/1", json={"price": price})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_rule")
