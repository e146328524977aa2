"""A recommendation's whole life over HTTP: a member's session and an API key live it alike, and a
token with only mcp:read sees each step of it and takes none.
"""

from datetime import timedelta

import pytest
from tests.features.catalog.market.test_outcomes import sold
from tests.features.catalog.market.test_recommendations import (
    LIST,
    ago,
    listings,
    pending,
    revision,
    shop,  # noqa: F401
    synced,
)

from browsers import signed_in
from builders import read_csv
from cardsync.platform import clock

READ = ("/api/market_depth/holds", "/api/analytics/clearing_coverage", f"{LIST}/outcomes")


async def asked(caller, path, **options):
    answer = await caller.get(path, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def latest(caller):
    [entry, *_] = (await asked(caller, "/api/v1/agent/activity"))["activity"]
    return entry["action"], entry["id"]


@pytest.fixture(params=["session", "key"])
def caller_of(request):
    async def made(seller):
        return await signed_in(seller) if request.param == "session" else seller

    return made


async def test_a_recommendation_is_lived_to_its_outcome(
    shop,  # noqa: F811
    observed,
    product,
    caller_of,
):
    seller, one = await pending(shop, observed, product)
    caller, reads = await caller_of(seller), await seller.token("mcp:read")
    path = f"{LIST}/{one['id']}"

    async def is_seen(*ids):
        for who in (caller, reads):
            found = (await asked(who, LIST))["recommendations"]
            assert [each["id"] for each in found] == list(ids)

    async def takes_nothing():
        for what in ("accept", "dismiss", "snooze"):
            answer = await reads.post(f"{path}/{what}", json=revision(one))
            assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
        shown = {"observations": [{"id": one["id"], **revision(one)}]}
        assert (await reads.post(f"{LIST}/shown", json=shown)).status_code == 403

    async def decided(what, status):
        answer = await caller.post(f"{path}/{what}", json=revision(one))
        assert (answer.status_code, answer.json()["status"]) == (200, status)

    await is_seen(one["id"])
    await takes_nothing()
    # Snoozed, until the market moves; the old revision then decides nothing.
    await decided("snooze", "snoozed")
    await is_seen()
    await takes_nothing()
    await observed(*listings(product, "17.00", "17.50", "18.00", seen=ago(minutes=5)))
    old, [one] = one, (await synced(seller))["recommendations"]
    await is_seen(old["id"])
    answer = await caller.post(f"{path}/accept", json=revision(old))
    assert (answer.status_code, answer.json()["code"]) == (409, "revision_conflict")
    # Dismissed, and taken back.
    await decided("dismiss", "dismissed")
    await is_seen()
    action, entry = await latest(caller)
    assert action == "recommendations.dismissed"
    undo = f"/api/v1/agent/activity/{entry}/undo"
    assert (await reads.post(undo)).status_code == 403
    assert (await caller.post(undo)).status_code == 200
    await is_seen(one["id"])
    # Accepted once; the marketplace gets the price with the next export.
    await decided("accept", "accepted")
    answer = await caller.post(f"{path}/accept", json=revision(one))
    assert answer.status_code == 409
    await is_seen()
    assert (await latest(caller))[0] == "recommendations.accepted"
    exported = read_csv((await seller.export()).content)
    assert [row["TCG Marketplace Price"] for row in exported] == ["16.8300"]
    await synced(seller, price="16.83")
    assert read_csv((await seller.export()).content) == []
    # Sold at that price, and shown thirty days later, to the token too.
    clock.shift(timedelta(days=31))
    await sold(seller, 1, 17, days=20)
    for who in (await caller_of(seller), reads):  # A session ends before a month has passed.
        told = await asked(who, f"{LIST}/outcomes")
        assert [(each["id"], each["sold"]) for each in told["reviews"]] == [(one["id"], 1)]
        assert told["outcomes"][0]["verdict"] == "not_enough_sales"
        for place in READ:
            await asked(who, place)
