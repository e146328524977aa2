"""The JSON structs of a basket's split. Amounts are JSON numbers with their exact digits."""

from __future__ import annotations

from typing import Literal

import msgspec

from cardsync.network.schemas import Number


class BasketItem(msgspec.Struct):
    """Copies to buy. `index` is the position of the reference in the request. `buy_url` must be
    shown unchanged.
    """

    index: int
    product_id: int
    condition: str
    price: Number
    quantity: int
    buy_url: str | None


class BasketParcel(msgspec.Struct, omit_defaults=True):
    """The parcel of one seller. If the seller has not set the postage, `postage` is the operator's
    estimate and `postage_estimated` is true; otherwise `postage_estimated` is omitted.
    """

    store_name: str | None
    postage: Number
    items: list[BasketItem]
    """The cards to order from the seller"""
    postage_estimated: bool = False


class BasketStep(msgspec.Struct):
    """The cheapest total found with at most this number of sellers."""

    sellers: int
    """The maximum number of sellers"""
    total: Number
    """The cheapest total that was found, in USD"""


class UnavailableCard(msgspec.Struct, omit_defaults=True):
    """A card that is not in the split. `reason` is no_match, not_clear (with the number of
    `candidates`), no_offer, not_enough_copies (with the number of offered `copies`) or max_sellers.
    """

    index: int
    reason: Literal["no_match", "not_clear", "no_offer", "not_enough_copies", "max_sellers"]
    """no_match, not_clear, no_offer, not_enough_copies or max_sellers"""
    candidates: int | msgspec.UnsetType = msgspec.UNSET
    copies: int | msgspec.UnsetType = msgspec.UNSET
    """The number of offered copies"""


class SplitBasket(msgspec.Struct):
    """A basket that is split among sellers. `gap` is the largest share of `total` that a better
    split could save; 0 means that this split is the cheapest.
    """

    parcels: list[BasketParcel]
    total: Number
    """The cost of all cards with postage, in USD"""
    gap: Number
    greedy_total: Number | None
    steps: list[BasketStep]
    """The cheapest total for each maximum number of sellers"""
    unavailable: list[UnavailableCard]
