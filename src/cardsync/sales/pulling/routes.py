"""HTTP routes by which signed-in members create, list and revoke phone links."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, post
from litestar.params import Parameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors, limits
from cardsync.platform.settings import Settings
from cardsync.sales.pulling import phone_links
from cardsync.sales.pulling.schemas import PullLinks, PullLinkShown, PullLinksMade
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_MEMBERS,
    WITH_JSON_BODY,
    problems,
)

Id = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]


class MakePullLinks(msgspec.Struct):
    """Without a product line, creates a link for each game of the session; with `all_games`, one
    link for all games.
    """

    session_id: Id
    product_line: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    all_games: bool = False
    """One link for the cards of all games, in the order of the shelves"""


@post(
    "/pull_links",
    opt=WRITES,
    responses=problems(
        *FOR_MEMBERS,
        *WITH_JSON_BODY,
        errors.NotFound,
        errors.PullSessionNotOpen,
    ),
)
async def make_pull_links(
    caller: Caller, session: AsyncSession, settings: Settings, data: MakePullLinks
) -> PullLinksMade:
    """Create links for phones. A link opens the queue of one game, or of all games, until the
    session ends.
    """
    if data.all_games:
        one = await phone_links.make_link_of_all(
            session, caller, data.session_id, settings, settings.origin, clock.now()
        )
        return PullLinksMade([one])
    made = await phone_links.make_links(
        session,
        caller,
        data.session_id,
        data.product_line,
        settings.origin,
        clock.now(),
    )
    return PullLinksMade(made)


@get(
    "/pull_links",
    responses=problems(*BEHIND_A_KEY, errors.SessionRequired, errors.InvalidPayload),
)
async def list_pull_links(
    caller: Caller,
    session: AsyncSession,
    session_id: Annotated[int | None, Parameter(ge=1, le=limits.LARGEST_ID)] = None,
) -> PullLinks:
    """The links of a session, or the newest links of all sessions, without their secrets."""
    return PullLinks(await phone_links.list_links(session, caller, session_id))


@delete(
    "/pull_links/{link_id:int}",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_MEMBERS, errors.NotFound),
)
async def revoke_pull_link(caller: Caller, session: AsyncSession, link_id: int) -> PullLinkShown:
    """Revoke a link, which then no longer works on any phone."""
    return await phone_links.revoke(session, caller, link_id, clock.now())


router = Router(
    path="",
    route_handlers=[make_pull_links, list_pull_links, revoke_pull_link],
    tags=["pulls"],
)
