"""The JSON structs of customers with their notes and of returned orders, and the functions that
fill them. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.orders.one_customer import REPEAT_REFUNDS, OneCustomer, Refunder
from cardsync.orders.returns import Copies, Restocked, Returned
from cardsync.orders.shown import CustomerBody, moment, money, readable


class OrderOfCustomerShown(msgspec.Struct):
    id: int
    order_number: str
    order_date: date | None
    status: str
    total_amt: str | None
    refund_amt: str | None


class CustomerInFull(CustomerBody, kw_only=True):
    """`returning`: more than one order; `repeat_refunder`: more than one refunded order. `orders`
    holds the newest. The totals are absent for staff who may not see revenue.
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
    """`refunded_total` is absent for staff who may not see revenue."""

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


def customer_in_full(found: OneCustomer) -> CustomerInFull:
    return CustomerInFull(
        key=found.key,
        buyer_name=found.buyer_name,
        order_count=found.order_count,
        first_order_at=moment(found.first_order_at),
        last_order_at=moment(found.last_order_at),
        lifetime_total=money(found.lifetime_total) or UNSET,
        returning=found.order_count > 1,
        refunded_orders=found.refunded_orders,
        refunded_total=money(found.refunded_total) or UNSET,
        repeat_refunder=found.refunded_orders >= REPEAT_REFUNDS,
        note=found.note,
        note_updated_at=moment(found.note_updated_at),
        orders=[
            OrderOfCustomerShown(
                *order[:4],
                total_amt=money(order.total_amt),
                refund_amt=money(order.refund_amt),
            )
            for order in found.orders
        ],
    )


def refunders(found: Sequence[Refunder]) -> Refunders:
    return Refunders(
        [
            RefunderShown(
                each.key,
                each.buyer_name,
                each.refunded_orders,
                money(each.refunded_total) or UNSET,
            )
            for each in found
        ]
    )


def _copies(found: Sequence[Copies]) -> list[CopiesShown]:
    return [
        CopiesShown(*each[:6], location_code=each.place.code if each.place else None)
        for each in found
    ]


def returns_page(
    found: Sequence[Returned],
    total: int,
    page: int,
    per_page: int,
) -> ReturnsPage:
    told = [
        ReturnShown(
            order_id=each.order_id,
            order_number=each.order_number,
            order_date=each.order_date,
            refund_type=each.refund_type,
            refund_amt=money(each.refund_amt),
            refund_reason=readable(each.refund_reason),
            restocked_at=moment(each.restocked_at),
            items=_copies(each.copies),
        )
        for each in found
    ]
    return ReturnsPage(told, total, page, per_page, -(-total // per_page))


def restocked_body(done: Restocked) -> RestockedShown:
    put = [CopiesPut(one.card_id, one.place.code, one.quantity) for one in done.put]
    return RestockedShown(done.order_id, put, _copies(done.left))
