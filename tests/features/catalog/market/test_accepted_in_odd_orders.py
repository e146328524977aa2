"""Accepted recommendations among pins, undos, rollbacks and generations that run meanwhile: nothing
lasts longer than its evidence, and nothing passes what a person said since.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.features.catalog.market.test_recommendations import (
    CELLS,
    LIST,
    ago,
    generated,
    listed_now,
    listings,
    pending,
    revision,
    ruled,
    shop,  # noqa: F401
    synced,
    targets,
)
from tests.features.prices.test_reviews import rolled_back

from builders import a_csv, a_row
from cards_builder import found
from cardsync.platform import clock
from cardsync.prices.recommendations import generate
from cardsync.prices.recommendations.generate import RECOMMENDATIONS

PIN = "/api/pricing/pins/1"
RULES = "/api/pricing/rules"


async def accepted(seller, one):
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def undone(seller, action, place=0):
    feed = (await seller.get("/api/v1/agent/activity")).json()
    entry = [one for one in feed["activity"] if one["action"] == action][place]
    return await seller.post(f"/api/v1/agent/activity/{entry['id']}/undo")


async def pins(seller):
    sql = "SELECT price::text, until FROM price_decision WHERE seller_id = :id AND kind = 'pin'"
    return await seller.service.sql(seller.id, sql, id=seller.id)


@pytest.mark.night
async def test_an_undone_unpinning_ends_with_the_evidence(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    await accepted(seller, one)
    before = await pins(seller)
    assert (await seller.http.delete(PIN)).status_code == 200
    assert (await undone(seller, "pricing.unpinned")).status_code == 200
    assert await pins(seller) == before


@pytest.mark.night
async def test_an_undone_pin_of_many_ends_with_the_evidence(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    await accepted(seller, one)
    before = await pins(seller)
    answer = await seller.post("/api/pricing/pins/pin_many", json={"marketplace_ids": [1]})
    assert answer.status_code == 200, answer.text
    assert (await undone(seller, "pricing.pinned_many")).status_code == 200
    assert await pins(seller) == before


async def test_an_accepted_price_holds_as_long_as_the_newest_evidence(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    seen = ago(minutes=5)
    await observed(*listings(product, "15.00", "15.50", "16.00", seen=seen))
    await accepted(seller, one)
    [pin] = await pins(seller)
    assert pin["until"] == clock.read_moment(seen) + timedelta(hours=24)


@pytest.mark.night
async def test_an_accepted_price_that_has_ended_is_no_pin(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    await accepted(seller, one)
    assert await found(seller, "is:pinned") == [1]
    clock.shift(timedelta(hours=25))
    assert await found(seller, "is:pinned") == []


@pytest.mark.night
async def test_an_older_acceptance_is_not_undone_below_a_newer_one(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    await accepted(seller, one)
    clock.shift(timedelta(hours=25))
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    # The rule takes the price back, and the same listings recommend it once more.
    [again] = (await synced(seller))["recommendations"]
    await accepted(seller, again)
    answer = await undone(seller, "recommendations.accepted", 1)
    assert (answer.status_code, answer.json().get("code")) == (409, "changed_since"), answer.text
    assert (await targets(seller))[1] == "14.85"
    assert len(await pins(seller)) == 1


async def interrupted(seller, monkeypatch, between):
    """Generate, and do something after the cards were read and before anything is written."""
    [card] = (await seller.get("/api/cards")).json()["cards"]
    await seller.import_csv(a_csv(a_row(1, name=card["product_name"], quantity=3, **CELLS)))
    await seller.service.run_jobs()
    real = generate.all_found

    async def all_found(*given):
        known = await real(*given)
        await between()
        return known

    monkeypatch.setattr(generate, "all_found", all_found)
    await RECOMMENDATIONS.work_off(seller.service.work, seller.id)
    monkeypatch.setattr(generate, "all_found", real)


async def test_a_card_that_is_pinned_while_a_generation_runs(shop, observed, product, monkeypatch):  # noqa: F811
    seller = await shop()
    await observed(*listings(product, "15.00", "15.50", "16.00"))

    async def pin():
        answer = await seller.http.put(PIN, json={"price": "12.00"})
        assert answer.status_code == 200, answer.text

    await interrupted(seller, monkeypatch, pin)
    assert (await listed_now(seller))["total"] == 0


@pytest.mark.night
async def test_automatic_mode_leaves_a_pin_of_this_moment(shop, observed, product, monkeypatch):  # noqa: F811
    seller = await shop()
    await observed(*listings(product, *["15.00"] * 10))
    answer = await seller.http.patch("/api/pricing/settings", json={"recommendations": "automatic"})
    assert answer.status_code == 200, answer.text

    async def pin():
        answer = await seller.http.put(PIN, json={"price": "12.00"})
        assert answer.status_code == 200, answer.text

    await interrupted(seller, monkeypatch, pin)
    assert (await targets(seller))[1] != "14.85"


@pytest.mark.night
async def test_automatic_mode_waits_where_the_rules_changed_meanwhile(
    shop,  # noqa: F811
    observed,
    product,
    monkeypatch,
):
    seller = await shop()
    await observed(*listings(product, *["15.00"] * 10))
    answer = await seller.http.patch("/api/pricing/settings", json={"recommendations": "automatic"})
    assert answer.status_code == 200, answer.text
    [rule] = [one for one in (await seller.get(RULES)).json()["rules"] if one["name"] == "Mine"]

    async def lower():
        answer = await seller.http.patch(f"{RULES}/{rule['id']}", json={"ceiling": "12.00"})
        assert answer.status_code == 200, answer.text

    await interrupted(seller, monkeypatch, lower)
    assert (await targets(seller))[1] == "10.00"


async def test_an_acceptance_while_a_generation_runs_is_the_last(
    shop,  # noqa: F811
    observed,
    product,
    monkeypatch,
):
    seller, one = await pending(shop, observed, product)

    async def accept():
        await accepted(seller, one)

    await interrupted(seller, monkeypatch, accept)
    assert (await listed_now(seller))["total"] == 0


async def test_automatic_mode_keeps_the_limits_of_the_rule_that_governs_now(
    shop,  # noqa: F811
    observed,
    product,
):
    seller = await shop()
    await observed(*listings(product, *["15.00"] * 10))
    assert (await synced(seller))["total"] == 1
    await ruled(seller, name="Careful", priority=1, review={"up_bp": 1_000})
    answer = await seller.http.patch("/api/pricing/settings", json={"recommendations": "automatic"})
    assert answer.status_code == 200, answer.text
    assert (await synced(seller))["total"] == 1
    assert (await targets(seller))[1] != "14.85"


@pytest.mark.night
async def test_a_rolled_back_recommendation_does_not_come_back(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    decided = await accepted(seller, one)
    await synced(seller, price="14.85")
    await rolled_back(seller, decided["run_id"])
    assert await pins(seller) == []
    await synced(seller, price="10.00")
    assert await targets(seller) == ("10.00", "10.00")


@pytest.mark.night
async def test_an_acceptance_is_undone_after_the_pin_that_followed_it(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    await accepted(seller, one)
    accepted_pins = await pins(seller)
    answer = await seller.http.put(PIN, json={"price": "12.00"})
    assert answer.status_code == 200, answer.text
    refused = await undone(seller, "recommendations.accepted")
    assert (refused.status_code, refused.json()["code"]) == (409, "changed_since")
    assert (await undone(seller, "pricing.pinned")).status_code == 200
    assert await pins(seller) == accepted_pins
    assert (await undone(seller, "recommendations.accepted")).status_code == 200
    assert await pins(seller) == []


@pytest.mark.night
async def test_a_generation_of_a_card_that_is_gone_and_comes_back(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    [card] = (await seller.get("/api/cards")).json()["cards"]
    await seller.import_csv(a_csv(a_row(2, quantity=0)))
    await generated(seller)
    assert (await listed_now(seller))["total"] == 0
    answer = await seller.post(f"{LIST}/{one['id']}/accept", json=revision(one))
    assert answer.status_code == 409
    again = a_row(1, name=card["product_name"], quantity=3, **CELLS)
    await seller.import_csv(a_csv(again, a_row(2, quantity=0)))
    await generated(seller)
    assert (await listed_now(seller))["total"] == 1
