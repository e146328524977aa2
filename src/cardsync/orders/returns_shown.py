"""The shapes of customers with their notes, and of returned orders, as the API and pages show them."""

from __future__ import annotations

from datetime import date

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.orders.shown import CustomerBody


class OrderOfCustomerShown(msgspec.Struct):
    id: int
    order_number: str
    order_date: date | None
    status: str
    total_amt: str | None
    refund_amt: str | None


class CustomerInFull(CustomerBody, kw_only=True):
    """`returning`: more than one order; `repeat_refunder`: more than one refunded order. `orders`
    holds the newest. Without the right to see buyers, name and note are empty. The totals are
    absent for staff who may not see revenue.
    """

    returning: bool
    refunded_orders: int
    refunded_total: str | UnsetType = UNSET
    repeat_refunder: bool
    note: str
    note_updated_at: str | None
    orders: list[OrderOfCustomerShown]


class CustomerNoteShown(msgspec.Struct):
    key: str
    note: str


class RefunderShown(msgspec.Struct):
    """`buyer_name` is empty for a caller who may not see buyers. `refunded_total` is absent for
    staff who may not see revenue.
    """

    key: str
    buyer_name: str
    refunded_orders: int
    refunded_total: str | UnsetType = UNSET


class Refunders(msgspec.Struct):
    customers: list[RefunderShown]


class CopiesShown(msgspec.Struct):
    """`location_code` is the card's place; null if it is on no shelf."""

    item_id: int
    product_name: str | None
    set_name: str | None
    condition: str | None
    quantity: int
    card_id: int | None
    location_code: str | None


class ReturnShown(msgspec.Struct):
    order_id: int
    order_number: str
    order_date: date | None
    refund_type: str | None
    refund_amt: str | None
    refund_reason: str | None
    restocked_at: str | None
    items: list[CopiesShown]


class ReturnsPage(msgspec.Struct):
    returns: list[ReturnShown]
    total: int
    page: int
    per_page: int
    total_pages: int


class CopiesPut(msgspec.Struct):
    card_id: int
    location_code: str
    quantity: int


class RestockedShown(msgspec.Struct):
    """`left` are items that were put nowhere."""

    order_id: int
    put: list[CopiesPut]
    left: list[CopiesShown]
