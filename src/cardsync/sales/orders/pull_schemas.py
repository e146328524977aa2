"""The schemas of pull sessions for the API and pages. Pure."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import msgspec

from cardsync.access.caller import Buyer
from cardsync.platform.kit.struct_rows import OfRow
from cardsync.sales.orders.pull_models import PullState


class PullSession(msgspec.Struct):
    id: int
    status: PullState
    """open, completed or cancelled"""
    opened_at: datetime
    completed_at: datetime | None
    order_count: int
    item_count: int
    pulled_count: int
    review_count: int


class PullItem(msgspec.Struct):
    """`location_code` is the first place on the shelves, or null."""

    id: int
    product_name: str | None
    product_line: str | None
    condition: str | None
    set_name: str | None
    rarity: str | None
    quantity: int | None
    main_photo_url: str | None
    location_code: str | None


class PullOrder(msgspec.Struct):
    """An order with its values when the session was opened. `changed` names the values that an
    upload changed since (`items`: cards or quantities). `in_review`: the order is no longer to be
    pulled. `missing_at`: when a card of the order was reported as missing. Each of these three
    causes `needs_review`. `deferred`: moved to the end.
    """

    id: int
    order_number: str
    buyer_name: Buyer
    order_date: date | None
    status: str | None
    """The order's status when the session was opened"""
    shipping_type: str
    item_count: int
    shipped_marked_at: datetime | None
    pulled_at: datetime | None
    missing_at: datetime | None
    deferred: Annotated[bool, OfRow(lambda row: row.deferred_turn is not None)]
    in_review: bool
    changed: list[str]
    """The fields that an upload changed since the session was opened"""
    needs_review: Annotated[
        bool, OfRow(lambda row: row.in_review or bool(row.changed) or row.missing_at is not None)
    ]
    """An upload changed the order, or a card of it is missing"""
    items: list[PullItem]


class PullSessionOrders(PullSession, kw_only=True):
    orders: list[PullOrder]
    """The orders of the session, in work order"""


class ManyMarked(msgspec.Struct):
    """`left` counts the orders that are not marked now: already shipped or marked, or with an
    undecided missing card (`missing`).
    """

    order_ids: list[int]
    """The orders that are marked now"""
    left: int
    """The number of requested orders that are unchanged"""
    missing: list[int]
    """The orders that are not marked because of a missing card; `confirm` marks them, too"""


class OrderMarks(msgspec.Struct):
    id: int
    shipped_marked_at: datetime | None
    marked_shipped_pending: bool
    pull_dismissed_at: datetime | None
