"""The schemas of customers with their notes, and of returned orders, for the API and pages."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import OfRow, Reads
from cardsync.sales.orders.cells import RefundType
from cardsync.sales.orders.schemas import Amount, CustomerBody, readable


class OrderOfCustomerShown(msgspec.Struct):
    id: int
    order_number: str
    order_date: date | None
    status: str
    """The marketplace's status; Unknown without one"""
    total_amt: str | None
    refund_amt: str | None


class CustomerInFull(CustomerBody, kw_only=True):
    """`returning`: more than one order; `repeat_refunder`: more than one refunded order. `orders`
    has the newest orders. Name and note are empty for a caller who may not see buyers. The totals
    are absent for staff who may not see revenue.
    """

    returning: bool
    """The customer has more than one order"""
    refunded_orders: int
    refunded_total: str | UnsetType = UNSET
    repeat_refunder: bool
    """More than one order of the customer was refunded"""
    note: str
    """The shop's note on the customer; empty for a caller who may not see buyers"""
    note_updated_at: str | None
    """When the note was changed last"""
    orders: list[OrderOfCustomerShown]
    """The newest orders"""


class CustomerNoteShown(msgspec.Struct):
    key: str
    """Identifies the customer in URLs"""
    note: str
    """The shop's note on the customer"""


class RefunderShown(msgspec.Struct):
    """`buyer_name` is empty for a caller who may not see buyers. `refunded_total` is absent for
    staff who may not see revenue.
    """

    key: str
    """Identifies the customer in URLs"""
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
    location_code: Annotated[
        str | None, OfRow(lambda copies: copies.place.code if copies.place else None)
    ]


class ReturnShown(msgspec.Struct):
    order_id: int
    order_number: str
    order_date: date | None
    refund_type: Annotated[str, Like(RefundType)] | None
    refund_amt: Amount | None
    refund_reason: Annotated[str | None, Reads(readable)]
    restocked_at: datetime | None
    """When the order was decided; null before"""
    items: list[CopiesShown]


class ReturnsPage(msgspec.Struct):
    returns: list[ReturnShown]
    total: int
    page: int
    per_page: int
    total_pages: int
    state_counts: dict[str, int]
    """The number of refunded orders in each state"""


class CopiesPut(msgspec.Struct):
    card_id: int
    location_code: str
    quantity: int


class RestockedShown(msgspec.Struct):
    """`left` lists the copies that are not restocked."""

    order_id: int
    put: list[CopiesPut]
    """The restocked copies"""
    left: list[CopiesShown]
    """The copies that are not restocked"""
