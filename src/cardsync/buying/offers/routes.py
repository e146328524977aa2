"""HTTP routes of offers: drafts, and the changes of an offer's state."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post
from litestar.params import QueryParameter
from msgspec import UNSET, UnsetType
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.limits import OFFER_DAYS_USUAL, OFFER_LINES, OFFER_LINES_AT_ONCE
from cardsync.buying.offers import into_stock, offer_drafts, offer_life, offer_links, offer_reads
from cardsync.buying.offers.models import State, Way
from cardsync.buying.offers.offer_life import CountedLine
from cardsync.buying.offers.price_lines import OfferWant
from cardsync.buying.offers.schemas import OfferInFull, OfferLinkMade, Offers
from cardsync.platform import clock, errors, limits
from cardsync.platform.read_json import Amount
from cardsync.platform.settings import Settings
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.stock.quick_add.checked_entry import Id
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_EITHER,
    FOR_OWNERS,
    WITH_JSON_BODY,
    ApiRequest,
    Deleted,
    problems,
)

Revision = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]
Lines = Annotated[list[OfferWant], msgspec.Meta(min_length=1, max_length=OFFER_LINES_AT_ONCE)]
_REFUSED = (
    *FOR_OWNERS,
    *WITH_JSON_BODY,
    errors.NotFound,
    errors.RevisionConflict,
    errors.OfferStateWrong,
    errors.RefusedByGrant,
)
_STEP = problems(*_REFUSED)


class NewOffer(msgspec.Struct):
    """A new draft offer, for `lines` or for the matched rows of a collection."""

    lines: Lines | None = None
    """The cards that the customer brings"""
    collection_id: Id | None = None
    customer_id: Id | None = None
    note: str = ""


class OfferChanges(msgspec.Struct):
    """Changes of an offer. `lines` replace all lines of a draft, and are priced."""

    revision: Revision
    lines: Lines | UnsetType = UNSET
    """The lines that replace all lines of the draft"""
    customer_id: Id | UnsetType | None = UNSET
    note: str | UnsetType = UNSET


class Seen(msgspec.Struct):
    revision: Revision


class ToOffer(msgspec.Struct):
    revision: Revision
    days: Annotated[int, msgspec.Meta(ge=1, le=limits.OFFER_DAYS)] = OFFER_DAYS_USUAL
    """The number of days for which the offer is valid"""


class OfferAcceptance(msgspec.Struct):
    """A customer's acceptance. `lines` are the IDs of the accepted lines; null means all lines.
    `cash_part` is the part of a split that is paid in cash.
    """

    revision: Revision
    way: Way
    cash_part: Amount | None = None
    lines: Annotated[list[Id], msgspec.Meta(max_length=OFFER_LINES)] | None = None
    """The ids of the accepted lines; null for all lines"""


class Came(msgspec.Struct):
    """The counted cards of an offer. `lines` are the lines that differ from the offer; other
    accepted lines keep their earlier count, or count as offered.
    """

    revision: Revision
    lines: Annotated[list[CountedLine], msgspec.Meta(max_length=OFFER_LINES)] = []
    """The lines that differ from the offer"""


class ToPay(msgspec.Struct):
    """A payment. `way` replaces the accepted way; `cash_part` is the part of a split that is paid
    in cash.
    """

    revision: Revision
    way: Way | None = None
    cash_part: Amount | None = None


@get("/buying/offers", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def list_offers(
    caller: Caller,
    session: AsyncSession,
    status: State | None = None,
    customer_id: Annotated[int | None, QueryParameter(ge=1, le=limits.LARGEST_ID)] = None,
    before: Annotated[int | None, QueryParameter(ge=1, le=limits.LARGEST_ID)] = None,
) -> Offers:
    """Offers, newest first."""
    return await offer_reads.find_offers(session, caller, status, customer_id, before)


@post("/buying/offers", responses=problems(*FOR_EITHER, *WITH_JSON_BODY, errors.NotFound))
async def draft_offer(caller: Caller, session: AsyncSession, data: NewOffer) -> OfferInFull:
    """Draft an offer. Its lines are priced by the buy rules or by hand. A draft does not bind the
    shop.
    """
    if (data.lines is None) == (data.collection_id is None):
        raise errors.InvalidPayload("lines: give either lines or a collection_id")
    return await offer_drafts.draft_offer(
        session,
        caller,
        data.lines,
        clock.now(),
        collection_id=data.collection_id,
        customer_id=data.customer_id,
        note_text=data.note,
    )


@get("/buying/offers/{offer_id:int}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def read_offer(caller: Caller, session: AsyncSession, offer_id: int) -> OfferInFull:
    """One offer with its lines, each with its explanation."""
    return await offer_reads.one_offer(session, caller, offer_id)


@patch(
    "/buying/offers/{offer_id:int}",
    responses=problems(
        *FOR_EITHER,
        *WITH_JSON_BODY,
        errors.OwnerRequired,
        errors.RefusedByGrant,
        errors.BuyersHidden,
        errors.NotFound,
        errors.RevisionConflict,
        errors.OfferStateWrong,
    ),
)
async def change_offer(
    caller: Caller, session: AsyncSession, offer_id: int, data: OfferChanges
) -> OfferInFull:
    """Change a draft. Customer and note of an offer can be changed until it is paid."""
    return await offer_drafts.change_draft(
        session,
        caller,
        offer_id,
        data.revision,
        clock.now(),
        wants=data.lines,
        customer_id=data.customer_id,
        note_text=data.note,
    )


@delete(
    "/buying/offers/{offer_id:int}",
    status_code=200,
    responses=problems(*FOR_EITHER, errors.NotFound, errors.OfferStateWrong),
)
async def delete_offer(caller: Caller, session: AsyncSession, offer_id: int) -> Deleted:
    """Delete a draft."""
    await offer_drafts.delete_draft(session, caller, offer_id, clock.now())
    return Deleted(deleted=True)


@post("/buying/offers/{offer_id:int}/offer", status_code=200, responses=_STEP)
async def make_offer(
    caller: Caller, session: AsyncSession, offer_id: int, data: ToOffer
) -> OfferInFull:
    """Offer a draft to its customer. Its prices are valid for `days` days, and do not change."""
    return await offer_life.offer_it(
        session, caller, offer_id, data.revision, data.days, clock.now()
    )


@post(
    "/buying/offers/{offer_id:int}/link",
    responses=problems(*FOR_OWNERS, errors.NotFound, errors.OfferStateWrong, errors.RefusedByGrant),
)
async def make_offer_link(
    request: ApiRequest,
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    offer_id: int,
) -> OfferLinkMade:
    """Make the link by which the customer sees this offer only. A new link ends the previous
    link.
    """
    origin = settings.origin_for(request.headers.get("host"))
    return await offer_links.make_link(session, caller, offer_id, origin, clock.now())


@post("/buying/offers/{offer_id:int}/accept", status_code=200, responses=_STEP)
async def accept_offer(
    caller: Caller, session: AsyncSession, offer_id: int, data: OfferAcceptance
) -> OfferInFull:
    """Record that the customer accepts all or some lines, for cash, credit or both."""
    return await offer_life.answer_yes(
        session,
        caller,
        offer_id,
        data.revision,
        data.way,
        data.cash_part,
        data.lines,
        clock.now(),
    )


@post("/buying/offers/{offer_id:int}/decline", status_code=200, responses=_STEP)
async def decline_offer(
    caller: Caller, session: AsyncSession, offer_id: int, data: Seen
) -> OfferInFull:
    """Record that the customer declines the offer, or that the shop does not take the cards."""
    return await offer_life.answer_no(session, caller, offer_id, data.revision, clock.now())


@post("/buying/offers/{offer_id:int}/receive", status_code=200, responses=_STEP)
async def receive_offer(
    caller: Caller, session: AsyncSession, offer_id: int, data: Came
) -> OfferInFull:
    """Record the counted cards with their conditions."""
    return await offer_life.receive(
        session, caller, offer_id, data.revision, data.lines, clock.now()
    )


@post("/buying/offers/{offer_id:int}/pay", status_code=200, responses=_STEP)
async def pay_offer(
    caller: Caller, session: AsyncSession, offer_id: int, data: ToPay
) -> OfferInFull:
    """Pay for the received cards. Credit is added to the customer's ledger immediately."""
    return await offer_life.pay(
        session,
        caller,
        offer_id,
        data.revision,
        clock.now(),
        way=data.way,
        cash_part=data.cash_part,
    )


@post(
    "/buying/offers/{offer_id:int}/stock",
    status_code=200,
    responses=problems(*_REFUSED, errors.NeedsReview),
    dependencies=WRITING_SEEN,
)
async def stock_offer(writer: Writer, offer_id: int, data: Seen) -> OfferInFull:
    """Take the cards into stock: make drafts of listings with their costs, which the owner can
    publish.
    """
    session, caller, _, now, _ = writer
    async with writes.stock_offer(writer, offer_id):
        return await into_stock.take_into_stock(session, caller, offer_id, data.revision, now)


router = Router(
    path="",
    route_handlers=[
        list_offers,
        draft_offer,
        read_offer,
        change_offer,
        delete_offer,
        make_offer,
        make_offer_link,
        accept_offer,
        decline_offer,
        receive_offer,
        pay_offer,
        stock_offer,
    ],
    tags=["buying"],
)
