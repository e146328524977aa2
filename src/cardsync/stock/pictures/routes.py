"""HTTP routes of the pictures of cards, for the pages of signed-in members."""

from __future__ import annotations

from litestar import Response, Router, get

from cardsync.access.admission import BY_SESSION, admitting
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import PICTURES
from cardsync.platform.database.session import Database
from cardsync.platform.storage import Store
from cardsync.stock.pictures.answer import A_DAY, FOREVER, answer
from cardsync.stock.pictures.read_pictures import of_card, of_item, of_product
from cardsync.web.request import ApiRequest


@get("/{product_id:int}/{size:str}")
async def product_picture(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    product_id: int,
    size: str,
) -> Response[bytes]:
    """The picture of a product, or a stand-in."""
    shown = await of_product(database, caller, store, product_id, size)
    return answer(shown, request.headers.get("if-none-match"), FOREVER)


@get("/cards/{card_id:int}/{size:str}")
async def card_picture(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    card_id: int,
    size: str,
) -> Response[bytes]:
    """The picture of a card of the seller: the seller's own photo, or the product's picture."""
    shown = await of_card(database, caller, store, card_id, size)
    return answer(shown, request.headers.get("if-none-match"), A_DAY)


@get("/items/{item_id:int}/{size:str}")
async def item_picture(
    request: ApiRequest,
    caller: Caller,
    database: Database,
    store: Store,
    item_id: int,
    size: str,
) -> Response[bytes]:
    """The picture of the seller's card that was sold as an order item."""
    shown = await of_item(database, caller, store, item_id, size)
    return answer(shown, request.headers.get("if-none-match"), A_DAY)


router = Router(
    path="/img",
    route_handlers=[product_picture, card_picture, item_picture],
    middleware=[admitting],
    opt=BY_SESSION | PICTURES,
    include_in_schema=False,
)
