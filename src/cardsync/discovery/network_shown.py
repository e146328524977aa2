"""The JSON structs of a seller's place in the network, for the API and the page."""

from __future__ import annotations

from datetime import date, datetime

import msgspec

from cardsync.discovery.links import buy_url
from cardsync.discovery.misses import Unmet
from cardsync.discovery.network import Network, OwnOffer
from cardsync.money import dollars, to_units
from cardsync.postage import read_steps
from cardsync.settings import Settings


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


def network_body(network: Network, settings: Settings) -> NetworkBody:
    account = network.account
    return NetworkBody(
        not network.hidden_because,
        network.hidden_because,
        account.network_consented_at,
        account.network_published_at,
        account.store_name,
        account.listing_url_template,
        postage_shown(account.postage_steps) if account.postage_steps else [],
        network.printings,
        network.copies,
        network.refreshed_at,
        [_own(offer, account.listing_url_template, settings) for offer in network.shown],
        [_unmet(one) for one in network.unmet],
    )


def postage_shown(steps: str) -> list[PostageStep]:
    return [PostageStep(dollars(start), dollars(cost)) for start, cost in read_steps(steps)]


def _own(offer: OwnOffer, template: str | None, settings: Settings) -> OwnOfferBody:
    link = buy_url(
        offer.marketplace_product_id,
        template,
        settings.marketplace_product_url,
        settings.affiliate_url_template,
    )
    return OwnOfferBody(
        offer.product_id,
        offer.product_name,
        offer.set_name,
        offer.number,
        offer.finish,
        offer.game,
        offer.condition,
        dollars(to_units(offer.price)),
        offer.quantity,
        link,
    )


def _unmet(one: Unmet) -> UnmetBody:
    return UnmetBody(
        one.product_id,
        one.product_name,
        one.set_name,
        one.number,
        one.finish,
        one.game,
        one.callers,
        one.asked_on,
        one.held,
    )
