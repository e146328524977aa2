"""Runs over the stored cards: rules with queries, on demand, in slabs, stopped for a look; the
analyser; the explanation.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from builders import a_csv, a_row
from cards_builder import a_list, card_ids, explained, found
from cardsync.platform import clock
from world import made, targets

RULES = "/api/pricing/rules"


async def repriced(seller):
    answer = await seller.post("/api/pricing/reprice")
    assert answer.status_code == 202, answer.text
    await seller.service.run_jobs()
    await seller.fingerprint_is_right()
    run = await seller.get(f"/api/pricing/runs/{answer.json()['run_id']}")
    assert run.status_code == 200
    return run.json()


@pytest.mark.night
async def test_a_published_rule_prices_the_stored_cards_on_demand(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, market="2.00", price="1.00"), a_row(2, market="1.00", price="1.00"))
    )
    rule = await made(seller, adjust_bp=1000)
    run = await repriced(seller)
    shown = ("trigger", "state", "cards", "priced", "changed", "held", "blocked")
    assert {name: run[name] for name in shown} == {
        "trigger": "manual", "state": "completed", "cards": 2, "priced": 2, "changed": 2, "held": 0,
        "blocked": {},
    }  # fmt: skip
    assert await targets(seller) == {1: "2.2000", 2: "1.1000"}
    changes = await seller.service.sql(
        seller.id, "SELECT * FROM price_change WHERE run_id = :run ORDER BY card_id", run=run["id"]
    )
    assert [(str(c["old_price"]), str(c["new_price"]), c["rule_id"]) for c in changes] == [
        ("1.0000", "2.2000", rule["id"]), ("1.0000", "1.1000", rule["id"]),
    ]  # fmt: skip
    again = await repriced(seller)
    assert (again["state"], again["changed"]) == ("completed", 0)
    assert [run["id"] for run in (await seller.get("/api/pricing/runs")).json()["runs"]][:2] == [
        again["id"],
        run["id"],
    ]


async def test_the_first_rule_whose_query_selects_a_card_governs_it(a_seller):
    seller = await a_seller()
    await made(seller, name="dear", priority=1, query="market>=5", adjust_bp=1000)
    await made(seller, name="second", priority=2, query='"Card 2"', adjust_bp=2000)
    await seller.import_csv(
        a_csv(
            *(
                a_row(n, market=m, price="4.00")
                for n, m in ((1, "5.00"), (2, "5.00"), (3, "3.00"), (4, "3.00"))
            )
        )
    )
    assert await targets(seller) == {1: "5.5000", 2: "5.5000", 3: "4.0000", 4: "4.0000"}
    await seller.import_csv(a_csv(*(a_row(n, market="4.50", price="4.00") for n in (1, 2, 3, 4))))
    assert await targets(seller) == {1: "4.4600", 2: "5.4000", 3: "4.4600", 4: "4.4600"}


async def test_a_sale_applies_to_what_its_query_selects(a_seller):
    seller = await a_seller()
    now = clock.now()
    times = {
        "starts_at": clock.rfc3339(now - timedelta(days=1)),
        "ends_at": clock.rfc3339(now + timedelta(days=1)),
    }
    sale = {"name": "Sale", "adjust_bp": -5000, "query": "market>=5"} | times
    assert (await seller.post("/api/pricing/sales", json=sale)).status_code == 201
    await seller.import_csv(
        a_csv(a_row(1, market="5.00", price="4.00"), a_row(2, market="4.00", price="4.00"))
    )
    assert await targets(seller) == {1: "2.4800", 2: "4.0000"}
    told = await explained(seller, 1)
    assert [(entry["kind"], entry["outcome"]) for entry in told["matching_rules"]] == [
        ("sale", "applies"),
        ("base", "governs"),
    ]


async def test_a_rule_whose_query_rots_blocks_what_no_earlier_rule_governs(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, market="5.00", price="4.00"), a_row(2, market="2.00", price="1.00"))
    )
    await made(seller, priority=1, query="market>=5")
    rotten = await made(seller, priority=2, query="market>=1")
    await seller.service.sql(
        seller.id, "UPDATE pricing_rule SET query = 'prise>1' WHERE id = :id", id=rotten["id"]
    )
    run = await repriced(seller)
    assert (await targets(seller), run["blocked"]) == ({1: "5.0000", 2: None}, {"rule_broken": 1})
    assert (await explained(seller, 2))["blockers"] == [
        {
            "code": "rule_broken",
            "message": "The search of a rule that might match it doesn't work.",
        }
    ]
    assert (await seller.get(f"{RULES}/{rotten['id']}")).json()["warnings"]
    assert (await seller.post(f"{RULES}/{rotten['id']}/disable")).status_code == 200


async def test_a_rule_whose_list_is_gone_is_switched_off_with_the_whole_rule_sent_back_but_not_published(
    a_seller,
):
    seller = await a_seller()
    rotten = await made(seller, priority=2, query="market>=1")
    await seller.service.sql(
        seller.id, "UPDATE pricing_rule SET query = 'prise>1' WHERE id = :id", id=rotten["id"]
    )
    path = f"{RULES}/{rotten['id']}"
    told = (await seller.get(path)).json()
    off = await seller.http.patch(path, json=told | {"enabled": False})
    assert (off.status_code, off.json()["enabled"]) == (200, False)
    draft = await seller.http.patch(path, json={"state": "draft"})
    assert (draft.status_code, draft.json()["state"]) == (200, "draft")
    assert (await seller.post(f"{path}/publish")).json()["code"] == "invalid_query"


async def test_large_moves_wait_for_the_sellers_word(a_seller):
    seller = await a_seller()
    rows = [a_row(n, market="1.00", price="1.00") for n in range(1, 61)]
    await seller.import_csv(a_csv(*rows))
    before = await targets(seller)
    await made(seller, adjust_bp=9000)
    run = await repriced(seller)
    assert (run["state"], await targets(seller)) == ("awaiting_review", before)
    waiting = {"code": "awaiting_review", "message": "The run needs your review."}
    assert (await explained(seller))["blockers"] == [waiting]
    # A read_only seller looks at the file anyway.
    await seller.set(sync_mode="read_only")
    assert (await explained(seller))["blockers"] == []
    await seller.set(sync_mode="full")
    assert (await seller.post(f"/api/pricing/runs/{run['id']}/confirm")).status_code == 200
    await seller.service.run_jobs()
    assert (await seller.get(f"/api/pricing/runs/{run['id']}")).json()["state"] == "completed"
    assert set((await targets(seller)).values()) == {"1.9000"}
    assert (await explained(seller))["blockers"] == []
    assert (await seller.post(f"/api/pricing/runs/{run['id']}/discard")).json()[
        "code"
    ] == "not_awaiting_review"


async def test_two_requests_at_once_are_one_run(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    answers = await asyncio.gather(*(seller.post("/api/pricing/reprice") for _ in range(4)))
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    await seller.service.run_jobs()
    assert (await seller.get("/api/pricing/runs")).json()["runs"][0]["state"] == "completed"


async def test_while_another_writes_prices_nothing_is_begun(a_seller):
    seller = await a_seller()
    await seller.hold_lease("rollback")
    answer = await seller.post("/api/pricing/reprice")
    assert (answer.status_code, answer.json()["status"]) == (409, "mutex_held")


@pytest.mark.day
async def test_a_run_whose_job_was_lost_is_found_by_the_sweep(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    await made(seller, adjust_bp=1000)
    run_id = (await seller.post("/api/pricing/reprice")).json()["run_id"]
    async with seller.service.database.shared() as session:
        await session.execute(
            text("DELETE FROM procrastinate_jobs WHERE task_name = 'pricing.reprice'")
        )
    clock.shift(timedelta(minutes=10))
    await seller.sweep()
    await seller.service.run_jobs()
    assert (await seller.get(f"/api/pricing/runs/{run_id}")).json()["state"] == "completed"
    assert await targets(seller) == {1: "2.2000"}


async def test_the_analyser_says_which_rules_never_match_and_who_shadows_whom(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(a_row(1, market="5.00"), a_row(2, market="6.00"), a_row(3, market="1.00"))
    )
    dear = await made(seller, priority=1, query="market>=5")
    dearer = await made(seller, priority=2, query="market>=6")
    never = await made(seller, priority=3, query="market>=100")
    broken = await made(seller, priority=1001, query="market>=1")
    await seller.service.sql(
        seller.id, "UPDATE pricing_rule SET query = 'prise>1' WHERE id = :id", id=broken["id"]
    )
    found = (await seller.get(f"{RULES}/analysis")).json()
    by_id = {entry["id"]: entry for entry in found["rules"]}
    default = next(
        id for id in by_id if id not in {rule["id"] for rule in (dear, dearer, never, broken)}
    )
    assert found["unmatched"] == 0
    assert [
        (by_id[rule["id"]]["selects"], by_id[rule["id"]]["governs"])
        for rule in (dear, dearer, never)
    ] == [
        (2, 2),
        (1, 0),
        (0, 0),
    ]
    assert by_id[dearer["id"]]["shadowed_by"] == [dear["id"]]
    assert by_id[never["id"]]["never_matches"] is True
    assert by_id[broken["id"]]["broken"] is True
    assert (by_id[default]["selects"], by_id[default]["governs"]) == (3, 1)
    assert {"id": dear["id"], "cards": 1} in by_id[dearer["id"]]["overlaps"]


async def test_a_draft_is_shadowed_by_earlier_rules_alone(a_seller):
    """A later rule governs its cards as long as it is a draft, which says nothing of what it
    would select.
    """
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="5.00"), a_row(2, market="6.00")))
    draft = await made(seller, priority=5, query="market>=5", state="draft")
    live = await made(seller, priority=6, query="market>=5")
    behind = await made(seller, priority=7, query="market>=6", state="draft")
    off = await made(seller, priority=8, query="market>=6", enabled=False)
    found = {
        entry["id"]: entry for entry in (await seller.get(f"{RULES}/analysis")).json()["rules"]
    }
    shadows = {
        id: found[id]["shadowed_by"] for id in (draft["id"], live["id"], behind["id"], off["id"])
    }
    assert shadows == {
        draft["id"]: [],
        live["id"]: [],
        behind["id"]: [live["id"]],
        off["id"]: [live["id"]],
    }
    assert (found[draft["id"]]["governs"], found[live["id"]]["governs"]) == (0, 2)


async def test_an_explanation_names_every_step_and_follows_the_price(a_seller):
    seller = await a_seller(capped=True)
    await seller.import_csv(a_csv(a_row(1, market="9.00", price="1.00")))
    told = await explained(seller)
    assert (told["currency"], told["current_price"], told["target_price"]) == (
        "USD",
        "1.00",
        "1.15",
    )
    assert (
        told["card"].items()
        >= {
            "product_name": "Card 1",
            "number": "1",
            "condition": "NM",
            "printing": "Normal",
        }.items()
    )
    assert [step["name"] for step in told["steps"]] == [
        "eligibility", "governing_rule", "price_source", "formula", "market_gate", "undercut",
        "stale_reduction", "bounds", "cap", "sale",
        "direct_minimum", "fee_gap", "rounding", "change",
    ]  # fmt: skip
    assert told["steps"][-1]["output"] == told["target_price"]
    cap = told["steps"][8]
    assert {name: cap[name] for name in ("formula_target", "period_start_price",
                                         "current_reference", "seller_limit", "mode")} == {
        "formula_target": "8.91", "period_start_price": "1.00", "current_reference": "1.00",
        "seller_limit": "1.15", "mode": "clamp",
    }  # fmt: skip
    assert all(step["summary"].endswith(".") for step in told["steps"])
    [governing] = told["matching_rules"]
    assert (governing["kind"], governing["outcome"], told["governing_rule"]["id"]) == (
        "base",
        "governs",
        governing["id"],
    )
    assert told["blockers"] == []
    assert told["inputs"]["market"] == "9.00"


@pytest.mark.parametrize(
    ("row", "code"),
    [({"market": "", "low": ""}, "no_usable_reference"), ({"quantity": 0}, "out_of_stock")],
)
async def test_an_explanation_of_a_blocked_card_says_what_blocks_it(a_seller, row, code):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, **row)))
    told = await explained(seller)
    assert (told["target_price"], code in [blocker["code"] for blocker in told["blockers"]]) == (
        None,
        True,
    )


async def test_a_card_that_is_not_the_callers_has_no_explanation(a_seller):
    seller, other = await a_seller(), await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    answer = await other.get("/api/v1/pricing/explain/1")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_losing_candidates_are_named(a_seller):
    seller = await a_seller()
    first = await made(seller, name="first", priority=1)
    await made(seller, name="idle", priority=2, state="draft")
    await made(seller, name="elsewhere", priority=3, query="market>=100")
    await seller.import_csv(a_csv(a_row(1)))
    told = await explained(seller)
    assert [entry["outcome"] for entry in told["matching_rules"]] == ["governs", "lost"]
    assert told["governing_rule"]["id"] == first["id"]
    assert told["steps"][1]["losing_candidates"] == [told["matching_rules"][1]["id"]]


@pytest.mark.first(1)
@pytest.mark.day
@pytest.mark.parametrize("loss", ["rename", "delete"])
@pytest.mark.parametrize(
    ("query", "before"),
    [
        ('list:"keep"', [1]),
        ('card -list:"keep"', [2, 3]),
        ('-(card list:"keep") or "card 1"', [1, 2, 3]),
        ('-(-list:"keep")', [1]),
    ],
)
async def test_a_rule_or_sale_never_selects_more_because_its_list_is_gone(
    a_seller, query, before, loss
):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, market="5.00", price="5.00") for n in (1, 2, 3))))
    binder = await a_list(seller, "keep", (await card_ids(seller))[1])
    rule = await made(seller, name="Raised", priority=1, query=query, adjust_bp=1000)
    times = {
        "starts_at": clock.now() - timedelta(days=1),
        "ends_at": clock.now() + timedelta(days=1),
    }
    sale = {"name": "Sale", "adjust_bp": -5000, "query": query} | {
        name: clock.rfc3339(at) for name, at in times.items()
    }
    assert (await seller.post("/api/pricing/sales", json=sale)).status_code == 201

    async def selected():
        await repriced(seller)
        assert await found(seller, "rule:Raised") == before
        return [id for id, target in (await targets(seller)).items() if target == "2.7500"]

    assert (await selected(), await warnings_of(seller, rule)) == (before, [])
    path = f"/api/lists/{binder}"
    lost = await (
        seller.http.patch(path, json={"name": "kept"})
        if loss == "rename"
        else seller.http.delete(path)
    )
    assert lost.status_code == 200
    before = []
    assert (await selected(), await warnings_of(seller, rule)) == ([], ["there is no list 'keep'"])


async def warnings_of(seller, rule):
    return (await seller.get(f"{RULES}/{rule['id']}")).json()["warnings"]


@pytest.mark.night
@pytest.mark.parametrize("query", ["rule:Competitive", "-rule:Competitive", "bolt has:photo|rule"])
async def test_a_rule_or_sale_that_asks_for_rules_is_refused_and_a_stored_one_is_broken(
    a_seller, query
):
    seller = await a_seller()
    times = {
        "starts_at": clock.now() - timedelta(days=1),
        "ends_at": clock.now() + timedelta(days=1),
    }
    of_a_sale = {"adjust_bp": -1000} | {name: clock.rfc3339(at) for name, at in times.items()}
    for path, more in ((RULES, {}), ("/api/pricing/sales", of_a_sale)):
        refused = await seller.post(path, json={"name": "Circular", "query": query} | more)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_query"), refused.text
    rule = await made(seller, name="Circular", priority=1, query="bolt")
    await seller.import_csv(a_csv(a_row(1)))
    set_query = "UPDATE pricing_rule SET query = :q WHERE id = :id"
    await seller.service.sql(seller.id, set_query, q=query, id=rule["id"])
    assert (await repriced(seller))["blocked"] == {"rule_broken": 1}
    assert (await found(seller, "has:rule"), await found(seller, "rule:Competitive")) == ([], [])
    assert await warnings_of(seller, rule)
