"""The JSON structs of a basket's split. Amounts are JSON numbers with their exact digits."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal

import msgspec

from cardsync.discovery.basket import Found, Item, Parcel, Unavailable
from cardsync.discovery.buyer_links import buy_url
from cardsync.money import dollars, to_units
from cardsync.settings import Settings


class BasketItem(msgspec.Struct):
    """`index` is the place of the reference; `buy_url` is to be shown as it is."""

    index: int
    product_id: int
    condition: str
    price: Decimal
    quantity: int
    buy_url: str | None


class BasketParcel(msgspec.Struct, omit_defaults=True):
    """`postage_estimated` is true where the seller has not said what a parcel costs: `postage` is
    then the operator's estimate. Otherwise it is left out.
    """

    store_name: str | None
    postage: Decimal
    items: list[BasketItem]
    postage_estimated: bool = False


class BasketStep(msgspec.Struct):
    """The cheapest total that was found with at most so many sellers."""

    sellers: int
    total: Decimal


class UnavailableCard(msgspec.Struct, omit_defaults=True):
    """`reason` is no_match, not_clear (with the number of `candidates`), no_offer,
    not_enough_copies (with the `copies` that are offered) or max_sellers.
    """

    index: int
    reason: str
    candidates: int | msgspec.UnsetType = msgspec.UNSET
    copies: int | msgspec.UnsetType = msgspec.UNSET


class SplitBasket(msgspec.Struct):
    """`gap` is the part of `total` by which a better split could be cheaper at most: 0 says that
    this one is the cheapest.
    """

    parcels: list[BasketParcel]
    total: Decimal
    gap: Decimal
    greedy_total: Decimal | None
    steps: list[BasketStep]
    unavailable: list[UnavailableCard]


_ENCODER = msgspec.json.Encoder(decimal_format="number")
_GAP = Decimal("0.0001")


def basket_body(found: Found, settings: Settings) -> bytes:
    """Encode the answer; `decimal_format` keeps every digit of an amount."""
    gap = Decimal(found.total - found.bound) / (found.total or 1)
    return _ENCODER.encode(
        SplitBasket(
            [_parcel(parcel, settings) for parcel in found.parcels],
            _amount(found.total),
            gap.quantize(_GAP, ROUND_UP).normalize() + 0,
            None if found.greedy_total is None else _amount(found.greedy_total),
            [BasketStep(sellers, _amount(total)) for sellers, total in found.steps],
            [_unavailable(one) for one in found.unavailable],
        )
    )


def _parcel(parcel: Parcel, settings: Settings) -> BasketParcel:
    items = [_item(item, settings) for item in parcel.items]
    return BasketParcel(parcel.store_name, _amount(parcel.postage), items, parcel.postage_estimated)


def _item(item: Item, settings: Settings) -> BasketItem:
    offer = item.offer
    link = buy_url(
        offer.marketplace_product_id,
        offer.listing_url_template,
        settings.marketplace_product_url,
        settings.affiliate_url_template,
    )
    price = _amount(to_units(offer.price))
    return BasketItem(item.line, offer.product_id, offer.condition, price, item.copies, link)


def _unavailable(one: Unavailable) -> UnavailableCard:
    return UnavailableCard(
        one.line,
        one.reason,
        msgspec.UNSET if one.candidates is None else one.candidates,
        msgspec.UNSET if one.copies is None else one.copies,
    )


def _amount(units: int) -> Decimal:
    return Decimal(dollars(units))
