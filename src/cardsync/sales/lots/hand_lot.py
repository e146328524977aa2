"""Checks the costs and days of lots that a person enters. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.sales.lots.add_lots import CENT, COST_MOST, NewLot

Given = tuple[int, int, Decimal | None, date | None]


def hand_lots(caller: Caller, given: Iterable[Given], now: datetime) -> list[NewLot]:
    """Return the entered lots as `NewLot`s. Raises InvalidPayload with the index of a wrong lot."""
    today = caller.today(now)
    return [
        NewLot(
            card,
            quantity,
            _cost(f"lots[{at}].cost", cost),
            _day(f"lots[{at}].bought_on", day or today, today),
            "hand",
        )
        for at, (card, quantity, cost, day) in enumerate(given)
    ]


def changed_fields(caller: Caller, given: JsonMapping, now: datetime) -> JsonObject:
    """Return the changes of a lot, with checked cost and day. Raises InvalidPayload."""
    changes = dict(given)
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
