"""The JSON structs of a seller's place in the network, for the API and the page."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import msgspec

from cardsync.platform.kit.struct_rows import Column
from cardsync.platform.money import dollars
from cardsync.platform.postage import read_steps


class PostageStep(msgspec.Struct):
    """A parcel worth `value_from` or more costs this much to send, up to the next step."""

    value_from: str
    """From this value of the parcel on, in USD"""
    postage: str


class OwnOfferBody(msgspec.Struct):
    product_id: Annotated[int, Column("id")]
    name: Annotated[str, Column("product_name")]
    """The card's name"""
    set: Annotated[str, Column("set_name")]
    """The name of the set"""
    number: str | None
    finish: str | None
    game: str
    condition: str
    price: str
    shipped: str
    """One copy with its postage"""
    quantity: int
    buy_url: str | None


class UnmetBody(msgspec.Struct):
    """`callers` requested it in the last 30 days, and no visible seller offers it. `held` is
    whether you have it.
    """

    product_id: int
    name: str
    """The card's name"""
    set: str
    """The name of the set"""
    number: str | None
    finish: str | None
    game: str
    callers: int
    """How many asked for it in the last 30 days"""
    last_asked_on: date
    """The day when it was asked for last"""
    held: bool
    """You have it"""


class KeptPrivate(msgspec.Struct):
    """Listings in stock that buyers never see, by the first reason that applies."""

    custom: int
    """Custom listings of yours"""
    private: int
    """Cards that you added and keep private"""
    without_price: int
    """Cards without a price"""
    other_language: int
    """Copies in another language than their product's"""


class NetworkBody(msgspec.Struct):
    """`in_stock` is the sum of `shared` and the private listings. `seen` is whether buyers see your
    stock, and `hidden_because` why they do not: no_consent, not_published, suspended, plan_ended.
    `shown` are some of your offers.
    """

    seen: bool
    """Buyers see the stock"""
    hidden_because: list[str]
    """Why buyers do not see the stock"""
    consented_at: datetime | None
    """When the owner agreed to the network"""
    published_at: datetime | None
    """When the stock was published to the network"""
    store_name: str | None
    listing_url_template: str | None
    postage: list[PostageStep]
    """The cost of sending, by the value of the parcel"""
    in_stock: int
    """The listings in stock"""
    shared: int
    """Those that buyers may see, once the stock is shared"""
    kept_private: KeptPrivate
    """The others, by reason"""
    printings: int
    """The different printings that are offered"""
    copies: int
    refreshed_at: datetime | None
    """When the network's view of the stock was refreshed"""
    shown: list[OwnOfferBody]
    """A selection of the offers that buyers see"""
    unmet: list[UnmetBody]
    """The cards that buyers ask for and nobody offers"""


def postage_shown(steps: str) -> list[PostageStep]:
    return [PostageStep(dollars(start), dollars(cost)) for start, cost in read_steps(steps)]
