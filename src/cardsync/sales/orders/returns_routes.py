"""HTTP routes of one customer with the seller's note, and of returns: lists of refunded orders, and
restocking their copies.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post, put
from litestar.params import Parameter, QueryParameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors, limits
from cardsync.platform.described import Like
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.shelf_place import GivenBox, Place, Slot, checked_box
from cardsync.platform.value_types import Json
from cardsync.prices.plans import writes
from cardsync.prices.plans.request_writer import WRITING_SEEN
from cardsync.prices.plans.writer import Writer
from cardsync.sales.errors import AlreadyRestocked
from cardsync.sales.orders import one_customer, returned_copies
from cardsync.sales.orders.returns_schemas import (
    CustomerInFull,
    CustomerNoteShown,
    Refunders,
    RestockedShown,
    ReturnsPage,
)
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_EITHER,
    WITH_JSON_BODY,
    ApiRequest,
    problems,
    provide_caller,
    reading,
)


class NoteBody(msgspec.Struct):
    """An empty note deletes the note."""

    note: Annotated[Json, Like(str | None)] = None


class CopiesBack(msgspec.Struct):
    card_id: Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]
    box: GivenBox
    slot: Slot
    quantity: Annotated[int, msgspec.Meta(ge=1, le=limits.SHELVED_QUANTITY)]


class RestockBody(msgspec.Struct):
    """Without `places`, every card is put at its first place. If `came_back` is false, nothing is
    restocked, and the order is decided.
    """

    places: Annotated[list[CopiesBack], msgspec.Meta(max_length=1_000)] | None = None
    """The places for the copies; without it, each card's first place"""
    came_back: bool = True


@get("/customers/{key:str}", responses=problems(*BEHIND_A_KEY, errors.NotFound))
async def read_customer(request: ApiRequest, key: str) -> CustomerInFull:
    """One customer: totals of orders and refunds, the newest orders, and the seller's note."""
    async with reading(request) as reads:
        return await one_customer.read_customer(reads, provide_caller(request), key)


@put(
    "/customers/{key:str}/note",
    opt=WRITES,
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, errors.BuyersHidden, errors.NotFound),
)
async def note_customer(
    caller: Caller,
    session: AsyncSession,
    key: str,
    data: NoteBody,
) -> CustomerNoteShown:
    """Write the note on a customer; an empty text deletes the note."""
    kept = await one_customer.write_note(session, caller, key, data.note, clock.now())
    return CustomerNoteShown(key, kept)


@get("/returns", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def read_returns(
    request: ApiRequest,
    restocked: bool = False,
    wanted: Annotated[returned_copies.ReturnState | None, QueryParameter(name="state")] = None,
    page: Annotated[int, Parameter(ge=1, le=limits.PAGE_MOST)] = 1,
    per_page: Annotated[
        int, Parameter(ge=1, le=limits.RETURNS_PER_PAGE_MOST)
    ] = limits.RETURNS_PER_PAGE,
) -> ReturnsPage:
    """Refunded orders whose copies may still be returned, newest first, with the places of their
    cards; with `restocked`, the decided orders; with `state`, the orders of one state: never sent
    (to_restock), expected back, restocked, not back, or partly refunded.
    """
    async with reading(request) as reads:
        return await returned_copies.desk(
            reads,
            provide_caller(request),
            Paging(page, per_page),
            restocked=restocked,
            state=wanted,
        )


@get("/returns/customers", responses=problems(*BEHIND_A_KEY))
async def read_refunders(request: ApiRequest) -> Refunders:
    """The customers with more than one refunded order, most refunded orders first."""
    async with reading(request) as reads:
        return Refunders(await one_customer.repeat_refunders(reads, provide_caller(request)))


@post(
    "/returns/{order_id:int}/restocked",
    status_code=200,
    opt=WRITES,
    responses=problems(
        *FOR_EITHER,
        *WITH_JSON_BODY,
        errors.NotFound,
        AlreadyRestocked,
        errors.StockPromotedReload,
        errors.NeedsReview,
        errors.RefusedByGrant,
    ),
    dependencies=WRITING_SEEN,
)
async def restock_order(
    writer: Writer,
    order_id: int,
    data: RestockBody | None = None,
) -> RestockedShown:
    """Put the copies of a refunded order back on the shelves."""
    reported = None
    if data is not None and data.places is not None:
        reported = [
            returned_copies.PutCopies(
                each.card_id, Place(checked_box(each.box), each.slot), each.quantity
            )
            for each in data.places
        ]
    came_back = data is None or data.came_back
    return await writes.restock(writer, order_id, reported, came_back=came_back)


router = Router(
    path="",
    route_handlers=[read_customer, note_customer, read_returns, read_refunders, restock_order],
    tags=["orders"],
)
