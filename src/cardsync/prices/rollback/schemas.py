"""The JSON structs of rollbacks and their diffs, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import usd
from cardsync.platform.value_types import JsonObject
from cardsync.prices.models import PriceRollback, RollbackState
from cardsync.prices.rollback import rollbacks


class RolledBackCard(msgspec.Struct):
    """`current_price` is the marketplace's price. `asked_price` is the price that the rollback
    replaces: the card's target or, without a target, its current price. `price` is the price that
    the rollback restores.
    """

    marketplace_id: int
    card_id: int
    product_name: str
    set_name: str
    condition_label: str
    current_price: str | None
    target_price: str | None
    asked_price: str | None
    """The price that the rollback replaces, in USD"""
    price: str
    """The price that the card returns to, in USD"""


CardDiff = list[RolledBackCard]


class RollbackShown(msgspec.Struct):
    """`diff` has the first cards. A dry run has neither id nor state."""

    id: int | None
    state: RollbackState | None
    """requested, ready, served, applied, failed or expired"""
    cards: int
    diff: CardDiff
    run_id: int | None = None
    rule_id: int | None = None
    list: int | None = None
    """The list whose cards get their former prices; null if the scope is not a list"""
    since: str | None = None
    """The time whose prices are restored"""
    error: JsonObject | None = None
    requested_at: datetime | None = None
    ready_at: datetime | None = None
    served_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None


class RollbackList(msgspec.Struct):
    rollbacks: list[RollbackShown]
    """Rollbacks, newest first"""


_AMOUNTS = ("current_price", "target_price", "price")


def diff_body(diff: rollbacks.Diff) -> CardDiff:
    fields = []
    for row in diff:
        amounts = {name: usd(row[name]) for name in _AMOUNTS}
        asked = amounts["target_price"] or amounts["current_price"]
        fields.append(row | amounts | {"card_id": row["id"], "asked_price": asked})
    return msgspec.convert(fields, CardDiff)


def rollback_body(rollback: PriceRollback, diff: rollbacks.Diff, now: datetime) -> RollbackShown:
    state = rollbacks.state_at(rollback, now)
    return struct_of(RollbackShown, rollback, state=state, diff=diff_body(diff), **rollback.scope)


class Recorded(msgspec.Struct):
    status: Literal["recorded"]
    id: int
