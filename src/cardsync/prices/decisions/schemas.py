"""The JSON structs of prices that need review, for the API and the page. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from cardsync.platform.clock import exact
from cardsync.platform.kit.struct_rows import Column, Reads, ReadsFor, Usd, struct_of
from cardsync.platform.money import dollars

_Worth = Annotated[str | None, ReadsFor(lambda caller, units: caller.revenue(dollars(units)))]


class PriceReviewShown(msgspec.Struct):
    """`revision` is sent back with the seller's decision; it changes when the price changes.
    `worth` is the move times the copies; null for staff who may not see revenue.
    """

    marketplace_id: int
    card_id: int | None
    product_name: str | None
    set_name: str | None
    number: str | None
    condition: str | None
    printing: str | None
    quantity: int | None
    reason: Literal["rise", "drop", "first_price"]
    rule_id: int | None
    current_price: Usd | None
    proposed_price: Usd
    revision: Annotated[str, Reads(exact)]
    created_at: datetime
    expires_at: datetime
    worth: _Worth
    """The move times the copies, in USD"""


class PriceReviewsShown(msgspec.Struct):
    reviews: list[PriceReviewShown]
    total: int
    page: int
    per_page: int
    total_pages: int


class RefusedReview(msgspec.Struct):
    marketplace_id: Annotated[int, Column("key")]
    code: Annotated[str, Column("problem.code")]
    error: Annotated[str, Column("problem"), Reads(str)]


_Refused = Annotated[
    list[RefusedReview],
    Reads(lambda refused: [struct_of(RefusedReview, one) for one in refused]),
]


class DecidedReviews(msgspec.Struct):
    """`run_id` is the pricing run of accepted prices."""

    decided: int
    """Number of reviews that are decided"""
    refused: _Refused
    """The reviews that could not be decided, and why"""
    run_id: int | None
