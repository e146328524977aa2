"""HTTP route of market evidence: clearing coverage."""

from __future__ import annotations

from litestar import Router, get
from litestar.handlers import HTTPRouteHandler

from cardsync.access.caller import Caller
from cardsync.catalog.market.coverage import ClearingCoverage, clearing_coverage
from cardsync.catalog.market.read_ids import CardIds, MarketplaceIds, read_ids
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.web.request import BEHIND_A_KEY, problems


async def clearing_coverage_of(
    caller: Caller,
    database: Database,
    marketplace_id: MarketplaceIds = None,
    card_id: CardIds = None,
) -> ClearingCoverage:
    """The units of each requested card that were sold in the last thirty days. Only
    the latest 25 sales of the card's product count, and of these only sales in the card's
    condition, printing and language. At most 200 cards; cards
    that are not the caller's are skipped.
    """
    by_marketplace = read_ids("marketplace_id", marketplace_id)
    by_card = read_ids("card_id", card_id)
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        return await clearing_coverage(session, caller, by_marketplace, by_card, clock.now())


def _coverage_at(path: str, name: str) -> HTTPRouteHandler:
    """Return a route of the coverage, which has two paths: one in /api and one outside of /api."""
    route = get(
        path,
        operation_id=name,
        responses=problems(*BEHIND_A_KEY, errors.InvalidPayload),
    )
    return route(clearing_coverage_of)


analytics = Router(
    path="/analytics",
    route_handlers=[_coverage_at("/clearing_coverage", "read_clearing_coverage")],
    tags=["pricing"],
)
router = Router(
    path="",
    route_handlers=[_coverage_at("/analytics/clearing_coverage", "read_clearing_coverage_in_api")],
    tags=["pricing"],
)
