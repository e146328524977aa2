"""GET /api/recommendations/outcomes counts each card and each sale for what it is."""

from datetime import timedelta

import pytest
from tests.features.catalog.market.test_outcomes import (
    days_of,
    drawn,
    reviewed,
    sold,
    stocked,
    told,
)

from cardsync.platform import clock
from orders_builder import change_order


@pytest.mark.night
async def test_one_card_left_alone_says_nothing_of_ten(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 12)
    for number in range(1, 11):
        await reviewed(seller, cards[number], "accepted", days=40)
    await reviewed(seller, cards[11], "expired", days=40)
    await sold(seller, 11, 50, days=30)
    by_kind = (await told(seller))["outcomes"][0]
    assert (by_kind["control_cards"], by_kind["control_sold"]) == (1, 1)
    assert (by_kind["verdict"], by_kind["interval"]) == ("not_enough_sales", None)


@pytest.mark.night
async def test_a_refunded_sale_brought_nothing(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 4)
    await reviewed(seller, cards[1], "accepted", days=40)
    await reviewed(seller, cards[2], "accepted", days=40)
    await reviewed(seller, cards[3], "expired", days=40)
    whole, half = await sold(seller, 1, 12, days=30), await sold(seller, 2, 12, days=30)
    await change_order(seller, whole, total_amt=12, refund_amt=12)
    await change_order(seller, half, total_amt=12, refund_amt=6)
    by_kind = (await told(seller))["outcomes"][0]
    # The order that was refunded in half nets half of 10.11; two cards share it.
    assert (by_kind["net_per_card"], by_kind["cards_sold"]) == ("2.5275", 1)


@pytest.mark.night
async def test_a_cancelled_order_brought_nothing(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 3)
    await reviewed(seller, cards[1], "accepted", days=40)
    await reviewed(seller, cards[2], "expired", days=40)
    await change_order(seller, await sold(seller, 1, 12, days=30), status="Canceled")
    by_kind = (await told(seller))["outcomes"][0]
    assert (by_kind["net_per_card"], by_kind["cards_sold"]) == ("0.00", 0)


async def test_a_price_that_is_accepted_again_and_again_is_one_card(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 3)
    for days in range(40, 55):
        await reviewed(seller, cards[1], "accepted", days=days)
    await reviewed(seller, cards[2], "expired", days=50)
    await sold(seller, 1, 12, days=39)
    by_kind = (await told(seller))["outcomes"][0]
    assert (by_kind["accepted"], by_kind["cards"], by_kind["cards_sold"]) == (15, 1, 1)


async def test_a_price_that_was_rolled_back_tells_nothing(a_seller):
    seller = await a_seller()
    cards = await stocked(seller, 4)
    for number in (1, 2):
        await reviewed(seller, cards[number], "accepted", days=40)
    await reviewed(seller, cards[3], "expired", days=40)
    at = clock.now() - timedelta(days=38)
    made = """
        INSERT INTO price_rollback (seller_id, state, scope, requested_at, finished_at, expires_at)
        VALUES (:seller, 'applied', '{"run_id": 1}', :at, :at, :at) RETURNING id
    """
    [rollback] = await seller.service.sql(seller.id, made, seller=seller.id, at=at)
    card = """
        INSERT INTO price_rollback_card (seller_id, rollback_id, card_id, price)
        VALUES (:seller, :rollback, :card, 10)
    """
    values = {"seller": seller.id, "rollback": rollback["id"], "card": cards[1]}
    await seller.service.sql(seller.id, card, **values)
    answer = await told(seller)
    assert answer["outcomes"][0]["cards"] == 1
    assert [one["card_id"] for one in answer["reviews"]] == [cards[2]]


@pytest.mark.night
async def test_a_hold_out_is_measured_while_it_holds(a_seller):
    """A card that was drawn on the last day of its thirty days follows its rule a day later."""
    seller = await a_seller()
    await stocked(seller, 41)
    part, began = days_of(2)
    since = began - 29
    await drawn(seller, range(1, 21), since, held=True, part=part)
    await drawn(seller, range(21, 41), since, held=False, part=part)
    for number in range(1, 41):
        await sold(seller, number, 12, days=since - 10)
    clock.shift(timedelta(days=30))
    [one] = (await told(seller))["holdouts"]
    assert (one["cards"], one["cards_sold"], one["held_sold"]) == (20, 0, 0)
    assert one["verdict"] == "not_enough_sales"
