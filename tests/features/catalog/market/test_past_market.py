"""The market of earlier days, as a backtest reads it: each day's evidence is that which a run of the
day read, whatever was observed since.
"""

import random
import uuid
from dataclasses import replace
from datetime import timedelta

import polars as pl
import psycopg
import pytest
from polars.testing import assert_frame_equal

from builders import a_csv, a_row
from cardsync.catalog.market.load_observations import drop_old
from cardsync.catalog.market.of_cards import evidence_of, the_market
from cardsync.catalog.market.of_past import past_market
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from market_builder import in_the_market, listing

CONDITIONS = ("NM", "LP", "DMG")


def stamp(**ago):
    return clock.rfc3339(clock.now() - timedelta(**ago))


def sale(product, price, sold, fetched, condition="NM"):
    return f"{product},{condition},Normal,English,{price},1,{sold},{fetched},"


@pytest.fixture
def looks(owner_url, product):
    def read():
        with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
            rows = connection.execute(
                "SELECT looked_at FROM market_sales_look WHERE product_id = %s ORDER BY 1",
                [product],
            )
            return [at for (at,) in rows]

    return read


async def live(session, seller, products, at):
    """The evidence of each product in each condition, as a run reads it."""
    market = replace(await the_market(session), network=False)
    return await evidence_of(session, market, keys_of(market, products), seller.id, at)


def keys_of(market, products):
    cells = [id for cell, id in market.cells.items() if cell.condition in CONDITIONS]
    pairs = [(product, cell) for product in (*products, 0) for cell in sorted(cells)]
    return pl.DataFrame(pairs, schema=["market_product", "market_cell"], orient="row")


@pytest.fixture
def shop_of(a_seller, owner_url):
    """`await shop_of(products)` is a seller with a card of each of the marketplace's products."""

    async def made(products):
        seller = await a_seller()
        numbers = range(1, len(products) + 1)
        rows = [a_row(number, name=f"Card {uuid.uuid4().hex}") for number in numbers]
        await seller.import_csv(a_csv(*rows))
        in_the_market(owner_url, seller, dict(zip(numbers, products, strict=True)))
        return seller

    return made


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(3))
async def test_a_days_evidence_is_that_of_a_run_of_the_day(shop_of, observed, product, seed):
    rng = random.Random(seed)
    # One product is in the market from the beginning, one comes later, one is never looked at.
    products = [product, product + 10**13, product + 2 * 10**13]
    seller = await shop_of(products)
    clock.stop()
    clock.shift(-timedelta(days=40))
    fetched = dict.fromkeys(products, clock.now() - timedelta(days=20))
    before = clock.now() - timedelta(hours=1)
    read = []

    def moment():
        """A moment since the run before, because that one cannot have read what came later."""
        return before + (clock.now() - before) * rng.random()

    for day in range(12):
        lines = []
        for known in products[: 1 + (day > 4)]:
            if rng.random() < 0.7:
                at = moment()
                sold = [
                    (rng.choice(CONDITIONS), fetched[known] + (at - fetched[known]) * rng.random())
                    for _ in range(rng.randrange(1, 9))
                ]
                fetched[known] = at
                lines += [
                    sale(
                        known,
                        f"{rng.randrange(100, 900) / 100}",
                        clock.rfc3339(sold_at),
                        clock.rfc3339(at),
                        condition,
                    )
                    for condition, sold_at in sold
                ]
            if rng.random() < 0.8:
                # A fall to one copy of many, with sales, is a buy-out.
                copies = rng.choice((1, 40))
                at = clock.rfc3339(moment())
                lines += [
                    listing(known, f"{rng.randrange(100, 900) / 100}", at, copies, condition)
                    for condition in rng.sample(CONDITIONS, rng.randrange(1, 4))
                ]
        if lines:
            await observed(*lines)
        async with seller.service.database.tenant(seller.id, snapshot=True) as session:
            # In a new database a run knows no condition that is first observed after it.
            keys = keys_of(await the_market(session), products)
            found = await live(session, seller, products, clock.now())
            read.append((clock.now(), keys, found))
        before = clock.now()
        clock.shift(timedelta(hours=rng.choice((1, 3, 20, 48))))
    clock.reset()
    async with seller.service.database.tenant(seller.id, snapshot=True) as session:
        market = await past_market(session, seller.id, read[-1][0])
        for at, keys, expected in read:
            assert_frame_equal(await market.evidence(keys, at), expected)
    told = pl.concat([found for _, _, found in read])
    assert told["sales_median"].drop_nulls().len() > 10
    assert told["listings_low"].drop_nulls().len() > 10


async def test_a_look_counts_once_an_hour_and_never_before_its_time(observed, product, looks):
    begun = (clock.now() - timedelta(days=3)).replace(minute=5, second=0, microsecond=0)
    times = [begun, begun + timedelta(minutes=50), begun + timedelta(hours=1)]
    future = clock.now() + timedelta(hours=2)
    lines = [
        sale(product, "2.00", clock.rfc3339(begun - timedelta(days=1)), clock.rfc3339(at))
        for at in (*times, future)
    ]
    for _ in range(2):
        await observed(*lines)
        assert looks() == times[1:]


@pytest.mark.night
async def test_looks_go_with_the_observations_of_their_time(observed, product, looks, service):
    old, new = clock.now() - timedelta(days=900), clock.now() - timedelta(days=1)
    for at in (old, new):
        sold = clock.rfc3339(at - timedelta(days=1))
        await observed(sale(product, "2.00", sold, clock.rfc3339(at)))
    assert looks() == [old, new]
    assert await drop_old(service.database, clock.now() - timedelta(days=800)) >= 2
    assert looks() == [new]


@pytest.fixture
def days_of(listed, observed, product):
    """Three days of one card at 10.00. The market is looked at on the first and on the third; on the
    second that look is older than a day.
    """

    async def made(lines, later):
        clock.stop()
        clock.shift(-timedelta(days=5))
        seller = await listed(price="10.00", market="10.00", low="9.00")
        [card] = (await seller.get("/api/cards")).json()["cards"]
        moments = []

        async def synced():
            clock.shift(timedelta(minutes=1))
            row = a_row(1, name=card["product_name"], price="10.00", market="10.00", low="9.00")
            moment = clock.rfc3339(clock.now())
            report = await seller.import_csv(a_csv(row), **{"X-Exported-At": moment})
            assert report["state"] == "done", report
            moments.append(moment)

        await observed(*lines(product))
        await synced()
        clock.shift(timedelta(hours=25))
        await synced()
        clock.shift(timedelta(hours=24))
        await observed(*later(product))
        await synced()
        clock.reset()
        return seller, {"from": moments[0], "to": moments[-1]}

    return made


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("fields", "lines", "later", "asked"),
    [
        (
            {"price_source": "market", "undercut_up_bp": 100},
            lambda product: [listing(product, "15.00", stamp(hours=1))],
            lambda product: [listing(product, "20.00", stamp(hours=1))],
            # Old listings leave the upload's low price, which is no reason to go up.
            ["14.85", "10.00", "19.80"],
        ),
        (
            {"price_source": "sales_anchor"},
            lambda product: (
                [sale(product, "14.00", stamp(days=2), stamp(hours=1))] * 2
                + [sale(product, "14.00", stamp(days=day), stamp(hours=1)) for day in (3, 4)]
            ),
            lambda product: [
                sale(product, "18.00", stamp(hours=hours), stamp(hours=1)) for hours in range(2, 9)
            ],
            # Old sales leave the market price.
            ["14.00", "10.00", "18.00"],
        ),
    ],
)
async def test_a_backtest_takes_the_market_of_each_day(days_of, fields, lines, later, asked):
    seller, span = await days_of(lines, later)
    rules = [{"name": "Tested", "state": "published", **fields}]
    answer = await seller.post("/api/pricing/backtest", json={"rules": rules, **span})
    assert answer.status_code == 200, answer.text
    assert [day["listed_value"] for day in answer.json()["days"]] == asked
