"""HTTP routes of discovery: the stock of consenting sellers by reference, the cheapest split of a
basket, and the seller's own view of the network.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post
from litestar.datastructures import State
from litestar.openapi.spec import Example
from litestar.params import Body
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_READING_TOKEN, READS
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import DISCOVERY
from cardsync.network.availability import find, missed
from cardsync.network.basket import split_basket
from cardsync.network.basket_schemas import SplitBasket
from cardsync.network.network_schemas import NetworkBody
from cardsync.network.reference import OneReference, SeveralReferences
from cardsync.network.schemas import Discovery, discovery_body
from cardsync.network.seller_network import read_network
from cardsync.network.wishes import BasketAsked
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database
from cardsync.platform.described import Like
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import HandlerOptions
from cardsync.web.request import FOR_EITHER, READ_BY_OWNERS, WITH_JSON_BODY, AnyResponse, problems

LOOK_UP: HandlerOptions = {
    "status_code": 200,
    "opt": READS | DISCOVERY,
    "security": [A_READING_TOKEN],
    "responses": problems(
        *FOR_EITHER, *WITH_JSON_BODY, errors.NameTooShort, errors.TooManyReferences
    ),
}
_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _exact(answer: Discovery | SplitBasket) -> AnyResponse:
    """Return the response, whose amounts are JSON numbers with their exact digits."""
    return Response(_ENCODER.encode(answer), media_type="application/json")


@post("/availability", **LOOK_UP)
async def find_availability(
    caller: Caller,
    session: AsyncSession,
    settings: Settings,
    state: State,
    data: Annotated[
        Any,
        Like(OneReference | SeveralReferences),
        Body(examples=[Example(value={"name": "Charizard", "number": "4/102"})]),
    ],
) -> Response[Discovery]:
    """Find the consenting sellers who have a card. Send one reference (`name`, and `set`, `number`
    and `finish` if they are known), or up to 25 references as `cards`. The default of `game` is
    pokemon.

    The answer to an ambiguous reference is a list of candidates. Show the links in the answer
    unchanged.
    """
    now = clock.now()
    game, answers = await find(session, caller, data, now)
    state.misses.note(missed(answers), caller.seller_id, now)
    return _exact(discovery_body(game, answers, settings))


@post("/basket", **LOOK_UP)
async def find_basket(
    caller: Caller,
    database: Database,
    settings: Settings,
    state: State,
    data: Annotated[
        Any,
        Like(BasketAsked),
        Body(examples=[Example(value={"cards": [{"name": "Charizard", "quantity": 2}]})]),
    ],
) -> Response[SplitBasket]:
    """Split a basket among consenting sellers so that cards and postage together cost least. Send
    up to 200 `cards`: references with `quantity`, the acceptable `conditions`, and `any_printing`.

    `max_sellers` limits the number of parcels, and `fewest_parcels` minimizes it. `steps` has the
    cost by number of sellers. In a parcel with `postage_estimated`, the postage is the operator's
    estimate. Show the links in the answer unchanged.
    """
    now = clock.now()
    split, missed_products = await split_basket(database, caller, data, settings, now)
    state.misses.note(missed_products, caller.seller_id, now)
    return _exact(split)


@get("/network", responses=problems(*READ_BY_OWNERS))
async def network(caller: Caller, session: AsyncSession, settings: Settings) -> NetworkBody:
    """The owner's view of the network: whether buyers see the stock, some of the offers that they
    see, and the products that buyers requested recently and no visible seller offers. `PATCH
    /api/account` changes the switches.
    """
    return await read_network(session, caller, settings, clock.now())


network_router = Router(
    path="/",
    route_handlers=[network],
    tags=["discovery"],
)
router = Router(
    path="/discovery",
    route_handlers=[find_availability, find_basket],
    tags=["discovery"],
)
