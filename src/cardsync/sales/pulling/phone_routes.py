"""HTTP routes for phones: queue, pictures, marks, claims and changes of the pull, limited to the
games of the link whose token is in the URL.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.response import Stream

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import PICTURES
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store
from cardsync.sales.pulling import marks
from cardsync.sales.pulling.event_streams import PullStreams
from cardsync.sales.pulling.phone import (
    NOT_KEPT,
    SentClaim,
    SentMarks,
    admitting_phones,
    event_stream,
    link_of,
    marks_of,
)
from cardsync.sales.pulling.phone_links import caller_with_link
from cardsync.sales.pulling.queue import read_queue, sku_of
from cardsync.sales.pulling.schemas import MarkOutcome, PullMarks, PullQueue, pull_marks, pull_queue
from cardsync.stock.pictures.answer import A_DAY, answer
from cardsync.stock.pictures.read_pictures import of_sku

PhoneRequest = Request[Any, Any, State]


class Claimed(msgspec.Struct):
    """`claimed` is false if another phone shows the card."""

    claimed: bool


@get("/{token:str}/queue")
async def phone_queue(
    request: PhoneRequest, caller: Caller, database: Database, device: str = ""
) -> Response[PullQueue]:
    link = link_of(request.scope)
    async with database.tenant(caller.seller_id, snapshot=True) as session:
        queue = await read_queue(session, caller, link.session_id, clock.now())
    return Response(pull_queue(queue, link, device), headers=NOT_KEPT)


@get("/{token:str}/img/{item_id:int}/{size:str}", opt=PICTURES)
async def phone_picture(
    request: PhoneRequest,
    caller: Caller,
    database: Database,
    store: Store,
    item_id: int,
    size: str,
) -> Response[bytes]:
    """Return the picture of a card in the pull, from this origin, so that no other server gets the
    page's URL with the token.
    """
    link = link_of(request.scope)
    async with database.tenant(caller.seller_id) as session:
        sku = await sku_of(session, caller, link, item_id)
    shown = await of_sku(database, caller, store, sku, size)
    return answer(shown, request.headers.get("if-none-match"), A_DAY)


@post("/{token:str}/marks", status_code=200)
async def phone_marks(
    request: PhoneRequest, caller: Caller, database: Database, data: SentMarks
) -> Response[PullMarks]:
    link = link_of(request.scope)
    sent = marks_of(data)
    async with database.tenant(caller.seller_id) as session:
        queue = await marks.record(session, caller, link, sent, clock.now())
    outcomes = [MarkOutcome(m.id, *marks.outcome_of(queue, m.id)) for m, _ in sent]
    return Response(pull_marks(queue, link, data.device, outcomes), headers=NOT_KEPT)


@post("/{token:str}/claims", status_code=200)
async def phone_claim(
    request: PhoneRequest, caller: Caller, database: Database, data: SentClaim
) -> Response[Claimed]:
    link = link_of(request.scope)
    async with database.tenant(caller.seller_id) as session:
        claimed = await marks.claim(session, caller, link, data.item_id, data.device, clock.now())
    return Response(Claimed(claimed), headers=NOT_KEPT)


@get("/{token:str}/changes")
async def phone_changes(
    request: PhoneRequest, caller: Caller, database: Database, token: str
) -> Stream:
    """Return server-sent events: one at once, and one with every change, until the link ends."""
    streams: PullStreams = request.app.state.pull_streams

    async def still_open() -> bool:
        try:
            await caller_with_link(database, token)
        except (errors.PullLinkEnded, errors.AccountSuspended):
            return False
        return True

    return event_stream(streams.events(caller.seller_id, link_of(request.scope).id, still_open))


router = Router(
    path="/p",
    route_handlers=[phone_queue, phone_picture, phone_marks, phone_claim, phone_changes],
    middleware=[admitting_phones],
    include_in_schema=False,
    request_max_body_size=limits.PAGE_FORM_BYTES,
)
