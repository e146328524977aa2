"""The newest market that an import keeps of each product: its sums equal what the sales say,
whatever the order of the files, and only what differs is written.
"""

import random
from datetime import timedelta
from statistics import median

import psycopg
import pytest

from cardsync.catalog.market.of_cards import market_of
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.prices.inputs.cards_to_price import ON_SALE


def ago(**span):
    return clock.now() - timedelta(**span)


def sale(product, price, sold, fetched, condition="NM"):
    sold_at, fetched_at = clock.rfc3339(sold), clock.rfc3339(fetched)
    return f"{product},{condition},Normal,English,{price},1,{sold_at},{fetched_at},"


@pytest.fixture
def sums(owner_url, product):
    """`sums()` are median, sales, sales of the week and newest sale of the test's product, by
    condition; `sums("m.xmin::text")` the version of each row.
    """

    def read(column="m.median, m.sales, m.sales_week, m.newest_sold_at"):
        with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
            rows = connection.execute(
                f"SELECT c.condition, {column} FROM market_newest m"
                " JOIN market_cell c ON c.id = m.cell WHERE m.product_id = %s AND m.sales > 0",
                [product],
            )
            return {condition: tuple(told) for condition, *told in rows}

    return read


async def test_sums_count_the_thirty_days_and_the_week_before_the_look(observed, product, sums):
    fetched = ago(hours=1)
    edges = {"7.00": 30, "8.00": 7, "9.00": 3}
    await observed(
        *(
            sale(product, price, fetched - timedelta(days=days), fetched)
            for price, days in edges.items()
        ),
        sale(product, "50.00", fetched - timedelta(days=30, seconds=1), fetched),
        sale(product, "2.01", fetched - timedelta(days=1), fetched, "LP"),
        sale(product, "2.02", fetched - timedelta(days=2), fetched, "LP"),
    )
    assert sums() == {
        "NM": (80_000, 3, 2, fetched - timedelta(days=3)),
        # Between two prices it is their mean.
        "LP": (20_150, 2, 2, fetched - timedelta(days=1)),
    }


async def test_a_later_look_moves_the_window_and_an_older_file_adds_its_sales(
    observed,
    product,
    sums,
):
    old, new = ago(days=20), ago(hours=1)
    await observed(sale(product, "5.00", old - timedelta(days=15), old))
    assert sums()["NM"][:3] == (50_000, 1, 0)
    await observed(sale(product, "6.00", new - timedelta(days=1), new, "LP"))
    # The first sale is older than thirty days at the new look.
    assert sums().keys() == {"LP"}
    await observed(sale(product, "7.00", old - timedelta(days=1), old))
    assert sums()["NM"][:3] == (70_000, 1, 0)


async def test_the_same_file_again_writes_no_sum(observed, product, sums):
    fetched = ago(hours=1)
    lines = [sale(product, "5.00", ago(days=1), fetched)]
    await observed(*lines)
    before = sums("m.xmin::text")
    await observed(*lines)
    assert sums("m.xmin::text") == before


async def test_a_file_in_parts_makes_the_sums_of_the_whole(observed, product, sums):
    rng = random.Random(7)
    now = ago(hours=1)
    sold = [
        (rng.randrange(1, 2_000), now - timedelta(minutes=rng.randrange(50_000))) for _ in range(90)
    ]
    for part in (sold[:40], sold[30:]):
        await observed(*(sale(product, f"{cents / 100:.2f}", at, now) for cents, at in part))
    counted = {one for one in sold if one[1] >= now - timedelta(days=30)}
    middle = int(median(cents * 100 for cents, _ in counted) + 0.5)
    assert sums()["NM"][:2] == (middle, len(counted))
    assert sums()["NM"][3] == max(at for _, at in counted)


async def test_a_card_in_a_cell_that_nobody_observed_has_no_listing_rather_than_unknown_ones(
    listed,
    observed,
    product,
):
    seller = await listed(condition="Damaged")
    seen = ago(hours=1)
    await observed(f"{product},NM,Normal,English,5.00,1,,,{clock.rfc3339(seen)}")
    async with seller.service.database.tenant(seller.id, snapshot=True) as session:
        told = (await market_of(session, seller.id, clock.now(), ON_SALE)).row(0, named=True)
    assert (told["listings_low"], told["listings_count"]) == (None, 0)
    assert told["listings_observed_at"] == seen
    assert told["sales_count"] is None
