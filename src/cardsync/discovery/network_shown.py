"""The JSON structs of a seller's place in the network, for the API and the page."""

from __future__ import annotations

from datetime import date, datetime

import msgspec

from cardsync.money import dollars
from cardsync.postage import read_steps


class PostageStep(msgspec.Struct):
    """A parcel worth `value_from` or more costs this much to send, up to the next step."""

    value_from: str
    postage: str


class OwnOfferBody(msgspec.Struct):
    product_id: int
    name: str
    set: str
    number: str | None
    finish: str | None
    game: str
    condition: str
    price: str
    quantity: int
    buy_url: str | None


class UnmetBody(msgspec.Struct):
    """`callers` asked for it in the last 30 days, and no visible seller offers it. `held`
    says that you hold it.
    """

    product_id: int
    name: str
    set: str
    number: str | None
    finish: str | None
    game: str
    callers: int
    last_asked_on: date
    held: bool


class NetworkBody(msgspec.Struct):
    """`seen` says whether buyers see your stock, and `hidden_because` why they do not: no_consent,
    not_published, suspended, plan_ended. `shown` are some of your offers.
    """

    seen: bool
    hidden_because: list[str]
    consented_at: datetime | None
    published_at: datetime | None
    store_name: str | None
    listing_url_template: str | None
    postage: list[PostageStep]
    printings: int
    copies: int
    refreshed_at: datetime | None
    shown: list[OwnOfferBody]
    unmet: list[UnmetBody]


def postage_shown(steps: str) -> list[PostageStep]:
    return [PostageStep(dollars(start), dollars(cost)) for start, cost in read_steps(steps)]
