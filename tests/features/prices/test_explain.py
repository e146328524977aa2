"""GET /api/v1/pricing/explain/{marketplace_id}, sentence by sentence as the interface has it.

The effect of market evidence on a step is tested in tests/core/test_engine.py: nothing brings any
yet, and this says so.
"""

from __future__ import annotations

import re
from datetime import timedelta

import psycopg
import pytest

from builders import a_csv, a_row, an_order
from cards_builder import explained
from cardsync.access.models import Account
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.prices.engine import engine, missing_evidence
from cardsync.prices.inputs.cards_to_price import read_stock
from cardsync.prices.inputs.market_inputs import INPUTS
from cardsync.prices.inputs.rule_rows import run_of
from world import made

RULES, SALES = "/api/pricing/rules", "/api/pricing/sales"
CAP = {"up_bp": 1500, "down_bp": 1500, "period": "day", "mode": "clamp"}
GATE = {"min_listings": 3, "min_sales_30d": 5, "max_age_hours": 48, "undercut_bp": 100}
STALE = {"after_days": 10, "step_bp": 1000, "every_days": 7, "limit_bp": 4000}


def step_of(told, name):
    [step] = [step for step in told["steps"] if step["name"] == name]
    return step


async def a_sale(seller, name, begins=-1, ends=1, **fields):
    now = clock.now()
    times = {
        "starts_at": clock.rfc3339(now + timedelta(days=begins)),
        "ends_at": clock.rfc3339(now + timedelta(days=ends)),
    }
    answer = await seller.post(SALES, json={"name": name, "adjust_bp": -2000} | times | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.night
async def test_matching_rules_are_live_base_rules_and_active_sales_by_priority_and_expired_sales_are_omitted(
    a_seller,
):
    seller = await a_seller()
    await made(seller, name="second", priority=20)
    await made(seller, name="first", priority=10)
    await made(seller, name="draft", priority=5, state="draft")
    await made(seller, name="off", priority=6, enabled=False)
    await made(seller, name="elsewhere", priority=7, query="market>=100")
    await a_sale(seller, "now", priority=15)
    await a_sale(seller, "over", priority=11, begins=-3, ends=-1)
    await a_sale(seller, "to come", priority=12, begins=1, ends=3)
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="2.00")))
    told = (await explained(seller))["matching_rules"]
    assert [(entry["name"], entry["kind"], entry["outcome"]) for entry in told][:3] == [
        ("first", "base", "governs"),
        ("now", "sale", "applies"),
        ("second", "base", "lost"),
    ]
    assert [entry["priority"] for entry in told] == sorted(entry["priority"] for entry in told)
    assert {entry["name"] for entry in told} & {
        "draft",
        "off",
        "elsewhere",
        "over",
        "to come",
    } == set()


@pytest.mark.night
async def test_the_governing_rule_is_the_winning_permanent_one_never_a_sale(a_seller):
    seller = await a_seller()
    await a_sale(seller, "Sale", priority=1)
    rule = await made(seller, name="Mine", priority=2)
    await seller.import_csv(a_csv(a_row(1)))
    assert (await explained(seller))["governing_rule"] == {
        "id": rule["id"],
        "name": "Mine",
        "priority": 2,
    }
    assert (await seller.post(f"{RULES}/{rule['id']}/disable")).status_code == 200
    default = (await explained(seller))["governing_rule"]
    assert default["priority"] == 1000
    await seller.http.patch("/api/pricing/settings", json={"default_rule_enabled": False})
    assert (await explained(seller))["governing_rule"] is None


@pytest.mark.night
async def test_blockers_are_diagnostic(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="", low=""), a_row(2)))
    told = await explained(seller)
    assert [blocker["code"] for blocker in told["blockers"]] == ["no_usable_reference"]
    assert all(blocker["message"].endswith(".") for blocker in told["blockers"])
    assert (await explained(seller, 2))["blockers"] == []
    await seller.set(automatic_pricing_paused=True)
    assert [blocker["code"] for blocker in (await explained(seller, 2))["blockers"]] == [
        "automatic_pricing_paused"
    ]


@pytest.mark.night
async def test_historical_breakdown_has_ordered_steps_inputs_and_whether_it_is_the_live_target(
    a_seller,
):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    told = await explained(seller)
    receipt = told["historical_breakdown"]
    assert [step["name"] for step in receipt["steps"]] == [step["name"] for step in told["steps"]]
    assert (receipt["inputs"]["market"], receipt["reflects_current_price"]) == ("2.00", True)
    await seller.service.sql(
        seller.id, "UPDATE card SET target_price = 9 WHERE seller_id = :id", id=seller.id
    )
    assert (await explained(seller))["historical_breakdown"]["reflects_current_price"] is False


@pytest.mark.night
async def test_keys_are_snake_case(a_seller):
    seller = await a_seller()
    await a_sale(seller, "Sale")
    await made(seller, cap=CAP, stale=STALE, market_gate=GATE)
    await seller.import_csv(a_csv(a_row(1)))

    def keys(thing):
        if isinstance(thing, dict):
            return set(thing) | set().union(*map(keys, thing.values()))
        return set().union(*map(keys, thing)) if isinstance(thing, list) else set()

    found = keys(await explained(seller))
    assert len(found) > 60
    assert [key for key in found if not re.fullmatch(r"[a-z][a-z0-9_]*", key)] == []


@pytest.mark.night
async def test_an_on_demand_run_leaves_no_receipt_of_its_own(a_seller):
    seller = await a_seller(attribution_logging=False)
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    await seller.http.patch("/api/pricing/settings", json={"attribution_logging": True})
    await made(seller, adjust_bp=1000)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()
    told = await explained(seller)
    assert (told["target_price"], told["historical_breakdown"]) == ("2.20", None)


@pytest.mark.night
async def test_an_absent_receipt_does_not_prove_that_there_is_no_cap_history(a_seller):
    seller = await a_seller(capped=True, attribution_logging=False)
    await seller.import_csv(a_csv(a_row(1, market="9.00", price="1.00")))
    told = await explained(seller)
    cap = step_of(told, "cap")
    assert (told["historical_breakdown"], cap["seller_limit"], cap["period_start_price"]) == (
        None,
        "1.15",
        "1.00",
    )


@pytest.mark.night
async def test_the_path_names_the_sellers_sku_and_not_the_inventory_row(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(987_654_321)))
    told = await explained(seller, 987_654_321)
    assert told["marketplace_id"] == 987_654_321
    assert (await seller.get(f"/api/v1/pricing/explain/{told['card']['id']}")).status_code == 404


@pytest.mark.night
async def test_a_cap_step_names_the_formulas_target_both_references_and_the_sellers_limit(a_seller):
    seller = await a_seller()
    await made(seller, cap=CAP, adjust_bp=1000)
    await seller.import_csv(a_csv(a_row(1, market="3.00", price="1.00")))
    names = ("formula_target", "period_start_price", "current_reference", "seller_limit")
    cap = step_of(await explained(seller), "cap")
    assert [cap[name] for name in names] == ["3.30", "1.00", "1.00", "1.15"]
    # The day's second upload shows another current price; the day began with the first.
    await seller.import_csv(a_csv(a_row(1, market="3.00", price="1.10")))
    cap = step_of(await explained(seller), "cap")
    assert [cap[name] for name in names] == ["3.30", "1.00", "1.10", "1.15"]
    assert step_of((await explained(seller))["historical_breakdown"], "cap") == cap


@pytest.mark.night
async def test_a_temporary_sale_applies_after_the_cap(a_seller):
    seller = await a_seller()
    await made(seller, cap=CAP)
    await a_sale(seller, "Sale")
    await seller.import_csv(a_csv(a_row(1, market="9.00", price="1.00")))
    told = await explained(seller)
    assert (step_of(told, "cap")["output"], step_of(told, "sale")["input"]) == ("1.15", "1.15")
    assert (step_of(told, "sale")["output"], told["target_price"]) == ("0.92", "0.92")


async def test_the_direct_minimum_and_the_fee_gap_raise_a_capped_result(a_seller):
    seller = await a_seller(direct_program=True)
    await made(seller, cap=CAP, fee_gap_adjustment=True)
    await seller.import_csv(
        a_csv(
            a_row(1, market="0.90", price="0.10", direct="0.50"),
            a_row(2, market="9.00", price="2.20", direct="2.00"),
        )
    )
    told = await explained(seller, 1)
    assert (step_of(told, "cap")["seller_limit"], step_of(told, "direct_minimum")["output"]) == (
        "0.15",
        "0.40",
    )
    assert told["target_price"] == "0.40"
    told = await explained(seller, 2)
    gap = step_of(told, "fee_gap")
    assert step_of(told, "cap")["output"] == gap["input"] == "2.53"
    assert float(gap["output"]) > 2.53
    assert float(gap["net_after"]) >= float(gap["net_before"])
    assert told["target_price"] == gap["output"]


@pytest.mark.night
@pytest.mark.parametrize(("boost", "target"), [(True, "2.50"), (False, "2.25")])
async def test_velocity_boost_protects_recent_movers_from_stale_reduction_and_adds_no_markup(
    a_seller, boost, target
):
    seller = await a_seller()
    await made(seller, stale=STALE, velocity_boost_enabled=boost)
    times = [clock.rfc3339(clock.now() - timedelta(days=days)) for days in (12, 1)]
    for market, at in zip(("2.00", "2.50"), times, strict=True):
        await seller.import_csv(
            a_csv(a_row(1, market=market, price="2.00")), **{"X-Exported-At": at}
        )
    told = await explained(seller)
    assert step_of(told, "stale_reduction")["spared"] is boost
    assert (step_of(told, "stale_reduction")["input"], told["target_price"]) == ("2.50", target)


@pytest.mark.night
async def test_a_gate_step_carries_the_times_of_listings_sales_and_market_and_no_price_without_evidence(
    a_seller,
):
    seller = await a_seller()
    await made(seller, market_gate=GATE)
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    gate = step_of(await explained(seller), "market_gate")
    assert {"listings_observed_at", "sales_observed_at", "market_observed_at"} <= gate.keys()
    assert gate["market_observed_at"] is not None
    assert (gate["listings_observed_at"], gate["sales_observed_at"], gate["aggressive_price"]) == (
        None,
        None,
        None,
    )
    assert gate["summary"] == "2.00 stays: there is no known listing to undercut."


@pytest.mark.night
async def test_where_the_market_is_stale_the_aggressive_price_is_null(a_seller):
    seller = await a_seller()
    await made(seller, market_gate=GATE | {"max_age_hours": 1})
    at = clock.rfc3339(clock.now() - timedelta(hours=3))
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")), **{"X-Exported-At": at})
    gate = step_of(await explained(seller), "market_gate")
    assert (gate["aggressive_price"], gate["verdict"]) == (None, "market_stale")


@pytest.mark.night
async def test_where_a_sales_anchor_fails_the_step_names_the_source_used_and_why_sales_were_not(
    a_seller,
):
    seller = await a_seller()
    await made(seller, price_source="sales_anchor", fallback_sources=["low"])
    await seller.import_csv(a_csv(a_row(1, low="3.00", price="1.00")))
    source = step_of(await explained(seller), "price_source")
    assert (source["source"], source["output"]) == ("low", "3.00")
    assert source["unused_sources"] == [{"source": "sales_anchor", "reason": "absent"}]
    assert (
        source["summary"]
        == "The starting price is the lowest listing, 3.00, because no recent sales are known."
    )


async def test_whoever_asks_for_evidence_that_nobody_gathers_is_told_when_the_rule_is_written_and_previewed(
    a_seller, owner_url
):
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        connection.execute("DELETE FROM market_look")
        connection.execute("DELETE FROM network_cell")
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    rule = await made(seller, name="Anchored", price_source="sales_anchor", market_gate=GATE)
    assert rule["warnings"] == [missing_evidence.NO_SALES, missing_evidence.NO_LISTINGS]
    preview = (await seller.post("/api/pricing/preview", json={})).json()
    assert preview["warnings"] == [f"rule “Anchored”: {said}" for said in rule["warnings"]]
    plain = (await seller.post("/api/pricing/preview", json={"rules": [{"name": "Plain"}]})).json()
    assert plain["warnings"] == []


@pytest.mark.day
async def test_every_input_of_the_engine_is_fed_from_what_is_stored_or_told_as_unknown(a_seller):
    """An input that nothing feeds and that is not reported missing would fall back in silence."""
    seller = await a_seller()
    cap = CAP | {"period": "week"}
    await made(
        seller,
        name="week",
        priority=1,
        query="market>=1",
        cap=cap,
        stale=STALE,
        market_gate=GATE,
        price_source="sales_anchor",
        floor_cost_bp=2_000,
    )
    await made(
        seller,
        name="day",
        priority=2,
        query="market>=0",
        cap=CAP,
        price_source="current",
    )
    scope = {"repricing_scope": "games_with_rules"}
    assert (await seller.http.patch("/api/pricing/settings", json=scope)).status_code == 200
    times = [clock.rfc3339(clock.now() - timedelta(days=days)) for days in (12, 3, 0)]
    for market, at in zip(("2.00", "2.50", "3.00"), times, strict=True):
        await seller.import_csv(
            a_csv(a_row(1, market=market, price=market, direct="2.00"), a_row(2, price=market)),
            **{"X-Exported-At": at},
        )
    await seller.orders([an_order("A-1", status="Completed")])
    await seller.items(
        [{"order_number": "A-1", "sku_id": 1, "quantity": 1, "product_name": "Card 1"}]
    )
    await seller.http.put("/api/pricing/pins/2", json={"price": "5.00"})
    lot = {"marketplace_id": 1, "quantity": 1, "cost": "0.40"}
    assert (await seller.post("/api/buying/lots", json={"lots": [lot]})).status_code == 201
    await seller.service.run_jobs()
    async with seller.service.database.tenant(seller.id, snapshot=True) as session:
        account = await session.get_one(Account, seller.id)
        stock = await read_stock(session, account, await run_of(session, account, clock.now()))
    fed = {
        name for name in stock.cards.columns if stock.cards[name].null_count() < stock.cards.height
    }
    # No step reads these; an explanation takes them from the card itself.
    unread = {"condition", "printing", "language", "stamped"}
    assert engine.INPUT_COLUMNS.keys() - fed - unread == {*INPUTS, "approved_price"}
