"""Receipts: a sync writes down each price with its steps, which are shown again forever, and priced
again from the file alone.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from click.testing import CliRunner

from browsers import signed_in
from builders import a_csv, a_row
from cards_builder import explained
from cardsync.cli import program
from cardsync.operations.processes.retention import tidy
from cardsync.platform import clock
from cardsync.prices.receipts import parquet_file

RULES = "/api/pricing/rules"


async def breakdown(seller, marketplace_id=1):
    told = await explained(seller, marketplace_id)
    # There is a receipt, or a reason why there is none.
    assert (told["historical_breakdown"] is None) == (
        told["historical_breakdown_absent"] is not None
    )
    return told["historical_breakdown"]


async def absence(seller, marketplace_id=1):
    assert await breakdown(seller, marketplace_id) is None
    return (await explained(seller, marketplace_id))["historical_breakdown_absent"]["code"]


async def keys(seller):
    rows = await seller.service.sql(
        seller.id,
        "SELECT summary ->> 'receipts' AS key FROM price_run WHERE seller_id = :id ORDER BY id",
        id=seller.id,
    )
    return [row["key"] for row in rows if row["key"]]


async def files(seller):
    return [await seller.service.work.store.read(key) for key in await keys(seller)]


async def test_a_receipt_is_found_by_the_moment_of_a_sale(a_seller):
    seller = await a_seller()
    row = {"price": "1.00", "low": "1.00"}
    await seller.import_csv(a_csv(a_row(1, market="1.10", **row)))
    between = clock.rfc3339(clock.now())
    clock.shift(timedelta(hours=2))
    await seller.import_csv(a_csv(a_row(1, market="1.12", **row)))

    async def asked(at, card=1):
        return await seller.get(f"/api/pricing/receipts/{card}", params={"at": at})

    first = (await asked(between)).json()["historical_breakdown"]
    second = (await asked(clock.rfc3339(clock.now()))).json()["historical_breakdown"]
    assert (first["final_price"], second["final_price"]) == ("1.09", "1.11")
    assert first["steps"][2]["output"] == "1.10"
    before = (await asked("2020-01-01T00:00:00Z")).json()
    assert before["historical_breakdown"] is None
    assert before["historical_breakdown_absent"]["code"] == "no_run_then"
    assert (await asked(between, card=99)).status_code == 404
    refused = await asked("yesterday")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_payload")
    other = await a_seller()
    assert (await other.get("/api/pricing/receipts/1", params={"at": between})).status_code == 404
    # The card's page shows it beside the price of today.
    browser = await signed_in(seller)
    [card] = (await seller.get("/api/cards")).json()["cards"]
    page = (await browser.get(f"/cards/{card['id']}?then={between}")).text
    assert "Why the price <time" in page
    assert re.search(r"set\s+<[^>]+>\$1\.09", page), page[page.index("Why the price <time") :][:600]


async def test_a_sync_leaves_a_receipt_that_describes_the_live_target(a_seller):
    seller = await a_seller(capped=True)
    await seller.import_csv(
        a_csv(a_row(1, market="9.00", price="1.00"), a_row(2, market="", low=""))
    )
    receipt = await breakdown(seller)
    assert (receipt["final_price"], receipt["reflects_current_price"]) == ("1.15", True)
    assert [step["name"] for step in receipt["steps"]][-1] == "change"
    assert receipt["steps"][8]["seller_limit"] == "1.15"
    assert receipt["inputs"]["market"] == "9.00"
    blocked = await breakdown(seller, 2)
    assert (blocked["final_price"], blocked["blockers"], blocked["reflects_current_price"]) == (
        None,
        ["no_usable_reference"],
        True,
    )


async def test_a_receipt_stays_as_it_was_and_says_that_the_target_is_another_now(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    before = await breakdown(seller)
    await seller.post(RULES, json={"name": "Dearer", "state": "published", "adjust_bp": 1000})
    await seller.post("/api/pricing/reprice")
    await seller.service.run_jobs()
    after = await breakdown(seller)
    assert (before["reflects_current_price"], after["reflects_current_price"]) == (True, False)
    assert {name: value for name, value in after.items() if name != "reflects_current_price"} == {
        name: value for name, value in before.items() if name != "reflects_current_price"
    }


@pytest.mark.day
async def test_without_attribution_logging_there_is_no_receipt(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    await seller.http.patch("/api/pricing/settings", json={"attribution_logging": False})
    await seller.import_csv(a_csv(a_row(1, market="3.00", price="1.00")))
    assert await absence(seller) == "not_kept"
    # Receipts of before are not taken for it either once it is logged again, but of an upload
    # that is priced with logging on.
    await seller.http.patch("/api/pricing/settings", json={"attribution_logging": True})
    assert await absence(seller) == "not_kept"
    await seller.import_csv(a_csv(a_row(1, market="3.00", price="1.00")))
    assert (await breakdown(seller))["final_price"] == "2.97"


@pytest.mark.night
async def test_receipts_past_their_time_are_deleted_and_an_explanation_says_so(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00", price="1.00")))
    work = replace(
        seller.service.work,
        settings=seller.service.settings.model_copy(update={"receipt_retention_days": 20}),
    )
    clock.shift(timedelta(days=19))
    await tidy(work)
    assert (await breakdown(seller))["final_price"] == "1.98"
    clock.shift(timedelta(days=2))
    assert (await tidy(work))["receipts"] >= 1
    assert await absence(seller) == "no_longer_kept"
    # The next sync's are new.
    clock.reset()
    await seller.import_csv(a_csv(a_row(1, market="3.00", price="1.00"), a_row(2)))
    await tidy(work)
    assert (await breakdown(seller))["final_price"] == "2.97"


async def test_a_card_that_no_sync_priced_has_no_receipt_and_is_told_why(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1), a_row(2)))
    # The newest sync spoke of one card only; the other's own is older.
    await seller.import_csv(a_csv(a_row(1)))
    assert (await breakdown(seller, 1), await absence(seller, 2)) == (
        await breakdown(seller, 1),
        "not_priced",
    )


async def test_rules_with_queries_leave_receipts_too(a_seller):
    seller = await a_seller()
    await seller.post(
        RULES, json={"name": "Dear", "state": "published", "query": "market>=5", "adjust_bp": 1000}
    )
    await seller.import_csv(a_csv(a_row(1, market="5.00", price="4.00")))
    assert (await breakdown(seller))["final_price"] == "5.50"


async def test_every_file_prices_its_cards_again_to_the_same(a_seller):
    seller = await a_seller(capped=True)
    rows = [a_row(n, market=f"{n}.37", price=f"{n}.00", low=f"{n}.11") for n in range(1, 40)]
    await seller.import_csv(a_csv(*rows))
    await seller.post(
        RULES,
        json={
            "name": "Dear",
            "state": "published",
            "query": "market>=5",
            "adjust_bp": 123,
            "rounding": "x9",
        },
    )
    await seller.import_csv(a_csv(*rows))
    kept = await files(seller)
    assert len(kept) == 2
    assert [parquet_file.replay(data) for data in kept] == [0, 0]


@pytest.mark.day
async def test_the_operator_replays_a_run(a_seller, in_the_environment):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1), a_row(2)))
    run_id = (await seller.get("/api/pricing/runs")).json()["runs"][0]["id"]

    async def replayed(*arguments: object):
        return await asyncio.to_thread(
            CliRunner().invoke, program, ["pricing", "replay", *map(str, arguments)]
        )

    told = await replayed(run_id, "--json")
    assert (told.exit_code, json.loads(told.stdout)) == (
        0,
        {"run_id": run_id, "cards": 2, "differ": 0},
    )
    unknown = await replayed(run_id + 1_000)
    assert (unknown.exit_code, "there is no pricing run" in unknown.output) == (1, True)


@pytest.mark.day
async def test_the_operator_replays_every_run_of_a_seller_that_is_kept(
    a_seller, in_the_environment, monkeypatch
):
    seller = await a_seller()
    for market in ("2.00", "3.00", "4.00"):
        await seller.import_csv(a_csv(a_row(1, market=market, price="1.00"), a_row(2)))
    await seller.service.work.store.delete((await keys(seller))[0])
    command = ["pricing", "replay-all", str(seller.id)]
    told = await asyncio.to_thread(CliRunner().invoke, program, [*command, "--json"])
    assert told.exit_code == 0, told.output
    runs = json.loads(told.stdout)["runs"]
    assert [(run["kept"], run["cards"], run["differ"]) for run in runs] == [
        (False, 0, 0),
        (True, 2, 0),
        (True, 2, 0),
    ]
    monkeypatch.setattr(parquet_file, "replay", lambda data: 1)
    told = await asyncio.to_thread(CliRunner().invoke, program, command)
    assert (told.exit_code, "no longer kept" in told.stdout, "1 of 2 cards" in told.stdout) == (
        1,
        True,
        True,
    )


@pytest.mark.day
async def test_a_receipt_names_the_rules_with_queries_that_lost(a_seller):
    seller = await a_seller()
    asked = {
        "dear": "market>=5",
        "any foil": "is:foil",
        "nearly all": "market>=1",
        "drafts": "market>=2",
    }
    ids = {}
    for name, query in asked.items():
        state = "draft" if name == "drafts" else "published"
        made = await seller.post(RULES, json={"name": name, "query": query, "state": state})
        ids[name] = made.json()["id"]
    default = (await seller.get(RULES)).json()["rules"][-1]["id"]
    await seller.import_csv(
        a_csv(a_row(1, market="9.00"), a_row(2, market="2.00"), a_row(3, market="0.50"))
    )
    await seller.service.run_jobs()
    lost = {id: (await breakdown(seller, id))["steps"][1]["losing_candidates"] for id in (1, 2, 3)}
    assert lost == {1: [ids["nearly all"], default], 2: [default], 3: []}
    # Forever: whatever happens to the rules.
    assert (await seller.http.delete(f"{RULES}/{ids['nearly all']}")).status_code == 200
    assert (await breakdown(seller))["steps"][1]["losing_candidates"] == [
        ids["nearly all"],
        default,
    ]
    assert [parquet_file.replay(file) for file in await files(seller)] == [0]
