"""HTTP routes by which members who are signed in add contributions and publish them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, post

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.read_json import Amount
from cardsync.platform.settings import Settings
from cardsync.stock.cards.queries import read_card
from cardsync.stock.cards.schemas import CardBody, card_body
from cardsync.stock.contributions.add import WantedCard, contribute, publish
from cardsync.stock.limits import CONTRIBUTION_CHARACTERS
from cardsync.web.request import FOR_MEMBERS, WITH_JSON_BODY, problems

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTRIBUTION_CHARACTERS)]


class Contribution(msgspec.Struct):
    """A card to contribute, by `product_id`, or by `name` and `set` with `number` and `game`.
    `game` is needed unless the card is in the catalog of exactly one of the account's product
    lines. Without `printing` the card has the printing of its product. With `shared` the
    contribution is published immediately.
    """

    condition: Text
    quantity: Annotated[int, msgspec.Meta(ge=1, le=limits.SHELVED_QUANTITY)]
    printing: Text | None = None
    language: Text = "English"
    product_id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None
    game: Text | None = None
    name: Text | None = None
    """The card's name"""
    set_name: Text | None = msgspec.field(default=None, name="set")
    number: Text | None = None
    price: Amount | None = None
    shared: bool = False


@post("/contributions", responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY))
async def add_contribution(
    caller: Caller,
    database: Database,
    settings: Settings,
    data: Contribution,
) -> CardBody:
    """Add a card that no marketplace lists yet.

    Until the contribution is published, only its member sees it.
    """
    wanted = WantedCard(**msgspec.structs.asdict(data))
    card_id = await contribute(database, caller, wanted, clock.now())
    return await _shown(database, caller, settings, card_id)


@post(
    "/contributions/{card_id:int}/publish",
    status_code=200,
    responses=problems(*FOR_MEMBERS, errors.ListFull, errors.NotFound, errors.StockPromotedReload),
)
async def publish_contribution(
    caller: Caller,
    database: Database,
    settings: Settings,
    card_id: int,
) -> CardBody:
    """Publish a contribution, so that all members of the account see it.

    When the marketplace lists its copies, the live card replaces the contribution.
    """
    async with database.tenant(caller.seller_id) as session:
        await publish(session, caller, card_id, clock.now())
    return await _shown(database, caller, settings, card_id)


async def _shown(database: Database, caller: Caller, settings: Settings, card_id: int) -> CardBody:
    async with database.readings.of(caller.seller_id, settings.read_seconds) as reading:
        row, _ = await read_card(reading, caller, card_id)
    return card_body(row)


router = Router(
    path="",
    route_handlers=[add_contribution, publish_contribution],
    tags=["contributions"],
)
