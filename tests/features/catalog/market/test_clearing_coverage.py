"""GET /analytics/clearing_coverage over every edge of its clocks, beside what a market import
brought.
"""

from datetime import timedelta

import pytest

from cardsync.platform import clock
from market_builder import ago

PATHS = ("/analytics/clearing_coverage", "/api/analytics/clearing_coverage")


def a_sale(product, sold_at, fetched_at, condition="NM", quantity=1, price="1.00"):
    return f"{product},{condition},Normal,English,{price},{quantity},{sold_at},{fetched_at},"


async def covered(seller, path=PATHS[0], **query):
    answer = await seller.get(path, params=query or {"marketplace_id": 1})
    assert answer.status_code == 200, answer.text
    return answer.json()["cards"]


@pytest.mark.parametrize("path", PATHS)
async def test_units_of_the_own_condition_in_thirty_days_are_counted(
    listed, observed, product, path
):
    seller = await listed()
    fetched = ago(hours=1)
    await observed(
        a_sale(product, ago(days=1), fetched, quantity=3),
        a_sale(product, ago(days=2), fetched, quantity=2),
        a_sale(product, ago(days=2), fetched, condition="LP"),
        a_sale(product, ago(days=30, seconds=60), fetched),
    )
    (card,) = await covered(seller, path)
    assert card["marketplace_id"] == 1
    assert (card["sales_30d"], card["fetched_at"]) == (5, fetched)
    assert await covered(seller, path, card_id=card["card_id"]) == [card]
    both = await covered(seller, path, card_id=card["card_id"], marketplace_id="1,2")
    assert both == [card]


@pytest.mark.parametrize(
    ("fetched", "units", "told"),
    [
        ({"hours": 23, "minutes": 59}, 1, True),
        ({"hours": 24, "seconds": 1}, None, True),
        ({"hours": -1}, None, False),
        (None, None, False),
    ],
)
async def test_unknown_stale_and_future_sales_give_null(
    listed, observed, product, fetched, units, told
):
    seller = await listed()
    at = ago(**fetched) if fetched else None
    if at:
        await observed(a_sale(product, ago(days=2), at))
    (card,) = await covered(seller)
    assert card["sales_30d"] == units
    assert card["fetched_at"] == (at if told else None)


async def test_exactly_a_day_is_fresh_and_a_moment_more_is_stale(listed, observed, product):
    seller = await listed()
    clock.stop()
    try:
        await observed(a_sale(product, ago(days=2), ago()))
        clock.shift(timedelta(hours=24))
        assert (await covered(seller))[0]["sales_30d"] == 1
        clock.shift(timedelta(microseconds=1))
        assert (await covered(seller))[0]["sales_30d"] is None
    finally:
        clock.reset()


async def test_the_sample_is_the_products_latest_25_sales(listed, observed, product):
    seller = await listed()
    fetched = ago(hours=1)
    own = a_sale(product, ago(days=9), fetched)
    others = [a_sale(product, ago(hours=2, minutes=at), fetched, "LP") for at in range(24)]
    await observed(own, *others)
    assert (await covered(seller))[0]["sales_30d"] == 1
    await observed(a_sale(product, ago(hours=1, minutes=5), fetched, "LP"))
    # Zero does not prove that nobody wants the card.
    assert (await covered(seller))[0]["sales_30d"] == 0


async def test_a_card_of_another_printing_has_figures_of_its_own(listed, observed, product):
    seller = await listed(Condition="Near Mint Foil")
    await observed(a_sale(product, ago(days=1), ago(hours=1)))
    assert (await covered(seller))[0]["sales_30d"] == 0


async def test_cards_of_others_and_unknown_ids_are_left_out(listed, a_seller):
    seller = await listed()
    (card,) = await covered(seller)
    stranger = await a_seller()
    assert await covered(stranger, card_id=card["card_id"]) == []
    assert await covered(seller, marketplace_id=999) == []
    assert (await seller.get(PATHS[0])).json() == {"cards": []}


@pytest.mark.parametrize("name", ["marketplace_id", "card_id"])
@pytest.mark.parametrize("value", ["x", "1.5", "9" * 19, "1,a"])
async def test_an_id_that_is_none_is_refused(a_seller, name, value):
    seller = await a_seller()
    answer = await seller.get(PATHS[0], params={name: value})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert name in answer.json()["error"]


async def test_more_than_two_hundred_cards_are_refused(a_seller):
    seller = await a_seller()
    many = ",".join(str(at) for at in range(201))
    answer = await seller.get(PATHS[0], params={"marketplace_id": many})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
