"""Previews: what rules would ask, counted and listed, without a single write."""

from __future__ import annotations

import asyncio
import io

import polars as pl
import pytest
from sqlalchemy import text

from builders import a_csv, a_row, read_csv
from cardsync.prices.inputs.rule_file import read_rules, read_sales

PREVIEW = "/api/pricing/preview"
ROWS = [
    a_row(1, market="2.00", price="1.00", quantity=3),
    a_row(2, market="0.50", price="1.00"),
    a_row(3, market="1.00", price="1.00"),
    a_row(4, market="", low="", price="1.00"),
]
AT_MARKET = {"rules": [{"adjust_bp": 0}]}


async def previewed(seller, **body):
    answer = await seller.post(PREVIEW, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def a_stocked(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*ROWS))
    return seller


@pytest.mark.night
async def test_a_preview_counts_moves_and_names_the_largest(a_seller):
    seller = await a_stocked(a_seller)
    found = await previewed(seller, **AT_MARKET)
    counts = {name: found[name] for name in ("cards", "up", "down", "unchanged", "held", "blocked")}
    assert counts == {
        "cards": 4,
        "up": 1,
        "down": 1,
        "unchanged": 1,
        "held": 0,
        "blocked": {"no_usable_reference": 1},
    }
    assert (found["listed_value_before"], found["listed_value_after"]) == ("6.00", "8.50")
    assert [(move["marketplace_id"], move["product_name"], move["current_price"],
             move["target_price"]) for move in found["largest"]] == [
        (1, "Card 1", "1.00", "2.00"), (2, "Card 2", "1.00", "0.50"),
    ]  # fmt: skip
    assert all(move["reason"].endswith(".") for move in found["largest"])
    assert {
        (entry["from_bp"], entry["count"]) for entry in found["histogram"] if entry["count"]
    } == {
        (10_000, 1),
        (-5_000, 1),
    }


@pytest.mark.night
async def test_nothing_is_written(a_seller):
    seller = await a_stocked(a_seller)
    before = await seller.cards(), await seller.service.sql(seller.id, "SELECT * FROM price_run")
    await previewed(seller, **AT_MARKET)
    assert (
        await seller.cards(),
        await seller.service.sql(seller.id, "SELECT * FROM price_run"),
    ) == before


async def test_the_lease_is_held_only_as_long_as_it_reads(a_seller):
    seller = await a_stocked(a_seller)
    async with seller.service.database.shared() as blocker:
        await blocker.execute(text("LOCK TABLE pricing_rule IN ACCESS EXCLUSIVE MODE"))
        reading = asyncio.create_task(previewed(seller, **AT_MARKET))
        async with asyncio.timeout(60):
            while await holder(seller) is None:
                assert not reading.done()
        assert await holder(seller) == "preview"
        assert (await seller.post("/api/pricing/reprice")).status_code == 409
    assert (await reading)["up"] == 1
    assert await holder(seller) is None
    refused = await seller.post(PREVIEW, json={"rules": [{"adjust": 1}]})
    assert (refused.status_code, await holder(seller)) == (422, None)


@pytest.mark.night
@pytest.mark.parametrize("other", ["sync", "rollback", "preview"])
async def test_what_holds_the_lease_is_not_disturbed(a_seller, other):
    seller = await a_stocked(a_seller)
    await seller.hold_lease(other)
    assert (await previewed(seller, **AT_MARKET))["up"] == 1
    assert await holder(seller) == other


async def holder(seller):
    [state] = await seller.service.sql(
        seller.id, "SELECT lease_holder FROM sync_state WHERE seller_id = :id", id=seller.id
    )
    return state["lease_holder"]


@pytest.mark.night
async def test_without_rules_of_its_own_it_is_the_live_ones_with_drafts(a_seller):
    seller = await a_stocked(a_seller)
    assert (await previewed(seller))["up"] == 1
    await seller.post("/api/pricing/rules", json={"name": "draft", "adjust_bp": 1000})
    assert (await previewed(seller))["up"] == 2
    assert (await previewed(seller, rules=[]))["blocked"] == {"no_rule": 4}


@pytest.mark.night
async def test_a_search_narrows_it_and_queries_choose(a_seller):
    seller = await a_stocked(a_seller)
    assert (await previewed(seller, **AT_MARKET, search="market>=1"))["cards"] == 2
    rules = [{"query": "market>=2", "adjust_bp": 1000}, {"query": "market<1", "adjust_bp": 0}]
    found = await previewed(seller, rules=rules)
    assert [move["target_price"] for move in found["largest"]] == ["2.20", "0.50"]
    assert found["blocked"] == {"no_rule": 2}


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"rules": [{}, {"adjust": 1}]}, "invalid_rule", "rules[1].adjust"),
        ({"rules": {}}, "invalid_payload", "rules"),
        ({"rules": [{}, {"query": "prise>1"}]}, "invalid_query", "rules[1].query"),
        (
            {"rules": [{"priority": 3}, {"priority": 3}]},
            "invalid_rule",
            "rules[1].priority: 3 is already used by rules[0]",
        ),
        ({"rules": [{"floor": "9" * 5000}]}, "invalid_rule", "rules[0].floor"),
        ({"search": "prise>1"}, "invalid_query", "search"),
        ({"search": 5}, "invalid_payload", "search"),
        ({"sales": [{"adjust_bp": 5}]}, "invalid_rule", "sales[0]."),
    ],
)
async def test_what_cannot_be_previewed_is_refused(a_seller, body, code, said):
    answer = await (await a_seller()).post(PREVIEW, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["error"].startswith(said)


async def test_a_rule_without_a_priority_is_previewed_where_it_would_be_posted(a_seller):
    """The live rules and a new one behind them, as a form sends them: it stands before the
    default rule and behind all others.
    """
    seller = await a_stocked(a_seller)
    for n, query in enumerate(("market>=2", "market>=1")):
        fields = {"query": query, "adjust_bp": 1000 * (n + 1), "state": "published"}
        assert (
            await seller.post("/api/pricing/rules", json={"name": f"rule {n}"} | fields)
        ).status_code == 201
    live = (await seller.get("/api/pricing/rules")).json()["rules"]
    found = await previewed(seller, rules=[*live, {"name": "new", "adjust_bp": 5000}])
    asked = {move["marketplace_id"]: move["target_price"] for move in found["largest"]}
    assert asked == {1: "2.20", 2: "0.75", 3: "1.20"}


def test_rules_without_a_priority_find_room_before_the_default_rule():
    given = [
        {"name": "a"},
        {"name": "b", "priority": 999},
        {"name": "c"},
        {"name": "d", "priority": 1000},
        {"name": "e"},
    ]
    rules = sorted(
        read_rules([*given, {"name": "f", "priority": 1001}]), key=lambda rule: rule.priority
    )
    assert [rule.name for rule in rules] == ["a", "b", "c", "e", "d", "f"]
    assert [rule.priority for rule in rules] == [1, 2, 3, 4, 1000, 1001]


def test_sales_without_a_priority_stand_behind_all_others():
    times = {
        "adjust_bp": -100,
        "starts_at": "2026-01-01T00:00:00Z",
        "ends_at": "2026-02-01T00:00:00Z",
    }
    sales = read_sales([times, times | {"priority": 10}, times])
    assert [sale.priority for sale in sales] == [11, 10, 12]


async def test_every_card_can_be_downloaded(a_seller):
    seller = await a_stocked(a_seller)
    sheet = await seller.post(f"{PREVIEW}?format=csv", json=AT_MARKET)
    assert sheet.headers["content-type"].startswith("text/csv")
    assert [(row["marketplace_id"], row["target_price"],
             row["blocked"]) for row in read_csv(sheet.content)] == [
        ("1", "2.0000", ""), ("2", "0.5000", ""), ("3", "1.0000", ""),
        ("4", "", "no_usable_reference"),
    ]  # fmt: skip
    table = pl.read_parquet(
        io.BytesIO((await seller.post(f"{PREVIEW}?format=parquet", json=AT_MARKET)).content)
    )
    assert [str(target) for target in table["target_price"].drop_nulls()] == [
        "2.0000",
        "0.5000",
        "1.0000",
    ]
    assert (await seller.post(f"{PREVIEW}?format=xls", json=AT_MARKET)).status_code == 422
