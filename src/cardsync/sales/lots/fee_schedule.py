"""Computes a seller's net of a price, and the marketplace's fees of an order, by fee level and
date. Pure and exact.

Nets are integers of 1/10,000 of a ten-thousandth of a dollar, so that no percentage of a price is
ever rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, Literal
from zoneinfo import ZoneInfo

from cardsync.platform.money import UNITS_PER_CENT, dollars, from_units, percent

FeeLevel = Literal["1-4", "pro"]
WHOLE_BP: Final = 10_000
MARKETPLACE_ZONE: Final = ZoneInfo("America/New_York")


@dataclass(frozen=True, slots=True)
class DirectFees:
    """The fees of Direct cards: the marketplace takes a share of a price under `below`, and from
    `below` on a fixed amount per card and the percentages of every sale.
    """

    below: int
    share_bp: int
    a_card: int


@dataclass(frozen=True, slots=True)
class FeeSchedule:
    """The fees that hold from one day on.

    `commission_most` is the most that the commission takes of one product.
    """

    since: date
    commission_bp: dict[FeeLevel, int]
    commission_most: int
    processing_bp: dict[FeeLevel, int]
    a_sale: int
    direct: DirectFees | None


_STANDARD: Final = FeeSchedule(
    since=date(2026, 1, 1),
    commission_bp={"1-4": 1_075, "pro": 925},
    commission_most=750_000,
    processing_bp={"1-4": 250, "pro": 500},
    a_sale=3_000,
    direct=None,
)
SCHEDULES: Final = (
    _STANDARD,
    FeeSchedule(
        since=date(2026, 6, 18),
        commission_bp=_STANDARD.commission_bp,
        commission_most=_STANDARD.commission_most,
        processing_bp=_STANDARD.processing_bp,
        a_sale=_STANDARD.a_sale,
        direct=DirectFees(below=24_900, share_bp=5_000, a_card=11_200),
    ),
)


def schedule_at(moment: datetime) -> FeeSchedule:
    """Return the newest schedule that holds at `moment`; a moment before the first gets the
    first.
    """
    day = moment.astimezone(MARKETPLACE_ZONE).date()
    return next(
        (schedule for schedule in reversed(SCHEDULES) if schedule.since <= day), SCHEDULES[0]
    )


def net(
    price: int,
    schedule: FeeSchedule,
    level: FeeLevel,
    *,
    direct: bool,
) -> int:
    """Return the rest of a price without shipping after the fees, times 10,000."""
    kept = min(price * schedule.commission_bp[level], schedule.commission_most * WHOLE_BP)
    kept += price * schedule.processing_bp[level]
    if not direct or schedule.direct is None:
        return price * WHOLE_BP - kept - schedule.a_sale * WHOLE_BP
    if price < schedule.direct.below:
        return price * (WHOLE_BP - schedule.direct.share_bp)
    return price * WHOLE_BP - kept - schedule.direct.a_card * WHOLE_BP


def gap(schedule: FeeSchedule, level: FeeLevel) -> tuple[int, int] | None:
    """Return the range of a Direct card's prices, its end excluded, that net less than the last
    price of the lower tier.
    """
    if schedule.direct is None:
        return None
    first = schedule.direct.below
    lower = net(first - UNITS_PER_CENT, schedule, level, direct=True)
    end = first
    while net(end, schedule, level, direct=True) < lower:
        end += UNITS_PER_CENT
    return (first, end) if end > first else None


@dataclass(frozen=True, slots=True)
class Expected:
    """The fees that the schedule expects of an order, in dollars, and its rule in words."""

    fees: Decimal
    rule: str


def expected_fees(
    ordered: date | None,
    level: FeeLevel,
    lines: Sequence[tuple[Decimal, int]],
    shipping: Decimal,
    refunded: Decimal,
) -> Expected:
    """Return the fees of an order of `lines` (amount and copies); refunded amounts have no fees,
    nor has an order that was refunded in full. The SQL of `line_profit.py` agrees with it.
    """
    schedule = schedule_on(ordered)
    products = sum((amount for amount, _ in lines), Decimal(0))
    paid = products + shipping
    rule = rule_of(schedule, level)
    if paid <= 0 or refunded >= paid:
        return Expected(Decimal("0.00"), rule)
    most = from_units(schedule.commission_most)
    commission = part(schedule.commission_bp[level])
    kept = sum((min(amount * commission, most * copies) for amount, copies in lines), Decimal(0))
    kept += shipping * commission + paid * part(schedule.processing_bp[level])
    fees = kept * (paid - refunded) / paid + from_units(schedule.a_sale)
    return Expected(fees.quantize(Decimal("0.01"), ROUND_HALF_UP), rule)


def part(bp: int) -> Decimal:
    return Decimal(bp) / WHOLE_BP


def schedule_on(day: date | None) -> FeeSchedule:
    """Return the newest schedule that holds on a day of the marketplace."""
    held = (one for one in reversed(SCHEDULES) if day is None or one.since <= day)
    return next(held, SCHEDULES[0])


def rule_of(schedule: FeeSchedule, level: FeeLevel) -> str:
    """Return the schedule's rule as a seller reads it."""
    return (
        f"{percent(schedule.commission_bp[level])} of items and shipping,"
        f" at most ${dollars(schedule.commission_most)} a product,"
        f" + {percent(schedule.processing_bp[level])} + ${dollars(schedule.a_sale)} an order"
        f" (level {level}, since {schedule.since})"
    )
