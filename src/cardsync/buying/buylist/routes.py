"""HTTP routes of the public buylist's settings."""

from __future__ import annotations

import msgspec
from litestar import Router, get, patch
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.buylist import buylist_settings
from cardsync.buying.buylist.buylist_settings import BuylistSettings
from cardsync.platform import clock, errors
from cardsync.web.request import FOR_OWNERS, READ_BY_OWNERS, WITH_JSON_BODY, problems


class BuylistChanges(msgspec.Struct):
    is_open: bool | UnsetType = UNSET
    terms: str | UnsetType = UNSET


@get("/buying/buylist", responses=problems(*READ_BY_OWNERS))
async def read_buylist(caller: Caller, session: AsyncSession) -> BuylistSettings:
    """The settings of the public buylist: whether it is open, and the terms that customers read."""
    return await buylist_settings.read_settings(session, caller)


@patch("/buying/buylist", responses=problems(*FOR_OWNERS, *WITH_JSON_BODY, errors.RefusedByGrant))
async def change_buylist(
    caller: Caller, session: AsyncSession, data: BuylistChanges
) -> BuylistSettings:
    """Open or close the public buylist, or change the terms that customers read."""
    return await buylist_settings.change_settings(
        session, caller, data.is_open, data.terms, clock.now()
    )


router = Router(path="", route_handlers=[read_buylist, change_buylist], tags=["buying"])
