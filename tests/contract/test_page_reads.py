"""How often a page takes a connection and waits for the database, once its process has answered it
before. The numbers of the table may only fall.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from browsers import signed_in
from builders import Seller, Service
from cardsync.asgi import create_app
from cardsync.catalog.market.load_observations import load
from cardsync.platform import clock
from cardsync.platform.database.urls import libpq_url
from cardsync.platform.database.watched_pools import WAITS
from dashboard_builder import filled_shop
from market_builder import HEADER, ago, in_the_market, listing, sale
from pages import PAGES
from sent_statements import counting, prepared


class Reads(NamedTuple):
    connections: int
    round_trips: int


ASKED = 4
# A connection that has planned a page's statement for no page yet sends one message more.
PREPARED = 1
MOST = {
    "/today": Reads(2, 5),
    "/cards": Reads(2, 5),
    "/cards/{card_id:int}": Reads(2, 7),
    "/find": Reads(3, 9),
    "/orders": Reads(2, 5),
    "/orders/ship": Reads(2, 4),
    "/orders/{order_id:int}": Reads(2, 5),
    "/customers": Reads(2, 3),
    "/lists": Reads(2, 3),
    "/lists/{list_id:int}": Reads(2, 4),
    "/lists/{list_id:int}/add": Reads(2, 3),
    "/activity": Reads(2, 4),
    "/settings/shop": Reads(2, 3),
    "/settings/sync": Reads(2, 3),
    "/settings/people": Reads(2, 3),
    "/settings/keys": Reads(2, 3),
    "/settings/assistants": Reads(2, 4),
    "/settings/data": Reads(2, 3),
    "/settings/notices": Reads(2, 3),
    "/settings/webhooks": Reads(2, 3),
    "/settings/webhooks/{webhook_id:int}": Reads(2, 3),
    "/settings/appearance": Reads(1, 1),
    "/settings/sign-in": Reads(2, 3),
    "/account": Reads(2, 3),
    "/account/credits": Reads(2, 3),
    "/cards/{card_id:int}/match": Reads(2, 5),
    "/pricing/rules/new": Reads(3, 8),
    "/pricing/rules/{rule_id:int}": Reads(4, 9),
    "/pricing/tests": Reads(2, 3),
    "/pricing/presets": Reads(3, 7),
    "/pricing/sales": Reads(2, 4),
    "/pricing/sales/new": Reads(3, 8),
    "/pricing/settings": Reads(2, 3),
    "/pricing/reviews": Reads(2, 3),
    "/pricing/pins": Reads(2, 2),
    "/pricing/runs": Reads(2, 3),
    "/pricing/runs/{run_id:int}": Reads(2, 3),
    "/pricing/rollback": Reads(2, 3),
    "/pricing/backtest": Reads(1, 1),
    "/customers/{key:str}": Reads(2, 5),
    "/recommendations": Reads(2, 3),
    "/recommendations/outcomes": Reads(2, 3),
    "/returns": Reads(2, 4),
    "/sales": Reads(2, 5),
    "/profit": Reads(2, 5),
    "/shelves": Reads(2, 3),
    "/shelves/put": Reads(1, 1),
    "/shelves/{box:str}": Reads(2, 4),
    "/counts": Reads(2, 4),
    "/counts/{count_id:int}": Reads(2, 4),
    "/operator": Reads(2, 4),
    "/operator/sellers/{seller_id:int}": Reads(2, 3),
    "/operator/installation": Reads(2, 3),
    "/operator/catalogs": Reads(2, 3),
    "/print": Reads(1, 1),
    "/print/labels": Reads(2, 2),
    "/print/restock": Reads(2, 3),
    "/print/orders/{order_id:int}": Reads(2, 3),
    "/print/slips": Reads(2, 3),
    "/print/pulls/{session_id:int}": Reads(2, 3),
    "/pulls": Reads(2, 4),
    "/pulls/{session_id:int}": Reads(2, 3),
    "/network": Reads(2, 3),
    "/sync": Reads(2, 4),
    "/sync/result": Reads(2, 4),
    "/sync/prices": Reads(2, 5),
    "/sync/cycles": Reads(2, 4),
    "/sync/cycles/{cycle_id:int}": Reads(2, 3),
    "/sync/uploads": Reads(2, 4),
    "/sync/uploads/{upload_id:int}": Reads(2, 5),
    "/buying": Reads(2, 4),
    "/buying/collections/{collection_id:int}": Reads(2, 5),
    "/buying/rules": Reads(2, 3),
    "/buying/rules/new": Reads(2, 7),
    "/buying/offers": Reads(2, 4),
    "/buying/offers/new": Reads(2, 1),
    "/buying/offers/{offer_id:int}": Reads(2, 3),
    "/print/offers/{offer_id:int}": Reads(2, 3),
    "/buying/customers": Reads(2, 3),
    "/buying/customers/{customer_id:int}": Reads(2, 4),
    "/buying/buylist": Reads(2, 3),
    "/add-cards": Reads(2, 3),
    "/add-cards/recover": Reads(2, 3),
    "/set-up/presets": Reads(5, 14),
    "/set-up/agent": Reads(5, 14),
    "/set-up/prices": Reads(5, 14),
    "/set-up/uploads/{upload_id:int}": Reads(5, 14),
}


def connections() -> int:
    """Return how often this process has taken a connection."""
    [waits] = WAITS.collect()
    return sum(int(one.value) for one in waits.samples if one.name.endswith("_count"))


async def observed(seller: Seller, owner_url: str, path: Path) -> None:
    """Import observations of the seller's cards, and let the network have evidence: each page that
    prices cards reads both.
    """
    product = random.SystemRandom().randrange(10**9, 10**12)
    in_the_market(owner_url, seller, {1: product})
    lines = [
        listing(product, "9.00", ago(hours=1)),
        sale(product, "8.00", ago(days=9), ago(days=8)),
    ]
    path.write_text(HEADER + "\n".join(lines))
    await load(seller.service.database, path, lambda _: None)
    with psycopg.connect(libpq_url(owner_url, role=None)) as connection:
        connection.execute("INSERT INTO network_look VALUES (%s, now())", [seller.id])


@pytest.fixture
async def web(service: Service, alive):
    """A web process that flushes nothing of its own accord."""
    never = {"last_seen_flush_seconds": 3600, "rate_limit_exchange_seconds": 3600}
    settings = service.settings.model_copy(update=never)
    app = create_app(settings)
    async with alive(app):
        yield replace(service, settings=settings, app=app)


@prepared
@pytest.mark.day
async def test_no_page_reads_the_database_more_often_than_the_table_says(
    a_seller, web, owner_url, tmp_path
):
    # Kept counts do not run out, however long the pages take.
    clock.stop()
    seller, ids = await filled_shop(a_seller)
    await observed(seller, owner_url, tmp_path / "market.csv")
    seller = replace(seller, service=web)
    browser = await signed_in(seller)
    counted: dict[str, Reads] = {}
    async with counting(seller.service.app.state.database) as sent:
        for page in (one for one in PAGES if one.kind == "page"):
            asked = []
            # The process also works in the background, so the least of several counts is right.
            for _ in range(ASKED):
                sent.read()
                before = connections(), sent.round_trips
                answer = await browser.get(page.address(ids))
                assert answer.status_code == 200, page.route
                sent.read()
                asked.append(Reads(connections() - before[0], sent.round_trips - before[1]))
            counted[page.route] = Reads(*map(min, zip(*asked[1:], strict=True)))
    assert counted.keys() == MOST.keys()
    more = {
        route: reads
        for route, reads in counted.items()
        if reads.connections > MOST[route].connections
        or reads.round_trips > MOST[route].round_trips + PREPARED
    }
    assert more == {}
