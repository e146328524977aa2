"""Imported daily prices are used for the days without an upload where a raise to the market price
is judged: of the card's own product and printing, in Near Mint and English.
"""

from datetime import timedelta

import pytest
from tests.features.catalog.market.test_recommendations import (
    CELLS,
    generated,
    listed_now,
    prices,
    ruled,
)

from builders import a_csv, a_row
from cardsync.catalog.market.load_observations import load
from cardsync.platform import clock


@pytest.fixture
def told_daily(service, tmp_path, product):
    """`await told_daily("10.00", days)` imports tcgcsv's price of each of some days ago."""

    async def told(market, days, of=product, printing="Normal"):
        for day in days:
            at = (clock.now() - timedelta(days=day)).date()
            path = tmp_path / f"{of}-{printing}-{at}.csv"
            path.write_text(
                f"productId,lowPrice,marketPrice,subTypeName\n{of},1.00,{market},{printing}\n"
            )
            report = await load(service.database, path, lambda _: None, "tcgcsv")
            assert report.prices == 1

    return told


async def recommended(seller, market="14.00", **cells):
    [card] = (await seller.get("/api/cards")).json()["cards"]
    row = a_row(1, name=card["product_name"], quantity=3, **(CELLS | {"market": market} | cells))
    await seller.import_csv(a_csv(row))
    await generated(seller)
    return await listed_now(seller)


@pytest.fixture
def shop(listed):
    async def made(**cells):
        seller = await listed(**(CELLS | cells))
        await ruled(seller)
        return seller

    return made


async def test_a_leap_over_the_daily_prices_waits_until_it_lasts(shop, told_daily):
    seller = await shop()
    await told_daily("10.00", range(1, 20))
    assert prices(await recommended(seller)) == []
    await told_daily("14.00", range(1, 3))
    answer = await recommended(seller)
    assert prices(answer) == [("generic_raise", "10.00", "14.00")]
    history = answer["recommendations"][0]["evidence"]["market_history"]
    assert (history["code"], history["days"]) == ("spike", 1)
    assert (history["days_from_daily_prices"], history["days_missed"]) == (19, 0)
    assert history["median_60d"] == "10.00"


@pytest.mark.parametrize(
    ("cells", "daily"),
    [
        ({"condition": "Lightly Played"}, {}),
        ({}, {"printing": "Foil"}),
        ({}, {"of": 7_000}),
    ],
)
async def test_prices_of_another_product_or_state_judge_nothing(shop, told_daily, cells, daily):
    seller = await shop(**cells)
    await told_daily("10.00", range(1, 20), **daily)
    answer = await recommended(seller, **cells)
    assert prices(answer) == [("generic_raise", "10.00", "14.00")]
    history = answer["recommendations"][0]["evidence"]["market_history"]
    assert (history["code"], history["days_from_daily_prices"]) == ("too_few_days", 0)
