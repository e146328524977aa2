"""The newest market that an import keeps of each product: its sums equal what the sales say,
whatever the order of the files, and only what differs is written.
"""

import random
import struct
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from cardsync import clock
from cardsync.database.urls import libpq_url
from cardsync.market import evidence
from cardsync.market.of_cards import market_of
from cardsync.pricing.inputs.cards_to_price import ON_SALE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ago(**span):
    return clock.now() - timedelta(**span)


def sale(product, price, sold, fetched, condition="NM"):
    sold_at, fetched_at = clock.rfc3339(sold), clock.rfc3339(fetched)
    return f"{product},{condition},Normal,English,{price},1,{sold_at},{fetched_at},"


@pytest.fixture
def sums(owner_url, product):
    """`sums()` are median, sales, sales of the week and newest sale of the test's product, by
    condition; `sums("xmin")` the version of its row.
    """

    def read(column="packed"):
        with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
            conditions = dict(
                connection.execute("SELECT id, condition FROM market_cell").fetchall()
            )
            kept = connection.execute(
                f"SELECT {column} FROM market_newest WHERE product_id = %s", [product]
            ).fetchone()
        if column != "packed":
            return kept
        [look, *cells] = struct.iter_unpack(">8q", kept[0])
        assert look[:2] == (product, 0)
        return {
            conditions[cell]: (*figures, EPOCH + timedelta(microseconds=newest))
            for _, cell, _, _, *figures, newest in cells
            if newest
        }

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
    before = sums("xmin::text")
    await observed(*lines)
    assert sums("xmin::text") == before


async def test_sums_are_those_of_the_pure_anchor(observed, product, sums):
    rng = random.Random(7)
    now = ago(hours=1)
    sold = [
        (rng.randrange(1, 2_000), now - timedelta(minutes=rng.randrange(50_000))) for _ in range(90)
    ]
    for part in (sold[:40], sold[30:]):
        await observed(*(sale(product, f"{cents / 100:.2f}", at, now) for cents, at in part))
    cell = evidence.Cell("NM", "Normal", "English")
    sales = {evidence.Sale(at, cents * 100, 1, cell) for cents, at in sold}
    told = evidence.anchor(sales, now, now)
    assert sums()["NM"][:2] == (told.median, told.count)
    assert sums()["NM"][3] == told.newest_at


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
