"""HTTP routes of prices that need review: the list, and accepting or dismissing one or many."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Router, get, post
from litestar.params import QueryParameter

from cardsync import clock, errors, limits
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.cards.filters import read_page
from cardsync.database.session import Database
from cardsync.plans import writes
from cardsync.plans.request_writer import WRITING_SEEN
from cardsync.plans.writer import Writer
from cardsync.pricing.decisions.accept_reviews import MOST
from cardsync.pricing.decisions.listing import reviews_of
from cardsync.pricing.decisions.shown import (
    DecidedReviews,
    PriceReviewsShown,
    decided_body,
)
from cardsync.proposals.decide import Answer, Asked
from cardsync.settings import Settings
from cardsync.web.request import BEHIND_A_KEY, FOR_OWNERS, WITH_JSON_BODY, problems

PageNumber = Annotated[
    str | None,
    QueryParameter(name="page", description="Beyond the last page there is nothing"),
]
PerPage = Annotated[
    str | None,
    QueryParameter(
        name="per_page",
        description=f"{limits.CARDS_PER_PAGE} by default, at most {limits.CARDS_PER_PAGE_MOST}",
    ),
]


@get("/pricing/reviews", responses=problems(*BEHIND_A_KEY))
async def read_reviews(
    caller: Caller,
    database: Database,
    settings: Settings,
    page_number: PageNumber = None,
    page_size: PerPage = None,
) -> PriceReviewsShown:
    """Prices beyond the seller's review limits that no run exports, those first that move the most
    money. A review whose evidence has expired is left out.
    """
    given = {"page": page_number, "per_page": page_size}
    page = read_page({name: [said] for name, said in given.items() if said is not None})
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reads:
        return await reviews_of(reads, caller, page.page, page.per_page, clock.now())


class ReviewsDecided(msgspec.Struct):
    """`reviews`: one to a thousand of `{marketplace_id, revision}`."""

    reviews: Any = None


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
        errors.NotEligible,
        errors.MarketEvidenceChanged,
        errors.MutexHeld,
        errors.NeedsReview,
    ),
    dependencies=WRITING_SEEN,
)
async def accept_reviews(writer: Writer, data: ReviewsDecided) -> DecidedReviews:
    """Make each price the card's target, in one price run. A price that is not what the caller saw
    is refused by itself; if all are, the answer is the first refusal.
    """
    return await _decided(writer, data, "accepted")


@post(
    "/pricing/reviews/dismiss",
    status_code=200,
    opt=WRITES,
    responses=problems(*DECIDING),
    dependencies=WRITING_SEEN,
)
async def dismiss_reviews(writer: Writer, data: ReviewsDecided) -> DecidedReviews:
    """Keep the prices that the cards have. A price within a tenth of a dismissed one does not wait
    again for thirty days.
    """
    return await _decided(writer, data, "dismissed")


async def _decided(writer: Writer, data: ReviewsDecided, answer: Answer) -> DecidedReviews:
    return decided_body(await writes.decide_reviews(writer, _asked(data.reviews), answer))


def _asked(given: Any) -> list[Asked]:
    """Raises InvalidPayload."""
    if not isinstance(given, list) or not 0 < len(given) <= MOST:
        raise errors.InvalidPayload(f"reviews: must be an array of 1 to {MOST:,} objects")
    asked = [_one(one, f"reviews[{place}]") for place, one in enumerate(given)]
    if len({one.key for one in asked}) < len(asked):
        raise errors.InvalidPayload("reviews: names a card twice")
    return asked


def _one(given: Any, name: str) -> Asked:
    if not isinstance(given, dict):
        raise errors.InvalidPayload(f"{name}: must be an object")
    card, revision = given.get("marketplace_id"), given.get("revision")
    # The id of a custom listing is below zero.
    if type(card) is not int or not 0 < abs(card) < 2**63:
        raise errors.InvalidPayload(f"{name}.marketplace_id: must be an id")
    moment = clock.read_moment(revision) if isinstance(revision, str) else None
    if moment is None:
        raise errors.InvalidPayload(
            f"{name}.revision: must be a revision, as 2026-11-21T08:00:00.000000Z"
        )
    return Asked(card, moment)


router = Router(
    path="",
    route_handlers=[read_reviews, accept_reviews, dismiss_reviews],
    tags=["pricing"],
)
