"""Recommendations and market-depth holds over HTTP."""

from __future__ import annotations

from typing import Annotated

from litestar import Router, get
from litestar.params import QueryParameter

from cardsync import clock, limits
from cardsync.access.caller import Caller
from cardsync.cards.filters import CardPage, read_page
from cardsync.database.session import Database
from cardsync.recommendations.holds import market_depth_holds
from cardsync.recommendations.shown import HoldsShown, holds_body
from cardsync.storage import Store
from cardsync.web.request import BEHIND_A_KEY, problems

PageNumber = Annotated[
    str | None,
    QueryParameter(name="page", description="Beyond the last page there is nothing"),
]
PerPage = Annotated[
    str | None,
    QueryParameter(
        name="per_page",
        description=f"{limits.CARDS_PER_PAGE} unless told, at most {limits.CARDS_PER_PAGE_MOST}",
    ),
]


def _page(number: str | None, size: str | None) -> CardPage:
    """Read the page of a query; a number that is none counts as not given."""
    given = {"page": number, "per_page": size}
    return read_page({name: [said] for name, said in given.items() if said is not None})


@get("/market_depth/holds", responses=problems(*BEHIND_A_KEY))
async def read_holds(
    caller: Caller,
    database: Database,
    store: Store,
    page_number: PageNumber = None,
    page_size: PerPage = None,
) -> HoldsShown:
    """The cards whose market gate did not pass when the newest sync priced them. Their prices are
    offered only while the evidence in the receipt is fresh: with unknown, future or expired clocks,
    or a buy-out of more than four hours ago, `price_options` is null.
    """
    page = _page(page_number, page_size)
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        found = await market_depth_holds(
            session,
            caller,
            store,
            page.page,
            page.per_page,
            clock.now(),
        )
    return holds_body(found)


router = Router(path="", route_handlers=[read_holds], tags=["pricing"])
