"""HTTP routes of prices that need review: the list, and accepting, dismissing or snoozing
prices.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import OF_CARDS, read_paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.read_json import Id, read
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Json
from cardsync.prices.decisions.accept_reviews import MOST
from cardsync.prices.decisions.review_list import reviews_of
from cardsync.prices.decisions.schemas import (
    DecidedReviews,
    PriceReviewsShown,
)
from cardsync.prices.errors import MarketEvidenceChanged, NotEligible
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.prices.proposals.decide_proposals import Answer, Revision, SeenProposal
from cardsync.web.own_queries import PageNumber, PerPage
from cardsync.web.request import BEHIND_A_KEY, FOR_OWNERS, WITH_JSON_BODY, problems


@get("/pricing/reviews", responses=problems(*BEHIND_A_KEY))
async def read_reviews(
    caller: Caller,
    database: Database,
    settings: Settings,
    page_number: PageNumber = None,
    page_size: PerPage = None,
) -> PriceReviewsShown:
    """List the prices beyond the seller's review limits, which no run exports, the largest moves of
    money first. A review whose evidence has expired is omitted.
    """
    paging = read_paging(page_number, page_size, *OF_CARDS)
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await reviews_of(reads, caller, paging, clock.now())


class ReviewSeen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A review at the revision that the caller saw."""

    marketplace_id: Id
    revision: Revision


_Reviews = Annotated[list[ReviewSeen], msgspec.Meta(min_length=1, max_length=MOST)]


class ReviewsDecided(msgspec.Struct, forbid_unknown_fields=True):
    """`reviews`: one to a thousand of `{marketplace_id, revision}`."""

    reviews: Annotated[Json, Like(_Reviews, needed=True)] = None


DECIDING = (
    *FOR_OWNERS,
    *WITH_JSON_BODY,
    errors.NotFound,
    errors.RevisionConflict,
)


@post(
    "/pricing/reviews/accept",
    status_code=200,
    opt=WRITES,
    responses=problems(
        *DECIDING,
        NotEligible,
        MarketEvidenceChanged,
        errors.MutexHeld,
        errors.NeedsReview,
        errors.RefusedByGrant,
    ),
    dependencies=WRITING_SEEN,
)
async def accept_reviews(writer: Writer, data: ReviewsDecided) -> DecidedReviews:
    """Make each price the card's target, in one pricing run. A price that changed since the caller
    saw it is refused, the others are accepted; if all are refused, the answer is the first refusal.
    """
    return await _decided(writer, data, "accepted")


@post(
    "/pricing/reviews/dismiss",
    status_code=200,
    opt=WRITES,
    responses=problems(*DECIDING, errors.NeedsReview, errors.RefusedByGrant),
    dependencies=WRITING_SEEN,
)
async def dismiss_reviews(writer: Writer, data: ReviewsDecided) -> DecidedReviews:
    """Keep the cards' current prices. A price within a tenth of a dismissed price does not wait
    again for thirty days.
    """
    return await _decided(writer, data, "dismissed")


@post(
    "/pricing/reviews/snooze",
    status_code=200,
    opt=WRITES,
    responses=problems(*DECIDING, errors.NeedsReview, errors.RefusedByGrant),
    dependencies=WRITING_SEEN,
)
async def snooze_reviews(writer: Writer, data: ReviewsDecided) -> DecidedReviews:
    """Postpone the decision. A price waits again when its figures change, or after thirty days."""
    return await _decided(writer, data, "snoozed")


async def _decided(writer: Writer, data: ReviewsDecided, answer: Answer) -> DecidedReviews:
    seen = read(data.reviews, _Reviews, "reviews")
    asked = [SeenProposal(one.marketplace_id, one.revision) for one in seen]
    cards = {one.key for one in asked}
    if 0 in cards:
        raise errors.InvalidPayload("reviews: 0 is no card's id")
    if len(cards) < len(asked):
        raise errors.InvalidPayload("reviews: names a card twice")
    return struct_of(DecidedReviews, await writes.decide_reviews(writer, asked, answer))


router = Router(
    path="",
    route_handlers=[read_reviews, accept_reviews, dismiss_reviews, snooze_reviews],
    tags=["pricing"],
)
