"""HTTP routes of cards that were not found in pulls: the list, and the decision about a card."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post
from litestar.params import Parameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors, limits
from cardsync.platform.described import Like
from cardsync.platform.value_types import Json
from cardsync.sales.errors import MissingSettled
from cardsync.sales.orders.pull_models import MissingOutcome
from cardsync.sales.pulling import missing_cards
from cardsync.sales.pulling.schemas import MissingCards
from cardsync.web.request import BEHIND_A_KEY, FOR_EITHER, WITH_JSON_BODY, problems


class SettleMissing(msgspec.Struct):
    """`refund_amt` is the amount that the buyer gets back through the marketplace, only for the
    outcome refund. `card_id` and `location_code` identify one of `other_copies`, only for the
    outcome other_copy.
    """

    outcome: MissingOutcome
    """found, other_copy, refund or message"""
    refund_amt: Annotated[Json, Like(str | None)] = None
    card_id: Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)] | None = None
    """The card whose copy is sent instead"""
    location_code: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    """The place of that copy; null: it has no place"""
    note: Annotated[str, msgspec.Meta(max_length=limits.MISSING_NOTE_CHARACTERS)] = ""
    """The seller's own words, shown with the order"""


@get("/missing_cards", responses=problems(*BEHIND_A_KEY, errors.InvalidPayload))
async def list_missing_cards(
    caller: Caller,
    session: AsyncSession,
    order_id: Annotated[int | None, Parameter(ge=1, le=limits.LARGEST_ID)] = None,
    session_id: Annotated[int | None, Parameter(ge=1, le=limits.LARGEST_ID)] = None,
) -> MissingCards:
    """The cards that were not found in pulls and have no decision, with copies that can be sent
    instead.
    """
    named = None if order_id is None else [order_id]
    return MissingCards(
        await missing_cards.missing_cards(session, caller, order_ids=named, session_id=session_id)
    )


@post(
    "/orders/{order_id:int}/missing/{item_id:int}",
    status_code=200,
    opt=WRITES,
    responses=problems(*FOR_EITHER, *WITH_JSON_BODY, errors.NotFound, MissingSettled),
)
async def settle_missing_card(
    caller: Caller, session: AsyncSession, order_id: int, item_id: int, data: SettleMissing
) -> MissingCards:
    """Decide about a missing card. Returns the order's other missing cards. An order with nothing
    else to pull is then pulled.
    """
    return MissingCards(
        await missing_cards.settle(
            session,
            caller,
            order_id,
            item_id,
            missing_cards.WayOut(
                data.outcome,
                missing_cards.refund_of(data.refund_amt),
                data.card_id,
                data.location_code,
                data.note,
            ),
            clock.now(),
        )
    )


router = Router(path="", route_handlers=[list_missing_cards, settle_missing_card], tags=["pulls"])
