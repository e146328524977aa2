"""The shapes of prices that wait, as the API and the page show them. The module is pure."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from cardsync.prices.proposals.decide_proposals import Decided


class PriceReviewShown(msgspec.Struct):
    """`revision` is sent back with the seller's word; a price that changes has another one. `worth`
    is the move times the copies; null for staff who may not see revenue.
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
    current_price: str | None
    proposed_price: str
    revision: str
    created_at: datetime
    expires_at: datetime
    worth: str | None
    """The move times the copies, in USD"""


class PriceReviewsShown(msgspec.Struct):
    reviews: list[PriceReviewShown]
    total: int
    page: int
    per_page: int
    total_pages: int


class RefusedReview(msgspec.Struct):
    marketplace_id: int
    code: str
    error: str


class DecidedReviews(msgspec.Struct):
    """`run_id` is the pricing run of accepted prices."""

    decided: int
    """The reviews that are decided"""
    refused: list[RefusedReview]
    """The reviews that could not be decided, and why"""
    run_id: int | None


def decided_body(done: Decided) -> DecidedReviews:
    refused = [RefusedReview(one.key, one.problem.code, str(one.problem)) for one in done.refused]
    return DecidedReviews(done.decided, refused, done.run_id)
