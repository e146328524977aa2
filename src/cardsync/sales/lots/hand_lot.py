"""The fields of lots that a person enters, and the checks of their costs and days. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.access.caller import Caller
from cardsync.platform import errors, limits
from cardsync.platform.read_json import Amount, given_fields
from cardsync.platform.value_types import Values
from cardsync.sales.lots.add_lots import CENT, COST_MOST, NewLot

Id = Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID)]
Copies = Annotated[int, msgspec.Meta(ge=1, le=limits.SHELVED_QUANTITY)]


class LotByHand(msgspec.Struct):
    """`cost` is per copy, rounded to cents; null or absent is unknown. `bought_on` is today by
    default.
    """

    marketplace_id: Id
    quantity: Copies
    cost: Amount | None = None
    bought_on: date | None = None


class LotCorrection(msgspec.Struct):
    """Absent fields are unchanged; a cost of null is unknown."""

    quantity: Copies | UnsetType = UNSET
    cost: Amount | UnsetType | None = UNSET
    bought_on: date | UnsetType = UNSET


def hand_lots(caller: Caller, given: Iterable[LotByHand], now: datetime) -> list[NewLot]:
    """Return the entered lots as `NewLot`s. Raises InvalidPayload with the index of a wrong lot."""
    today = caller.today(now)
    return [
        NewLot(
            one.marketplace_id,
            one.quantity,
            _cost(f"lots[{at}].cost", one.cost),
            _day(f"lots[{at}].bought_on", one.bought_on or today, today),
            "hand",
        )
        for at, one in enumerate(given)
    ]


def changed_fields(caller: Caller, given: LotCorrection, now: datetime) -> Values:
    """Return the changes of a lot, with checked cost and day. Raises InvalidPayload."""
    changes = given_fields(given)
    if "cost" in changes:
        changes["cost"] = _cost("cost", changes["cost"])
    if "bought_on" in changes:
        changes["bought_on"] = _day("bought_on", changes["bought_on"], caller.today(now))
    return changes


def _cost(field: str, cost: Decimal | None) -> Decimal | None:
    if cost is None:
        return None
    if not 0 <= cost <= COST_MOST:
        raise errors.InvalidPayload(f"{field}: must be an amount like 1.50")
    return cost.quantize(CENT, ROUND_HALF_UP)


def _day(field: str, day: date, today: date) -> date:
    if day > today:
        raise errors.InvalidPayload(f"{field}: must not be later than today")
    return day
