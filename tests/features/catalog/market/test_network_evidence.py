"""Evidence from the network: stock and sales of consenting sellers become figures for others, and
never with fewer than three other sellers behind a figure.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta

import pytest

from builders import a_csv, a_row
from cardsync.catalog.market import network_cells
from cardsync.catalog.market.of_cards import COLUMNS, market_of
from cardsync.platform import clock
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.prices.inputs.cards_to_price import ON_SALE
from discovery_builder import change
from market_builder import in_the_market
from orders_builder import an_item, an_order

CELLS = {"market": "10.00", "low": "10.00"}


@pytest.fixture
def name():
    return f"Card {uuid.uuid4().hex}"


@pytest.fixture
def shop(a_seller, service, owner_url, product, name):
    """`await shop("12.00", …)` is a seller that offers the card at this price."""

    async def made(price, *, exposed=True, sold=(), **cells):
        seller = await a_seller()
        row = a_row(1, name=name, price=price, **(CELLS | cells))
        await seller.import_csv(a_csv(row))
        in_the_market(owner_url, seller, {1: product})
        for amount in sold:
            day = (clock.now() - timedelta(days=2)).date()
            order = await an_order(seller, order_date=day, status="Completed - Paid")
            await an_item(seller, order, sku_id=1, unit_price=amount)
        if exposed:
            switches = {"network_consent": True, "network_published": True}
            await change(service, seller, **switches)
        await refreshed(seller)
        return seller

    return made


async def refreshed(seller):
    async with seller.service.database.tenant(seller.id) as session:
        await mark(session, seller.id, Figure.CELLS)
    await network_cells.CELLS.work_off(seller.service.work, seller.id)


async def seen_by(seller):
    async with seller.service.database.tenant(seller.id, snapshot=True) as session:
        rows = await market_of(session, seller.id, clock.now(), ON_SALE)
    assert rows.columns == ["id", *COLUMNS]
    return rows.row(0, named=True) if rows.height else None


async def test_three_other_sellers_make_a_figure_and_two_do_not(shop):
    reader = await shop("9.00", exposed=False)
    await shop("12.00", sold=(11, 13), quantity=2)
    await shop("14.00", sold=(15,))
    assert await seen_by(reader) is None
    await shop("13.00", sold=(40,))
    seen = await seen_by(reader)
    assert (seen["listings_low"], seen["listings_count"]) == (120_000, 3)
    # Each seller's median counts once: 12, 15 and 40.
    assert (seen["sales_median"], seen["sales_count"], seen["sales_week"]) == (150_000, 4, 4)
    assert seen["listings_of_network"]
    assert seen["sales_of_network"]
    assert seen["buy_out_detected_at"] is None


@pytest.mark.night
async def test_a_reader_is_none_of_the_three(shop):
    await shop("12.00")
    await shop("14.00")
    reader = await shop("13.00")
    assert await seen_by(reader) is None
    await shop("15.00")
    assert (await seen_by(reader))["listings_low"] == 120_000


@pytest.mark.night
async def test_many_orders_of_one_seller_are_one_seller(shop):
    reader = await shop("9.00", exposed=False)
    await shop("12.00", sold=[10] * 20)
    await shop("12.00", sold=[10])
    await shop("12.00")
    seen = await seen_by(reader)
    assert seen["listings_count"] == 3
    assert (seen["sales_count"], seen["sales_median"]) == (None, None)


@pytest.mark.parametrize(
    "switch",
    [{"network_consent": False}, {"network_published": False}, {"suspended": True}],
)
async def test_a_seller_that_hides_leaves_the_figures_at_once(shop, service, switch):
    reader = await shop("9.00", exposed=False)
    await shop("12.00")
    await shop("14.00")
    third = await shop("13.00")
    assert (await seen_by(reader))["listings_count"] == 3
    await change(service, third, **switch)
    assert await seen_by(reader) is None


async def test_a_hidden_sellers_rows_are_deleted(shop, service):
    seller = await shop("12.00")
    rows = "SELECT count(*) AS n FROM network_cell WHERE seller_id = :id"
    assert (await service.sql(seller.id, rows, id=seller.id))[0]["n"] == 1
    await change(service, seller, network_consent=False)
    await network_cells.CELLS.work_off(service.work, seller.id)
    assert (await service.sql(seller.id, rows, id=seller.id))[0]["n"] == 0
    hidden = await shop("12.00", exposed=False)
    assert (await service.sql(hidden.id, rows, id=hidden.id))[0]["n"] == 0


@pytest.mark.night
async def test_a_seller_that_was_not_read_for_a_day_counts_no_more(shop):
    reader = await shop("9.00", exposed=False)
    sellers = [await shop(price) for price in ("12.00", "13.00", "14.00")]
    clock.shift(timedelta(hours=24, seconds=1))
    assert await seen_by(reader) is None
    for seller in sellers:
        await refreshed(seller)
    assert (await seen_by(reader))["listings_count"] == 3


async def test_a_fresh_imported_observation_comes_before_the_network(shop, observed, product):
    reader = await shop("9.00", exposed=False)
    for price in ("12.00", "13.00", "14.00"):
        await shop(price)
    at = clock.rfc3339(clock.now() - timedelta(hours=1))
    await observed(f"{product},NM,Normal,English,20.00,1,,,{at}")
    seen = await seen_by(reader)
    assert (seen["listings_low"], seen["listings_count"]) == (200_000, 1)
    assert not seen["listings_of_network"]
    clock.shift(timedelta(hours=23, minutes=1))
    # The import is older than a day now, and the network's look is not.
    seen = await seen_by(reader)
    assert (seen["listings_low"], seen["listings_of_network"]) == (120_000, True)


async def test_only_what_differs_is_written_and_two_workers_write_it_once(shop):
    seller = await shop("12.00")
    async with seller.service.database.tenant(seller.id) as session:
        assert await network_cells.refresh(session, seller.id, clock.now()) == 0
        await mark(session, seller.id, Figure.CELLS)
    await asyncio.gather(
        *(network_cells.CELLS.work_off(seller.service.work, seller.id) for _ in range(4))
    )
    rows = "SELECT count(*) AS n FROM network_cell WHERE seller_id = :id"
    assert (await seller.service.sql(seller.id, rows, id=seller.id))[0]["n"] == 1


async def test_a_gate_undercuts_the_networks_listings_and_the_receipt_says_so(shop, name):
    reader = await shop("9.00", exposed=False)
    for price in ("12.00", "13.00", "14.00"):
        await shop(price, sold=(12, 12))
    gate = {"min_listings": 3, "min_sales_30d": 3, "max_age_hours": 24, "undercut_bp": 500}
    rule = {"name": "Gate", "state": "published", "priority": 1, "market_gate": gate}
    assert (await reader.post("/api/pricing/rules", json=rule)).status_code == 201
    await reader.import_csv(a_csv(a_row(1, name=name, price="9.00", market="20.00", low="20.00")))
    await reader.service.run_jobs()
    told = (await reader.get("/api/v1/pricing/explain/1")).json()
    assert told["target_price"] == "11.40"
    inputs = told["historical_breakdown"]["inputs"]
    assert (inputs["listings_low"], inputs["listings_of_network"]) == ("12.00", True)
    assert (inputs["sales_count"], inputs["sales_of_network"]) == (6, True)
