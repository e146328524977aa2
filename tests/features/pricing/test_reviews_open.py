"""Faults of reviews that are shown and not mended yet."""

from datetime import timedelta

from tests.features.pricing.test_reviews import (
    SALES,
    card,
    exported,
    imported,
    limited,
    prices,
    ruled,
    said,
    waiting,
)

from cardsync import clock


async def test_a_dearer_review_does_not_take_an_accepted_price_back(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_up_bp=5_000)
    await imported(seller, card(1, "20.00"))
    [one] = (await waiting(seller))["reviews"]
    assert (await said(seller, "accept", one)).status_code == 200
    # The agent has not uploaded it yet, and the market goes on.
    await imported(seller, card(1, "23.00"))
    assert await prices(seller) == [(1, "rise", "10.00", "23.00")]
    assert await exported(seller) == {1: "20.00"}


async def test_a_crash_during_a_sale_waits_as_it_does_without_one(a_seller):
    seller = await a_seller()
    await ruled(seller)
    await limited(seller, review_down_bp=2_000)
    now = clock.now()
    sale = {
        "name": "Half off",
        "adjust_bp": -5000,
        "starts_at": clock.rfc3339(now - timedelta(hours=1)),
        "ends_at": clock.rfc3339(now + timedelta(days=9)),
    }
    assert (await seller.post(SALES, json=sale)).status_code == 201
    await imported(seller, card(1, "10.00"))
    assert await exported(seller) == {1: "5.00"}
    # The marketplace shows the sale's price, and then the market loses 55 %.
    await imported(seller, card(1, "10.00", "5.00"))
    await imported(seller, card(1, "4.50", "5.00"))
    assert await prices(seller) == [(1, "drop", "5.00", "2.25")]
    assert await exported(seller) == {}
