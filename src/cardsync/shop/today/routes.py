"""HTTP routes of Today: the work list with the sync and the sales, the listed value by day, the
cards that moved most, and the result of a sync.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Router, get
from litestar.params import Parameter

from cardsync.access.caller import Caller
from cardsync.agents.sync.last_seen import LastSeen
from cardsync.platform import clock, errors, limits
from cardsync.platform.settings import Settings
from cardsync.shop.today import sync_result, work_list
from cardsync.shop.today.listed_value import DAYS_MOST, read_listed_value
from cardsync.shop.today.movers import read_movers
from cardsync.shop.today.schemas import ListedValueBody, MoversBody, SyncResultBody, TodayBody
from cardsync.web.request import BEHIND_A_KEY, READ_BY_OWNERS, ApiRequest, problems, reading

READING = problems(*BEHIND_A_KEY, errors.InvalidPayload)


@get("/today", responses=problems(*BEHIND_A_KEY))
async def today(
    request: ApiRequest,
    caller: Caller,
    settings: Settings,
) -> TodayBody:
    """The work that waits for people: conditions with their next steps, by urgency; the state of
    the sync; sales, orders to ship, listed value, the last pricing run, orders to pull by shipping,
    and feedback. Staff get only the conditions whose next step they may take, and sales and listed
    value only if the account lets them see revenue.
    """
    seen: LastSeen = request.app.state.last_seen
    async with reading(request) as reads:
        return await work_list.today_of(reads, caller, seen, clock.now(), settings)


@get("/listed_value", responses=problems(*READ_BY_OWNERS, errors.InvalidPayload))
async def listed_value(
    request: ApiRequest,
    caller: Caller,
    days: Annotated[
        int,
        Parameter(required=False, description=f"1 to {DAYS_MOST}, today included"),
    ] = 90,
) -> ListedValueBody:
    """The listed value of the stock on each day with an import or a pricing run, oldest first.
    Staff see it if the account lets them see revenue.
    """
    async with reading(request) as reads:
        return await read_listed_value(reads, caller, days, clock.now())


@get("/movers", responses=READING)
async def movers(
    request: ApiRequest,
    caller: Caller,
    days: Annotated[int, Parameter(required=False, description="7 or 30")] = 7,
) -> MoversBody:
    """The shop's cards whose price changed most in 7 or 30 days, by the change times the copies: at
    most 20 rises and 20 falls.
    """
    async with reading(request) as reads:
        return await read_movers(reads, caller, days)


@get("/sync_result", responses=problems(*READ_BY_OWNERS, errors.NotFound, errors.InvalidPayload))
async def read_sync_result(
    request: ApiRequest,
    caller: Caller,
    cycle: Annotated[
        int | None,
        Parameter(required=False, ge=1, le=limits.LARGEST_ID, description="By default the last"),
    ] = None,
) -> SyncResultBody:
    """The result of a sync: the prices that it raised and lowered, by rule and by card; the prices
    that were not sent, with the reasons; the gain of this month from raised prices; and the orders
    of the sync.
    """
    async with reading(request) as reads:
        return SyncResultBody(await sync_result.sync_result(reads, caller, cycle, clock.now()))


router = Router(
    path="", route_handlers=[today, listed_value, movers, read_sync_result], tags=["today"]
)
