"""The JSON structs of a basket's split. Amounts are JSON numbers with their exact digits."""

from __future__ import annotations

from typing import Literal

import msgspec

from cardsync.network.schemas import Number


class BasketItem(msgspec.Struct):
    """`index` is the position of the reference. `buy_url` must be shown unchanged."""

    index: int
    product_id: int
    condition: str
    price: Number
    quantity: int
    buy_url: str | None


class BasketParcel(msgspec.Struct, omit_defaults=True):
    """`postage_estimated` is true if the seller has not set the postage: `postage` is then the
    operator's estimate. Otherwise it is omitted.
    """

    store_name: str | None
    postage: Number
    items: list[BasketItem]
    """The cards to order from the seller"""
    postage_estimated: bool = False


class BasketStep(msgspec.Struct):
    """The cheapest total found with at most this number of sellers."""

    sellers: int
    """At most so many sellers"""
    total: Number
    """The cheapest total that was found, in USD"""


class UnavailableCard(msgspec.Struct, omit_defaults=True):
    """`reason` is no_match, not_clear (with the number of `candidates`), no_offer,
    not_enough_copies (with the `copies` that are offered) or max_sellers.
    """

    index: int
    reason: Literal["no_match", "not_clear", "no_offer", "not_enough_copies", "max_sellers"]
    """no_match, not_clear, no_offer, not_enough_copies or max_sellers"""
    candidates: int | msgspec.UnsetType = msgspec.UNSET
    copies: int | msgspec.UnsetType = msgspec.UNSET
    """How many copies are offered"""


class SplitBasket(msgspec.Struct):
    """`gap` is the largest share of `total` that a better split could save: 0 means that this one
    is the cheapest.
    """

    parcels: list[BasketParcel]
    total: Number
    """The cost of everything with sending, in USD"""
    gap: Number
    greedy_total: Number | None
    steps: list[BasketStep]
    """The cheapest total with at most so many sellers"""
    unavailable: list[UnavailableCard]
