"""Holds and recommendations as the API shows them: what operations return comes in, the JSON's
structs go out. Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from cardsync.pricing.receipts.sentences import money
from cardsync.recommendations.holds import Hold, Holds


class RecommendedCard(msgspec.Struct):
    id: int
    product_name: str
    set_name: str
    number: str
    condition: str | None
    printing: str


class OptionsShown(msgspec.Struct):
    """The formula's price stands now; the aggressive one would undercut the lowest listing."""

    formula_price: str | None
    aggressive_price: str | None
    lowest_listing: str | None


class GateVerdict(msgspec.Struct):
    """`condition_listings` is the count of the decision, null where none was known."""

    condition_listings: int | None
    passed: bool
    reason: str


class HoldShown(msgspec.Struct):
    """`price_options` is null unless all evidence behind them is fresh at this moment."""

    marketplace_id: int
    card: RecommendedCard
    state: Literal["held", "bought_out", "stale"]
    price_options: OptionsShown | None
    buy_out_detected_at: datetime | None
    gate_verdict: GateVerdict
    observed_at: datetime | None


class HoldsShown(msgspec.Struct):
    holds: list[HoldShown]
    total: int


def holds_body(found: Holds) -> HoldsShown:
    return HoldsShown([_hold(one) for one in found.found], found.total)


def _hold(one: Hold) -> HoldShown:
    options = one.options
    return HoldShown(
        one.card.marketplace_id,
        card_body(one.card),
        one.state,  # type: ignore[arg-type]
        OptionsShown(*(money(price) for price in options)) if options else None,
        one.buy_out_detected_at,
        GateVerdict(one.listings, False, one.reason),
        one.observed_at,
    )


def card_body(card: object) -> RecommendedCard:
    """Return the card of a row that has a card's columns."""
    return msgspec.convert(
        {name: getattr(card, name) for name in RecommendedCard.__struct_fields__},
        RecommendedCard,
    )
