"""Accepted recommendations among pins, undos, rollbacks and generations that run meanwhile: nothing
lasts longer than its evidence, and nothing passes what a person said since.
"""

from __future__ import annotations

from datetime import timedelta

from tests.features.market.test_recommendations import (
    LIST,
    ago,
    listings,
    pending,
    revision,
    shop,  # noqa: F401
    synced,
    targets,
)

from cardsync import clock

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
    sql = "SELECT price::text, until FROM pinned_price WHERE seller_id = :id"
    return await seller.service.sql(seller.id, sql, id=seller.id)


async def test_an_undone_unpinning_ends_with_the_evidence(shop, observed, product):  # noqa: F811
    seller, one = await pending(shop, observed, product)
    await accepted(seller, one)
    before = await pins(seller)
    assert (await seller.http.delete(PIN)).status_code == 200
    assert (await undone(seller, "pricing.unpinned")).status_code == 200
    assert await pins(seller) == before


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
