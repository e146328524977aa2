"""A preview of one rule while it is written: what it would do beside the live rules."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from browsers import joined, signed_in
from builders import a_csv, a_row, a_shop
from cardsync.platform import clock, errors
from cardsync.web.abandoned import while_there

DRAFT = "/api/pricing/preview/draft"
RULES = "/api/pricing/rules"


@pytest.fixture
async def seller(a_seller):
    return await a_shop(
        a_seller,
        a_row(1, market="2.00", price="1.00", quantity=3),
        a_row(2, market="0.50", price="1.00"),
        a_row(3, market="30.00", price="25.00"),
    )


async def drafted(seller, rule_id=None, **rule):
    body = {"rule": rule} | ({} if rule_id is None else {"rule_id": rule_id})
    answer = await seller.post(DRAFT, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def published(seller, **fields):
    body = {"name": "Mine", "state": "published"} | fields
    answer = await seller.post(RULES, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_draft_has_the_counts_that_the_preview_of_all_its_cards_has(seller):
    told = await drafted(seller, query="price<20", adjust_bp=0)
    rules = (await seller.get(RULES)).json()["rules"]
    same = {"rules": [{"query": "price<20", "adjust_bp": 0}, *rules], "search": "price<20"}
    whole = (await seller.post("/api/pricing/preview", json=same)).json()
    for name in (
        "cards", "up", "down", "unchanged", "held", "blocked", "listed_value_before",
        "listed_value_after", "histogram",
    ):  # fmt: skip
        assert told[name] == whole[name], name
    assert (told["selects"], told["governs"], told["never_matches"]) == (2, 2, False)
    assert (told["up"], told["down"]) == (1, 1)
    assert [move["marketplace_id"] for move in told["largest"]] == [1, 2]
    assert told["shadowed_by"] == []


async def test_a_draft_that_matches_nothing_or_is_shadowed_says_so(seller):
    never = await drafted(seller, query="price>1000")
    assert (never["selects"], never["never_matches"], never["shadowed_by"]) == (0, True, [])
    first = await published(seller, priority=1, query="price>20")
    shadowed = await drafted(seller, query="price>10")
    assert (shadowed["selects"], shadowed["governs"]) == (1, 0)
    assert shadowed["shadowed_by"] == [first["id"]]
    second = await published(seller, priority=2, query="price<20")
    both = await drafted(seller, query="price>0")
    assert (both["selects"], both["shadowed_by"]) == (3, [first["id"], second["id"]])


async def test_a_saved_rule_is_changed_and_what_it_leaves_is_seen(seller):
    rule = await published(seller, priority=5, query="price>20", adjust_bp=-5000)
    told = await drafted(seller, rule["id"], query="price<20")
    assert (told["cards"], told["selects"], told["governs"]) == (3, 2, 2)
    same = await drafted(seller, rule["id"])
    assert (same["cards"], same["selects"], same["governs"], same["down"]) == (1, 1, 1, 1)
    assert same["largest"][0]["target_price"] == "15.00"
    stored = (await seller.get(f"{RULES}/{rule['id']}")).json()
    assert stored["query"] == "price>20"


async def test_what_is_no_rule_is_refused_in_words(seller):
    for body, status, told in (
        ({}, 422, "rule: is missing; it must be an object"),
        ({"rule": 1}, 422, "rule: must be an object"),
        ({"rule": {}, "sample": "yes"}, 422, "sample: must be true or false"),
        ({"rule": {"colour": 1}}, 422, "rule.colour: is not a field"),
        ({"rule": {"query": "price>"}}, 422, "rule.query: "),
        ({"rule": {}, "rule_id": 999}, 404, "there is no rule 999"),
    ):
        answer = await seller.post(DRAFT, json=body)
        assert answer.status_code == status, answer.text
        assert told in answer.json()["error"]
    staff = await joined(seller, f"staff-{seller.email}")
    assert (await staff.post(DRAFT, json={"rule": {}})).json()["code"] == "owner_required"


async def test_work_for_a_caller_who_left_stops_in_the_database_too(seller):
    database = seller.service.database
    begun = asyncio.Event()

    async def work():
        async with database.tenant(seller.id) as session:
            begun.set()
            await session.execute(text("SELECT pg_sleep(60)"))

    async def receive():
        await begun.wait()
        await asyncio.sleep(0.1)
        return {"type": "http.disconnect"}

    started = clock.monotonic()
    with pytest.raises(errors.BadRequest, match="the caller left"):
        await while_there(receive, work())
    assert clock.monotonic() - started < 20
    running = await seller.service.sql(
        seller.id,
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(60)%'",
    )
    assert running == [{"count": 0}]


async def test_work_that_ends_first_is_answered_and_its_error_told():
    async def forever():
        await asyncio.Event().wait()

    async def answer():
        return 7

    async def fail():
        raise errors.NotFound("nothing")

    assert await while_there(forever, answer()) == 7
    with pytest.raises(errors.NotFound):
        await while_there(forever, fail())


async def test_a_sample_of_many_cards_says_that_it_is_one_and_the_exact_answer_follows(
    a_seller, monkeypatch
):
    monkeypatch.setattr("cardsync.prices.preview.draft.FEW", 0)
    monkeypatch.setattr("cardsync.prices.preview.draft.ONE_IN", 2)
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n, market="2.00", price="1.00") for n in range(1, 65))))
    rule = {"price_source": "market", "query": "price>0"}
    path = "/api/pricing/preview/draft"
    exact = (await seller.post(path, json={"rule": rule})).json()
    about = (await seller.post(path, json={"rule": rule, "sample": True})).json()
    assert (exact["one_in"], exact["selects"], exact["up"]) == (1, 64, 64)
    assert (about["one_in"], about["selects"], about["up"]) == (2, 64, 64)
    assert about["listed_value_before"] == exact["listed_value_before"]
    assert sum(one["count"] for one in about["histogram"]) == 64
    owner = await signed_in(seller)
    form = {"csrf_token": owner.session["csrf_token"], "name": "Mine", "query": "price>0"}
    form |= {"price_source": "market", "face": "form", "rounding": "cent"}
    part = await owner.http.post("/pricing/draft?sample=1", data=form)
    assert part.status_code == 200, part.text
    assert "from one card in every 2" in part.text
    assert 'data-hx-post="/pricing/draft"' in part.text
    assert "from one card in" not in (await owner.http.post("/pricing/draft", data=form)).text
