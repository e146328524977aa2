"""Prices beyond the seller's review limits over HTTP: they wait, are explained, accepted, dismissed
and put back, and nothing else of the shop waits with them. Hold-outs keep their cards' prices.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from decimal import Decimal

import pytest

from builders import a_csv, a_row, read_csv
from cards_builder import found
from cardsync.agents.seller_state.exported import NOTHING
from cardsync.platform import clock
from cardsync.prices.receipts import parquet_file

RULES = "/api/pricing/rules"
REVIEWS = "/api/pricing/reviews"
SETTINGS = "/api/pricing/settings"
SALES = "/api/pricing/sales"


async def ruled(seller, **fields):
    rule = {"name": "At market", "state": "published", "priority": 5} | fields
    answer = await seller.post(RULES, json=rule)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def limited(seller, **settings):
    answer = await seller.http.patch(SETTINGS, json=settings)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def imported(seller, *rows, **headers):
    report = await seller.import_csv(a_csv(*rows), **headers)
    await seller.service.run_jobs()
    return report


def card(number=1, market="10.00", price="10.00", **cells):
    return a_row(number, market=market, low=market, price=price, **cells)


async def waiting(seller, **query):
    answer = await seller.get(REVIEWS, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def prices(seller):
    return [
        (one["marketplace_id"], one["reason"], one["current_price"], one["proposed_price"])
        for one in (await waiting(seller))["reviews"]
    ]


async def said(seller, answer, *reviews):
    asked = [{name: one[name] for name in ("marketplace_id", "revision")} for one in reviews]
    return await seller.post(f"{REVIEWS}/{answer}", json={"reviews": asked})


async def exported(seller):
    answer = await seller.export()
    if answer.status_code == 204 or not answer.content:
        return {}
    rows = read_csv(answer.content)
    return {
        int(row["TCGplayer Id"]): f"{Decimal(row['TCG Marketplace Price']):.2f}" for row in rows
    }


async def targets(seller):
    cards = (await seller.get("/api/cards?sort=name")).json()["cards"]
    return {card["marketplace_id"]: card["target_price"] for card in cards}


async def undone(seller, action):
    feed = (await seller.get("/api/v1/agent/activity")).json()
    entry = next(one for one in feed["activity"] if one["action"] == action)
    return await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")


async def rolled_back(seller, run):
    """Roll a run back, and let the agent import the file and report it."""
    answer = await seller.post("/api/pricing/rollbacks", json={"run_id": run})
    assert answer.status_code == 201, answer.text
    await seller.service.run_jobs()
    report = {
        "imported_at": clock.rfc3339(clock.now()),
        "row_count": 1,
        "sync_cycle_id": "c1",
        "file_sha256": hashlib.sha256((await seller.export()).content).hexdigest(),
    }
    answer = await seller.post("/api/v1/repricing_events", json=report)
    assert answer.status_code == 201, answer.text
    await seller.service.run_jobs()


@pytest.fixture
def shop(a_seller):
    """A seller at the market price, with limits of 50 % up and 20 % down."""

    async def made(**fields):
        seller = await a_seller()
        await ruled(seller, **fields)
        await limited(seller, review_up_bp=5_000, review_down_bp=2_000)
        return seller

    return made


async def test_moves_beyond_the_limits_wait_and_all_others_are_exported(shop):
    seller = await shop()
    rows = [
        card(1, "15.00"), card(2, "15.01"), card(3, "8.00"), card(4, "7.99"), card(5, price=""),
    ]  # fmt: skip
    await imported(seller, *rows)
    assert await prices(seller) == [
        (2, "rise", "10.00", "15.01"), (4, "drop", "10.00", "7.99"),
    ]  # fmt: skip
    assert await exported(seller) == {1: "15.00", 3: "8.00", 5: "10.00"}
    run = (await seller.get("/api/pricing/runs")).json()["runs"][0]
    assert (run["reviewed"], run["held"]) == (2, 0)
    told = (await seller.get("/api/v1/pricing/explain/2")).json()
    step = next(one for one in told["steps"] if one["name"] == "review")
    assert (step["input"], step["output"], step["reason"]) == ("15.01", "10.00", "rise")
    assert step["summary"] == (
        "15.01: an increase over your limit of 50% needs approval, so the price stays at 10.00."
    )
    receipt = told["historical_breakdown"]
    assert next(one for one in receipt["steps"] if one["name"] == "review") == step
    preview = (await seller.post("/api/pricing/preview", json={})).json()
    assert (preview["reviewed"], preview["held"], preview["unchanged"]) == (2, 0, 0)


@pytest.mark.night
async def test_a_first_price_waits_if_the_seller_wants_it(shop):
    seller = await shop()
    await limited(seller, review_first_price=True)
    await imported(seller, card(1, price=""))
    assert await prices(seller) == [(1, "first_price", None, "10.00")]
    assert await targets(seller) == {1: None}
    told = (await seller.get("/api/v1/pricing/explain/1")).json()
    assert told["steps"][-2]["summary"] == (
        "10.00 would be the card's first price; it needs your review."
    )
    assert told["steps"][-1]["summary"] == "The card has no price yet."
    [one] = (await waiting(seller))["reviews"]
    assert (await said(seller, "accept", one)).json()["decided"] == 1
    assert await exported(seller) == {1: "10.00"}
    await imported(seller, card(1, price=""))
    assert await exported(seller) == {1: "10.00"}


@pytest.mark.night
async def test_a_rules_own_limits_stand_in_the_place_of_the_sellers(shop):
    seller = await shop()
    own = {"up_bp": None, "down_bp": 0, "first_price": False}
    rule = await ruled(seller, name="Own", priority=1, query="market>=100", review=own)
    assert rule["review"] == own
    await imported(
        seller, card(1, "200.00", "50.00"), card(2, "200.00", "201.00"), card(3, "50.00")
    )
    assert [one[:2] for one in await prices(seller)] == [(3, "rise"), (2, "drop")]
    assert (await exported(seller))[1] == "200.00"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"review": {"up_bp": -1}}, "review.up_bp: must be between 0 and 1000000"),
        ({"review": {"down_bp": 10_001}}, "review.down_bp: must be between 0 and 10000"),
        ({"review": {"sideways": 1}}, "review.sideways: is not a field"),
        ({"holdout_bp": 2_001}, "holdout_bp: must be between 1 and 2000"),
        ({"holdout_bp": 0}, "holdout_bp: must be between 1 and 2000"),
    ],
)
async def test_limits_out_of_their_range_are_refused(a_seller, fields, error):
    seller = await a_seller()
    answer = await seller.post(RULES, json={"name": "x", **fields})
    assert (answer.status_code, answer.json()["error"]) == (422, error)


async def test_an_accepted_price_is_exported_and_later_runs_let_it_pass(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    before = await seller.fingerprint()
    answer = await said(seller, "accept", one)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["decided"], answer.json()["refused"]) == (1, [])
    run = (await seller.get(f"/api/pricing/runs/{answer.json()['run_id']}")).json()
    assert (run["trigger"], run["changed"]) == ("review", 1)
    assert await exported(seller) == {1: "20.00"}
    # It is of this decision: no shop is read through for one price.
    assert await seller.fingerprint() not in (None, before, NOTHING)
    assert await prices(seller) == []
    # The marketplace does not show it yet: a price up to a tenth above passes.
    await imported(seller, card(1, "22.00"))
    assert await exported(seller) == {1: "22.00"}
    told = (await seller.get("/api/v1/pricing/explain/1")).json()
    step = next(one for one in told["steps"] if one["name"] == "review")
    assert step["summary"] == "You approved 20.00, so 22.00 needs no review."
    await imported(seller, card(1, "22.01"))
    assert await prices(seller) == [(1, "rise", "10.00", "22.01")]


@pytest.mark.night
async def test_an_acceptance_is_forgotten_after_thirty_days(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    await said(seller, "accept", one)
    clock.shift(timedelta(days=30, seconds=1))
    await imported(seller, card(1, "20.00"))
    assert await prices(seller) == [(1, "rise", "10.00", "20.00")]


async def test_of_32_callers_for_the_same_price_one_wins(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    answers = await asyncio.gather(
        *(said(seller, "accept" if n % 2 else "dismiss", one) for n in range(32))
    )
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200, *[409] * 31]
    assert {a.json()["code"] for a in answers if a.status_code == 409} == {"revision_conflict"}
    [winner] = [answer for answer in answers if answer.status_code == 200]
    rows = "SELECT count(*) AS n FROM price_change WHERE seller_id = :id"
    [counted] = await seller.service.sql(seller.id, rows, id=seller.id)
    assert counted["n"] == (1 if winner.json()["run_id"] else 0)


@pytest.mark.night
async def test_many_are_decided_together_and_each_refusal_is_told(shop):
    seller = await shop()
    await imported(seller, *(card(n, f"{20 + n}.00") for n in range(1, 5)))
    listed = (await waiting(seller))["reviews"]
    assert [one["marketplace_id"] for one in listed] == [4, 3, 2, 1]
    pages = await waiting(seller, per_page=3, page=2)
    assert ([one["marketplace_id"] for one in pages["reviews"]], pages["total_pages"]) == ([1], 2)
    pin = await seller.http.put("/api/pricing/pins/3", json={"price": "9.00"})
    assert pin.status_code == 200
    stale = listed[0] | {"revision": "2026-11-21T08:00:00.000000Z"}
    answer = (await said(seller, "accept", stale, *listed[1:])).json()
    assert answer["decided"] == 2
    assert [(one["marketplace_id"], one["code"]) for one in answer["refused"]] == [
        (4, "revision_conflict"), (3, "not_eligible"),
    ]  # fmt: skip
    changed = await exported(seller)
    assert {n: price for n, price in changed.items() if n in (1, 2)} == {1: "21.00", 2: "22.00"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "reviews: must be a list of 1 to 1,000 objects, not null"),
        ({"reviews": []}, "reviews: must be a list of 1 to 1,000 objects"),
        ({"reviews": [1]}, "reviews[0]: must be an object, not a number"),
        (
            {"reviews": [{"marketplace_id": "1"}]},
            "reviews[0].marketplace_id: must be an ID, not a text",
        ),
        (
            {"reviews": [{"marketplace_id": 1, "revision": "now"}]},
            "reviews[0].revision: must be a revision, as 2026-11-21T08:00:00.000000Z",
        ),
    ],
)
async def test_a_word_that_names_no_review_is_refused(a_seller, body, error):
    seller = await a_seller()
    answer = await seller.post(f"{REVIEWS}/accept", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, error)


@pytest.mark.night
async def test_a_dismissed_price_waits_again_only_when_it_moves_on(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert (await said(seller, "dismiss", one)).status_code == 200
    await imported(seller, card(1, "22.00"))
    assert (await prices(seller), await exported(seller)) == ([], {})
    await imported(seller, card(1, "22.01"))
    assert await prices(seller) == [(1, "rise", "10.00", "22.01")]


@pytest.mark.night
async def test_both_words_can_be_taken_back(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"), card(2, "5.00"))
    listed = (await waiting(seller))["reviews"]
    await said(seller, "accept", *listed)
    assert await exported(seller) == {1: "20.00", 2: "5.00"}
    assert (await undone(seller, "pricing.review_accepted")).status_code == 200
    assert (await waiting(seller))["reviews"] == listed
    assert await exported(seller) == {}
    await seller.fingerprint_is_right()
    await said(seller, "dismiss", listed[0])
    assert (await undone(seller, "pricing.review_dismissed")).status_code == 200
    assert (await waiting(seller))["reviews"] == listed
    await said(seller, "accept", listed[0])
    await imported(seller, card(1, "20.00", "20.00"), card(2, "5.00"))
    assert (await undone(seller, "pricing.review_accepted")).status_code == 409


@pytest.mark.night
async def test_a_price_that_no_run_asks_any_more_does_not_wait(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"), card(2, "20.00"))
    first = (await waiting(seller))["reviews"]
    await imported(seller, card(1, "20.00"), card(2, "11.00"))
    [one] = (await waiting(seller))["reviews"]
    # What is the same keeps its revision.
    assert one == next(was for was in first if was["marketplace_id"] == 1) | {
        "expires_at": one["expires_at"]
    }
    await limited(seller, review_up_bp=None)
    await imported(seller, card(1, "20.00"), card(2, "11.00"))
    assert (await prices(seller), (await exported(seller))[1]) == ([], "20.00")


@pytest.mark.night
async def test_a_review_expires_with_its_evidence(shop):
    seller = await shop()
    await limited(seller, max_age_hours=24)
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert await found(seller, "is:held") == [1]
    clock.shift(timedelta(hours=24, seconds=1))
    assert await prices(seller) == []
    assert await found(seller, "is:held") == []
    answer = await said(seller, "accept", one)
    assert (answer.status_code, answer.json()["code"]) == (409, "market_evidence_changed")
    assert await exported(seller) == {}


@pytest.mark.night
async def test_an_accepted_review_keeps_the_floor_that_was_raised_since(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_up_bp=5_000, review_down_bp=2_000)
    await imported(seller, card(1, "5.00"))
    [one] = (await waiting(seller))["reviews"]
    await limited(seller, hard_floor="9.00")
    answer = await said(seller, "accept", one)
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_conflict")
    assert "your rules now set 9.00 for card 1" in answer.json()["error"]
    assert await exported(seller) == {}


async def test_a_price_is_accepted_only_while_the_rules_still_ask_it(a_seller):
    seller = await a_seller()
    rule = await ruled(seller)
    await limited(seller, review_up_bp=5_000)
    await imported(seller, card(1, "20.00"), card(2, "30.00"))
    one, other = sorted((await waiting(seller))["reviews"], key=lambda r: r["marketplace_id"])

    async def changed(**fields):
        answer = await seller.http.patch(f"{RULES}/{rule['id']}", json=fields)
        assert answer.status_code == 200, answer.text

    await changed(ceiling="25.00")
    answer = await said(seller, "accept", one, other)
    assert answer.status_code == 200, answer.text
    [refused] = answer.json()["refused"]
    assert (refused["marketplace_id"], refused["code"]) == (2, "revision_conflict")
    assert await exported(seller) == {1: "20.00"}
    await changed(enabled=False)
    await limited(seller, default_rule_enabled=False)
    answer = await said(seller, "accept", other)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_eligible")
    assert await exported(seller) == {1: "20.00"}


async def test_a_card_whose_price_changed_since_is_refused(shop):
    seller = await shop()
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    await seller.service.sql(
        seller.id, "UPDATE card SET price = 11 WHERE seller_id = :id", id=seller.id
    )
    answer = await said(seller, "accept", one)
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_conflict")


async def half_off(seller, **lasts):
    """A sale that began an hour ago and lasts so long from now."""
    now = clock.now()
    sale = {
        "name": "Half off",
        "adjust_bp": -5000,
        "starts_at": clock.rfc3339(now - timedelta(hours=1)),
        "ends_at": clock.rfc3339(now + timedelta(**lasts)),
    }
    assert (await seller.post(SALES, json=sale)).status_code == 201


@pytest.mark.night
async def test_a_sale_and_the_way_back_from_it_wait_for_nobody(shop):
    seller = await shop()
    await imported(seller, card(1, "10.00"), card(2, "40.00"))
    await half_off(seller, hours=1)
    await imported(seller, card(1, "10.00"), card(2, "40.00"))
    # A rise that is far even at the sale's price waits.
    assert await exported(seller) == {1: "5.00"}
    assert await prices(seller) == [(2, "rise", "10.00", "20.00")]
    clock.shift(timedelta(hours=2))
    await imported(seller, card(1, "10.00", "5.00"), card(2, "40.00"))
    assert await exported(seller) == {1: "10.00"}
    assert await prices(seller) == [(2, "rise", "10.00", "40.00")]


@pytest.mark.night
async def test_a_run_over_stored_cards_keeps_reviews_as_an_import_does(shop):
    seller = await shop(query="market>=1")
    await imported(seller, card(1, "20.00"), card(2, "11.00"))
    assert await prices(seller) == [(1, "rise", "10.00", "20.00")]
    assert await exported(seller) == {2: "11.00"}
    [one] = (await waiting(seller))["reviews"]
    await said(seller, "accept", one)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()
    assert (await exported(seller))[1] == "20.00"


async def test_another_shop_and_a_token_that_only_reads_decide_nothing(shop, a_seller):
    seller, other = await shop(), await a_seller()
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert (await said(other, "accept", one)).status_code == 404
    reader = await seller.token("mcp:read")
    assert (await reader.get(REVIEWS)).status_code == 200
    asked = {"reviews": [{name: one[name] for name in ("marketplace_id", "revision")}]}
    refused = await reader.post(f"{REVIEWS}/accept", json=asked)
    assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")


@pytest.mark.night
async def test_accepted_leaps_do_not_stop_the_next_run(shop):
    seller = await shop()
    rows = [card(n, "20.00") for n in range(1, 61)]
    await imported(seller, *rows)
    listed = (await waiting(seller, per_page=100))["reviews"]
    assert len(listed) == 60
    assert (await said(seller, "accept", *listed)).json()["decided"] == 60
    assert (await imported(seller, *rows))["review"] == []
    assert len(await exported(seller)) == 60


def drawn_as(rows, kind):
    return {row["marketplace_id"] for row in rows if row["kind"] == kind}


@pytest.mark.night
async def test_a_hold_out_keeps_its_cards_at_their_price_and_names_its_twin(shop):
    seller = await shop(holdout_bp=2_000)
    await imported(seller, *(card(n, "11.00") for n in range(1, 201)))
    sql = "SELECT * FROM price_decision WHERE seller_id = :id ORDER BY marketplace_id"
    drawn = await seller.service.sql(seller.id, sql, id=seller.id)
    kept, twins = drawn_as(drawn, "held_out"), drawn_as(drawn, "twin")
    assert 20 <= len(kept) <= 60
    assert 20 <= len(twins) <= 60
    changed = await exported(seller)
    assert changed.keys() == set(range(1, 201)) - kept
    assert twins <= changed.keys()
    one = min(kept)
    told = (await seller.get(f"/api/v1/pricing/explain/{one}")).json()
    step = next(step for step in told["steps"] if step["name"] == "holdout")
    assert step["summary"] == (
        "The card is in the rule's control group (20% of its cards),"
        " so its price stays at 10.00 until the 30 days end."
    )
    # A second run draws the same cards, and notes none again.
    await imported(seller, *(card(n, "11.50") for n in range(1, 201)))
    assert await seller.service.sql(seller.id, sql, id=seller.id) == drawn
    assert (await exported(seller)).keys() == changed.keys()


@pytest.mark.night
async def test_a_draw_that_is_broken_off_is_forgotten(shop):
    seller = await shop(holdout_bp=2_000)
    rows = [card(n, "11.00") for n in range(1, 101)]
    await imported(seller, *rows)
    sql = "SELECT marketplace_id, kind FROM price_decision WHERE seller_id = :id"
    drawn = await seller.service.sql(seller.id, sql, id=seller.id)
    assert {row["kind"] for row in drawn} == {"held_out", "twin"}
    [rule] = [one for one in (await seller.get(RULES)).json()["rules"] if one["holdout_bp"]]
    # With a tenth of the share, nearly all of them follow the rule from now on.
    answer = await seller.http.patch(f"{RULES}/{rule['id']}", json={"holdout_bp": 200})
    assert answer.status_code == 200, answer.text
    await imported(seller, *rows)
    left = await seller.service.sql(seller.id, sql, id=seller.id)
    assert len(left) < len(drawn) / 2
    kept = drawn_as(left, "held_out")
    assert (await exported(seller)).keys() == set(range(1, 101)) - kept


async def test_a_receipt_with_reviews_and_hold_outs_prices_itself_again(shop):
    seller = await shop(holdout_bp=2_000)
    await imported(
        seller,
        *(card(n, "11.00") for n in range(1, 51)),
        *(card(n, "30.00") for n in range(60, 99)),
    )
    run = "SELECT summary ->> 'receipts' AS key FROM price_run WHERE seller_id = :id"
    [kept] = await seller.service.sql(seller.id, run, id=seller.id)
    data = await seller.service.work.store.read(kept["key"])
    assert parquet_file.replay(data) == 0
    frame, _ = parquet_file.unpack(data)
    assert set(frame["review"].drop_nulls()) == {"rise"}
    assert set(frame["holdout"].drop_nulls()) == {"held", "twin"}


@pytest.mark.night
async def test_a_dearer_review_does_not_take_an_accepted_price_back(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_up_bp=5_000)
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert (await said(seller, "accept", one)).status_code == 200
    # The agent has not uploaded it yet, and the market goes on.
    await imported(seller, card(1, "23.00"), card(2))
    assert await prices(seller) == [(1, "rise", "10.00", "23.00")]
    assert await found(seller, "is:held") == [1]
    assert await exported(seller) == {1: "20.00"}


@pytest.mark.night
async def test_a_crash_during_a_sale_waits_as_it_does_without_one(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_down_bp=2_000)
    await half_off(seller, days=9)
    await imported(seller, card(1, "10.00"))
    assert await exported(seller) == {1: "5.00"}
    # The marketplace shows the sale's price, and then the market loses 55 %.
    await imported(seller, card(1, "10.00", "5.00"))
    await imported(seller, card(1, "4.50", "5.00"))
    assert await prices(seller) == [(1, "drop", "5.00", "2.25")]
    assert await exported(seller) == {}


@pytest.mark.night
async def test_a_second_acceptance_is_undone_to_the_first(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_up_bp=5_000)
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert (await said(seller, "accept", one)).status_code == 200
    await imported(seller, card(1, "23.00"))
    [further] = (await waiting(seller))["reviews"]
    assert (await said(seller, "accept", further)).status_code == 200
    assert await exported(seller) == {1: "23.00"}
    assert (await undone(seller, "pricing.review_accepted")).status_code == 200
    assert await exported(seller) == {1: "20.00"}
    await seller.fingerprint_is_right()
    # The first acceptance still counts in later runs.
    await imported(seller, card(1, "23.00"))
    assert await prices(seller) == [(1, "rise", "10.00", "23.00")]
    assert await exported(seller) == {1: "20.00"}


@pytest.mark.night
async def test_a_rolled_back_acceptance_waits_again(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_up_bp=5_000)
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    run = (await said(seller, "accept", one)).json()["run_id"]
    await imported(seller, card(1, "20.00", "20.00"))
    await rolled_back(seller, run)
    await imported(seller, card(1, "20.00", "10.00"))
    assert await prices(seller) == [(1, "rise", "10.00", "20.00")]
    assert await exported(seller) == {}


@pytest.mark.night
async def test_a_card_that_is_gone_does_not_wait(shop):
    seller = await shop()
    others = [card(n) for n in range(2, 5)]
    await imported(seller, card(1, "20.00"), *others)
    assert await prices(seller) == [(1, "rise", "10.00", "20.00")]
    await imported(seller, *others)
    assert await prices(seller) == []
    # It comes back, and so does its price.
    await imported(seller, card(1, "20.00"), *others)
    assert await prices(seller) == [(1, "rise", "10.00", "20.00")]


@pytest.mark.night
async def test_a_spike_at_the_begin_of_a_sale_waits_at_its_end(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_up_bp=5_000)
    await imported(seller, card(1, "10.00"))
    await half_off(seller, hours=1)
    await imported(seller, card(1, "18.00"))
    assert await exported(seller) == {1: "9.00"}
    clock.shift(timedelta(hours=2))
    await imported(seller, card(1, "18.00", "9.00"))
    assert await prices(seller) == [(1, "rise", "9.00", "18.00")]
    # The price before the sale is the way back that the seller knew.
    assert await exported(seller) == {1: "10.00"}


@pytest.mark.night
async def test_a_first_price_of_a_sale_is_not_served_after_it(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_first_price=True)
    await half_off(seller, hours=1)
    await imported(seller, card(1, "10.00", ""))
    [one] = (await waiting(seller))["reviews"]
    assert (await said(seller, "accept", one)).status_code == 200
    assert await exported(seller) == {1: "5.00"}
    clock.shift(timedelta(hours=2))
    assert await exported(seller) == {}


def own_listing(market):
    """A custom listing of the seller's, whose id among ours is below zero."""
    photo = "https://example.invalid/1.jpg"
    return card(77, market, title="My own photo", photo=photo)


async def test_the_price_of_a_custom_listing_is_decided_too(shop):
    seller = await shop()
    await imported(seller, own_listing("20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert (one["marketplace_id"], one["proposed_price"]) == (-1, "20.00")
    answer = await said(seller, "accept", one)
    assert answer.status_code == 200, answer.text
    assert await exported(seller) == {77: "20.00"}


@pytest.mark.night
async def test_a_hold_out_draws_custom_listings_too(shop):
    seller = await shop(holdout_bp=2_000)
    report = await imported(seller, own_listing("11.00"), card(1, "11.00"))
    assert report["state"] == "done"
    assert (await targets(seller)).keys() == {-1, 1}
