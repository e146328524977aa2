"""The JSON structs of the answer about availability. Prices are JSON numbers with exact digits."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from cardsync.network.availability import Answer
from cardsync.network.buyer_links import buy_url
from cardsync.network.limits import CANDIDATES
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, Reads, struct_of
from cardsync.platform.money import usd
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject

# An amount that is a JSON number with its exact digits in answers.
Number = Annotated[Decimal, Like(float)]
SCOPE = "network_discovery"
SCOPE_NOTE = (
    "Stock offered by consenting sellers in this network; not a view of your own inventory."
)


def _number(price: Decimal) -> Decimal:
    return Decimal(usd(price))


class Candidate(msgspec.Struct):
    product_id: Annotated[int, Column("id")]
    name: Annotated[str, Column("product_name")]
    """The product's name"""
    set: Annotated[str, Column("set_name")]
    """The name of the set"""
    number: str | None
    finish: str | None
    game: str


class SellerOffer(msgspec.Struct):
    """An offer of a seller. `buy_url` must be shown to the buyer unchanged."""

    store_name: str | None
    price: Annotated[Number, Reads(_number)]
    quantity: int
    buy_url: str | None


class Available(msgspec.Struct):
    """The offers of a product. `sellers` has only the cheapest offers; price, quantity and time are
    computed from all offers.
    """

    min_price: Number
    total_quantity: int
    as_of: datetime | None
    sellers: list[SellerOffer]


class Fallback(msgspec.Struct):
    nearby_printings: list[Candidate]
    in_network_unexposed: bool


class DiscoveryResult(msgspec.Struct, omit_defaults=True):
    query: JsonObject
    """The reference, as it was sent"""
    status: Literal["resolved", "candidates", "no_match"]
    """resolved if one printing is meant, candidates if several may be, no_match if none fits"""
    product_id: int | None
    """The product that is meant; null unless the status is resolved"""
    candidates: list[Candidate]
    """The printings that may be meant, best first"""
    total: int
    """The number of printings that fit"""
    truncated: bool
    """Whether there are more than the ten candidates"""
    owned_by_caller: bool
    availability: Available | None
    fallback: Fallback | msgspec.UnsetType = msgspec.UNSET


class Discovery(msgspec.Struct):
    game: str
    scope: Literal["network_discovery"]
    scope_note: str
    results: list[DiscoveryResult]
    """One result for each reference, in the order of the references"""


def discovery_body(game: str, answers: list[Answer], settings: Settings) -> Discovery:
    results = [_result(game, answer, settings) for answer in answers]
    return Discovery(game, "network_discovery", SCOPE_NOTE, results)


def _result(game: str, answer: Answer, settings: Settings) -> DiscoveryResult:
    found, available = answer.resolved, answer.available
    shown = [struct_of(Candidate, one, game=game) for one in found.printings[:CANDIDATES]]
    if available is None:
        return DiscoveryResult(
            query=answer.asked.query,
            status="candidates" if found.total else "no_match",
            product_id=None,
            candidates=shown,
            total=found.total,
            truncated=found.total > len(shown),
            owned_by_caller=False,
            availability=None,
        )
    offered = available.least is not None
    return DiscoveryResult(
        query=answer.asked.query,
        status="resolved",
        product_id=found.meant,
        candidates=[],
        total=found.total,
        truncated=False,
        owned_by_caller=offered and available.callers,
        availability=_available(answer, settings) if offered else None,
        fallback=msgspec.UNSET
        if offered
        else Fallback(
            [struct_of(Candidate, one, game=game) for one in answer.nearby], available.hidden
        ),
    )


def _available(answer: Answer, settings: Settings) -> Available:
    available = answer.available
    assert available is not None
    assert available.least is not None
    return Available(
        _number(available.least),
        available.copies,
        available.as_of,
        [
            struct_of(
                SellerOffer,
                offer,
                buy_url=buy_url(
                    available.marketplace_product_id, offer.listing_url_template, settings
                ),
            )
            for offer in available.offers
        ],
    )
