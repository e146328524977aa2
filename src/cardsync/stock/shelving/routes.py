"""HTTP routes of the shelves, for members who are signed in: read boxes and their cards, and put,
move and remove cards.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, get, post
from litestar.di import Provide
from litestar.params import Parameter
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.settings import Settings
from cardsync.platform.shelf_place import GivenBox, Place, Slot, checked_box
from cardsync.stock.cards.bulk_selection import Selection
from cardsync.stock.limits import PLACES_PER_PAGE_MOST
from cardsync.stock.shelving import boxes, places
from cardsync.stock.shelving.boxes import BoxPage, Shelves
from cardsync.stock.shelving.place_many import PutCards, put_many
from cardsync.stock.shelving.places import ShelvedCard
from cardsync.stock.shelving.rename_box import RenamedBox, rename
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_MEMBERS,
    WITH_JSON_BODY,
    problems,
    provide_bounded_session,
)

Quantity = Annotated[int, msgspec.Meta(ge=1, le=limits.SHELVED_QUANTITY)]
CardId = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class PlaceBody(msgspec.Struct):
    box: GivenBox
    slot: Slot


class Put(PlaceBody, kw_only=True):
    card_id: CardId
    quantity: Quantity


class Move(msgspec.Struct):
    """A move of a card's copies. Without `quantity`, all copies in the slot move."""

    card_id: CardId
    origin: PlaceBody = msgspec.field(name="from")
    target: PlaceBody = msgspec.field(name="to")
    quantity: Quantity | None = None


class Remove(PlaceBody, kw_only=True):
    """A removal of a card's copies. Without `quantity`, all copies in the slot are removed."""

    card_id: CardId
    quantity: Quantity | None = None


class Rename(msgspec.Struct):
    box: GivenBox
    to: GivenBox
    """The box's new name"""


class PutMany(Selection, kw_only=True):
    """A selection of cards to put on shelves.

    Their copies that are on no shelf are placed, `per_slot` copies in each slot from `start_slot`
    on.
    """

    box: GivenBox
    start_slot: Slot
    per_slot: Quantity


def _place(body: PlaceBody) -> Place:
    return Place(checked_box(body.box), body.slot)


READS = (*BEHIND_A_KEY, errors.SessionRequired)
WRITES = problems(*FOR_MEMBERS, *WITH_JSON_BODY, errors.NotFound, errors.StockPromotedReload)
RENAMES = problems(*FOR_MEMBERS, *WITH_JSON_BODY, errors.NotFound)


@get("/shelves", responses=problems(*READS))
async def read_shelves(caller: Caller, session: AsyncSession) -> Shelves:
    """The boxes that are not empty."""
    return await boxes.boxes(session, caller)


@get("/shelves/{box:str}", responses=problems(*READS, errors.NotFound, errors.InvalidPayload))
async def read_box(
    caller: Caller,
    session: AsyncSession,
    box: str,
    page: Annotated[int, Parameter(ge=1, le=limits.PAGE_MOST)] = 1,
    per_page: Annotated[int, Parameter(ge=1, le=PLACES_PER_PAGE_MOST)] = limits.PLACES_PER_PAGE,
) -> BoxPage:
    """The cards in a box, in the order of slots. A box that is not in use has no cards."""
    return await boxes.lying_in(session, caller, checked_box(box), Paging(page, per_page))


@post("/shelves/put", status_code=200, responses=WRITES)
async def put_card(caller: Caller, session: AsyncSession, data: Put) -> ShelvedCard:
    """Add copies of a card to a slot.

    The shelves may then have more copies than the shop has on hand; the answer reports that as
    `drift`.
    """
    place, now = _place(data), clock.now()
    return await places.put(session, caller, data.card_id, place, data.quantity, now)


@post(
    "/shelves/put_many",
    status_code=200,
    responses=WRITES,
    dependencies={"session": Provide(provide_bounded_session)},
)
async def put_many_cards(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    data: PutMany,
) -> PutCards:
    """Put the copies of a selection that are on no shelf into consecutive slots."""
    start = Place(checked_box(data.box), data.start_slot)
    seconds = settings.read_seconds
    return await put_many(session, caller, data, start, data.per_slot, clock.now(), seconds)


@post("/shelves/move", status_code=200, responses=WRITES)
async def move_card(caller: Caller, session: AsyncSession, data: Move) -> ShelvedCard:
    """Move copies of a card to another slot."""
    origin, target, now = _place(data.origin), _place(data.target), clock.now()
    return await places.move(session, caller, data.card_id, origin, target, data.quantity, now)


@post("/shelves/remove", status_code=200, responses=WRITES)
async def remove_card(caller: Caller, session: AsyncSession, data: Remove) -> ShelvedCard:
    """Remove copies of a card from a slot. The card's quantity does not change."""
    place, now = _place(data), clock.now()
    return await places.remove(session, caller, data.card_id, place, data.quantity, now)


@post("/shelves/rename", status_code=200, responses=RENAMES)
async def rename_box(caller: Caller, session: AsyncSession, data: Rename) -> RenamedBox:
    """Rename a box. Its cards, counts and drafts stay in it. Searches and rules with the old name
    do not change.
    """
    box, target = checked_box(data.box), checked_box(data.to, "to")
    return await rename(session, caller, box, target, clock.now())


router = Router(
    path="",
    route_handlers=[
        read_shelves,
        read_box,
        put_card,
        put_many_cards,
        move_card,
        remove_card,
        rename_box,
    ],
    tags=["shelves"],
)
