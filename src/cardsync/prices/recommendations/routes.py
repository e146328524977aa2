"""HTTP routes of recommendations and market-depth holds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.openapi.datastructures import ResponseSpec

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.catalog.market.read_ids import CardIds, MarketplaceIds, read_ids
from cardsync.platform import clock, errors
from cardsync.platform.database.seller_slots import Work
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import OF_CARDS, read_paging
from cardsync.platform.read_json import read
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import HandlerOptions, Json
from cardsync.prices.errors import MarketEvidenceChanged, NotEligible, TooManyObservations
from cardsync.prices.plans.writer import Writer
from cardsync.prices.proposals.decide_proposals import Revision
from cardsync.prices.recommendations.accept_recommendation import accept, settle
from cardsync.prices.recommendations.badges import badges_of
from cardsync.prices.recommendations.holds import holds_now
from cardsync.prices.recommendations.impressions import Observation, record_shown
from cardsync.prices.recommendations.outcomes import outcomes
from cardsync.prices.recommendations.pending_list import recommendations, without_buy_outs
from cardsync.prices.recommendations.schemas import (
    BadgesShown,
    DecisionShown,
    HoldsShown,
    OutcomesShown,
    RecommendationsShown,
    RecordedShown,
)
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.own_queries import PageNumber, PerPage
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_MEMBERS,
    FOR_OWNERS,
    READ_BY_OWNERS,
    WITH_JSON_BODY,
    Polled,
    problems,
)


@get("/market_depth/holds", responses=problems(*BEHIND_A_KEY))
async def read_holds(
    caller: Caller,
    heavy: HeavyWork,
    page_number: PageNumber = None,
    page_size: PerPage = None,
) -> HoldsShown:
    """List the cards whose market gate did not pass when the newest sync priced them. Prices are
    offered only while the evidence in the receipt is fresh: `price_options` is null if a time is
    unknown, in the future or too old, or if a buy-out was more than four hours ago.
    """
    paging = read_paging(page_number, page_size, *OF_CARDS)
    now = clock.now()
    return await heavy.read(holds_now, caller, Work.LONG, now, paging)


@get("/market_depth/badges", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def read_badges(
    caller: Caller,
    database: Database,
    marketplace_id: MarketplaceIds = None,
    card_id: CardIds = None,
) -> BadgesShown:
    """Return the badges of at most 200 cards: a buy-out within four hours, fresh listings in the
    card's condition, and the reason why the price is held. A card that is not the caller's, or not
    in stock, is omitted.
    """
    by_marketplace = read_ids("marketplace_id", marketplace_id)
    by_card = read_ids("card_id", card_id)
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        return BadgesShown(await badges_of(session, caller, by_marketplace, by_card, clock.now()))


@get("/recommendations", responses=problems(*BEHIND_A_KEY))
async def read_recommendations(
    caller: Caller,
    database: Database,
    settings: Settings,
    page_number: PageNumber = None,
    page_size: PerPage = None,
) -> Polled[RecommendationsShown]:
    """List the pending price reviews, the highest expected value first. Stale stock and advice on
    rules are separate lists without pages.
    """
    paging = read_paging(page_number, page_size, *OF_CARDS)
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        found = await recommendations(reads, caller, paging, clock.now())
    if found.liquidation:
        async with database.tenant(caller.seller_id, snapshot=True) as session:
            await without_buy_outs(session, caller, found, clock.now())
    return Polled(found)


@get("/recommendations/outcomes", responses=problems(*READ_BY_OWNERS))
async def read_outcomes(caller: Caller, database: Database, settings: Settings) -> OutcomesShown:
    """Compare the net of applied recommendations with the net of matched cards whose price was left
    alone.
    """
    seconds = settings.read_seconds
    async with database.bounded(caller.seller_id, seconds, snapshot=True) as session:
        return await outcomes(session, caller, clock.now())


class OfRevision(msgspec.Struct):
    """The recommendation's revision that the caller saw in the list."""

    revision: Annotated[Json, Like(datetime, needed=True)] = None


DECIDING = (*FOR_OWNERS, *WITH_JSON_BODY, errors.NotFound, errors.RevisionConflict)
SETTLING: HandlerOptions = {
    "status_code": 200,
    "opt": WRITES,
    "responses": problems(*DECIDING, errors.RefusedByGrant),
}


@post(
    "/recommendations/{recommendation_id:int}/accept",
    status_code=200,
    opt=WRITES,
    responses={
        202: ResponseSpec(
            DecisionShown,
            description="The card is previewed anew and must be accepted again",
            generate_examples=False,
        ),
        **problems(
            *DECIDING,
            NotEligible,
            MarketEvidenceChanged,
            errors.MutexHeld,
            errors.NeedsReview,
            errors.RefusedByGrant,
        ),
    },
)
async def accept_recommendation(
    caller: Caller,
    database: Database,
    settings: Settings,
    recommendation_id: int,
    data: OfRevision,
) -> Response[DecisionShown]:
    """Set the proposed price as the card's target, if the evidence has not changed. Otherwise the
    review stays pending with a new revision: a `generic_raise` is previewed again (202), every
    other kind is refused.
    """
    revision: datetime = read(data.revision, Revision, "revision")
    async with database.bounded(caller.seller_id, settings.read_seconds) as session:
        writer = Writer(session, caller, settings, clock.now())
        decided = await accept(writer, recommendation_id, revision)
    # The new revision is stored although the request is refused.
    if decided is None:
        raise MarketEvidenceChanged
    queued = decided.status == "preview_queued"
    return Response(decided, status_code=202 if queued else 200)


@post("/recommendations/{recommendation_id:int}/dismiss", **SETTLING)
async def dismiss_recommendation(
    caller: Caller,
    database: Database,
    recommendation_id: int,
    data: OfRevision,
) -> DecisionShown:
    """Dismiss a recommendation; it is not made again within thirty days."""
    return await _settled(database, caller, recommendation_id, data, "dismissed")


@post("/recommendations/{recommendation_id:int}/snooze", **SETTLING)
async def snooze_recommendation(
    caller: Caller,
    database: Database,
    recommendation_id: int,
    data: OfRevision,
) -> DecisionShown:
    """Snooze a recommendation until its evidence changes."""
    return await _settled(database, caller, recommendation_id, data, "snoozed")


async def _settled(
    database: Database,
    caller: Caller,
    recommendation_id: int,
    data: OfRevision,
    answer: Literal["dismissed", "snoozed"],
) -> DecisionShown:
    seen: datetime = read(data.revision, Revision, "revision")
    async with database.tenant(caller.seller_id) as session:
        return await settle(session, caller, recommendation_id, seen, answer, clock.now())


class Observations(msgspec.Struct):
    """`observations`: at most twenty of `{id, revision}`."""

    observations: Annotated[
        Json, Like(Annotated[list[Observation], msgspec.Meta(max_length=20)], needed=True)
    ] = None


@post(
    "/recommendations/shown",
    status_code=200,
    responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY, TooManyObservations),
)
async def shown_recommendations(
    caller: Caller,
    database: Database,
    data: Observations,
) -> RecordedShown:
    """Record that at least half of each row was visible in a foreground tab, once per revision."""
    observed = read(data.observations, list[Observation], "observations")
    async with database.tenant(caller.seller_id) as session:
        return RecordedShown(await record_shown(session, caller, observed, clock.now()))


router = Router(
    path="",
    route_handlers=[
        read_badges,
        read_holds,
        read_recommendations,
        read_outcomes,
        accept_recommendation,
        dismiss_recommendation,
        snooze_recommendation,
    ],
    tags=["pricing"],
)
seen = Router(path="", route_handlers=[shown_recommendations], tags=["pricing"])
