"""The JSON structs of a seller's place in the network, for the API and the page."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import msgspec

from cardsync.platform.kit.struct_rows import Column
from cardsync.platform.money import dollars
from cardsync.platform.postage import read_steps


class PostageStep(msgspec.Struct):
    """A step of the postage: the postage of parcels with at least the value `value_from`, up to the
    next step.
    """

    value_from: str
    """The smallest value of a parcel with this postage, in USD"""
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
    """The price of one copy with its postage"""
    quantity: int
    buy_url: str | None


class UnmetBody(msgspec.Struct):
    """A product that `callers` buyers requested in the last 30 days and no visible seller offers.
    `held` is true if you have it in stock.
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
    """The number of callers who requested the product in the last 30 days"""
    last_asked_on: date
    """The day of the last request"""
    held: bool
    """Whether you have the product in stock"""


class KeptPrivate(msgspec.Struct):
    """The numbers of listings in stock that buyers never see, by the first reason that applies."""

    custom: int
    """Custom listings"""
    private: int
    """Cards that a member added by hand"""
    without_price: int
    """Cards without a price"""
    other_language: int
    """Copies in another language than their product's"""


class NetworkBody(msgspec.Struct):
    """Your shop in the network. `seen` is true if buyers see your stock; otherwise `hidden_because`
    has the reasons: no_consent, not_published, suspended, plan_ended. `in_stock` is the sum of
    `shared` and the listings in `kept_private`. `shown` are some of your offers.
    """

    seen: bool
    """Whether buyers see the stock"""
    hidden_because: list[str]
    """Why buyers do not see the stock"""
    consented_at: datetime | None
    """When the owner agreed to the network"""
    published_at: datetime | None
    """When the stock was published to the network"""
    store_name: str | None
    listing_url_template: str | None
    postage: list[PostageStep]
    """The postage by the value of the parcel"""
    in_stock: int
    """The number of listings in stock"""
    shared: int
    """The number of listings that buyers see while the stock is shared"""
    kept_private: KeptPrivate
    """The numbers of listings that buyers never see, by reason"""
    printings: int
    """The number of different printings that are offered"""
    copies: int
    refreshed_at: datetime | None
    """When the network's copy of the stock was updated"""
    shown: list[OwnOfferBody]
    """A selection of the offers that buyers see"""
    unmet: list[UnmetBody]
    """The products that buyers request and nobody offers"""


def postage_shown(steps: str) -> list[PostageStep]:
    return [PostageStep(dollars(start), dollars(cost)) for start, cost in read_steps(steps)]
