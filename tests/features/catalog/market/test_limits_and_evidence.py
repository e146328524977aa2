"""Review limits, sales and the evidence behind a price that waits: what no other test would miss."""

from datetime import timedelta

import pytest
from tests.features.catalog.market.test_recommendations import (
    LIST,
    ago,
    listings,
    sales,
    shop,  # noqa: F401
    synced,
    targets,
)

from cardsync.platform import clock

SETTINGS = "/api/pricing/settings"
REVIEWS = "/api/pricing/reviews"


async def test_automatic_mode_applies_no_rise_beyond_the_review_limit(shop, observed, product):  # noqa: F811
    seller = await shop()
    settings = {"recommendations": "automatic", "review_up_bp": 1_000}
    assert (await seller.http.patch(SETTINGS, json=settings)).status_code == 200
    dear = listings(product, *(f"{price}.00" for price in range(12, 22)))
    await observed(*dear)
    assert (await synced(seller))["total"] == 1
    assert await targets(seller) == ("10.00", "10.00")
    await seller.http.patch(SETTINGS, json={"review_up_bp": 1_880})
    assert (await synced(seller))["total"] == 0
    assert await targets(seller) == ("10.00", "11.88")


@pytest.mark.night
async def test_a_card_on_sale_is_not_recommended_anything(shop, observed, product):  # noqa: F811
    seller = await shop()
    sale = {
        "name": "A tenth off",
        "adjust_bp": -1_000,
        "starts_at": ago(hours=1),
        "ends_at": clock.rfc3339(clock.now() + timedelta(hours=1)),
    }
    assert (await seller.post("/api/pricing/sales", json=sale)).status_code == 201
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    assert (await synced(seller))["total"] == 0


@pytest.mark.night
async def test_a_card_that_waits_is_not_recommended_anything(shop, observed, product):  # noqa: F811
    seller = await shop(price_source="market")
    await seller.http.patch(SETTINGS, json={"review_up_bp": 1_000})
    await observed(*listings(product, "15.00", "15.50", "16.00"))
    assert (await synced(seller, market="12.00"))["total"] == 0
    assert (await seller.get(REVIEWS)).json()["total"] == 1


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"undercut_up_bp": 100}, lambda product: listings(product, "15.00", "15.50")),
        (
            {"price_source": "sales_anchor"},
            lambda product: sales(product, "15.00", "15.00", "15.00"),
        ),
    ],
)
async def test_a_review_expires_with_the_markets_evidence(
    shop,  # noqa: F811
    observed,
    product,
    fields,
    lines,
):
    seller = await shop(**fields)
    await seller.http.patch(SETTINGS, json={"review_up_bp": 1_000})
    await observed(*lines(product))
    await synced(seller)
    [one] = (await seller.get(REVIEWS)).json()["reviews"]
    # The file's observations are an hour old, and the upload's own prices last a week.
    left = clock.read_moment(one["expires_at"]) - clock.now()
    assert timedelta(hours=22) < left <= timedelta(hours=23)
    clock.shift(timedelta(hours=23, seconds=1))
    assert (await seller.get(REVIEWS)).json()["total"] == 0
    body = {"reviews": [{name: one[name] for name in ("marketplace_id", "revision")}]}
    answer = await seller.post(f"{REVIEWS}/accept", json=body)
    assert answer.json()["code"] == "market_evidence_changed"


async def test_a_reading_token_reads_outcomes_and_decides_nothing(shop):  # noqa: F811
    seller = await shop()
    reads = await seller.token("mcp:read")
    assert (await reads.get(f"{LIST}/outcomes")).status_code == 200
