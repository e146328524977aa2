"""Computes a seller's net amount of a price, and the marketplace's fees of an order, by fee level
and date. Pure and exact.

Prices are integers in ten-thousandths of a dollar (units). Net amounts are integers in
ten-thousandths of a unit, so that percentages in basis points are never rounded.
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
    """The fees of Direct cards. Of a price under `below`, the marketplace takes only `share_bp`. Of
    a price from `below` up, it takes `a_card` per card, commission and processing.
    """

    below: int
    share_bp: int
    a_card: int


@dataclass(frozen=True, slots=True)
class FeeSchedule:
    """The marketplace's fees from the date `since` on.

    `commission_most` is the highest commission on one product.
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
    """Return the schedule in effect at `moment`; before the first schedule, the first."""
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
    """Return a price without shipping, less its fees, in ten-thousandths of a unit."""
    kept = min(price * schedule.commission_bp[level], schedule.commission_most * WHOLE_BP)
    kept += price * schedule.processing_bp[level]
    if not direct or schedule.direct is None:
        return price * WHOLE_BP - kept - schedule.a_sale * WHOLE_BP
    if price < schedule.direct.below:
        return price * (WHOLE_BP - schedule.direct.share_bp)
    return price * WHOLE_BP - kept - schedule.direct.a_card * WHOLE_BP


def gap(schedule: FeeSchedule, level: FeeLevel) -> tuple[int, int] | None:
    """Return the range of Direct prices, its end excluded, whose net amount is less than that of
    the highest price under `direct.below`; None without such prices.
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
    """Return the expected fees of an order with `lines` of amount and copies. Percentage fees do
    not apply to refunded amounts, and a fully refunded order has no fees. The SQL of
    `line_profit.py` computes the same fees.
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
    """Return the schedule in effect on a day in the marketplace's time zone; for None, the newest
    schedule.
    """
    held = (one for one in reversed(SCHEDULES) if day is None or one.since <= day)
    return next(held, SCHEDULES[0])


def rule_of(schedule: FeeSchedule, level: FeeLevel) -> str:
    """Return a sentence for sellers about the schedule's percentages and amounts."""
    return (
        f"{percent(schedule.commission_bp[level])} of items and shipping,"
        f" at most ${dollars(schedule.commission_most)} a product,"
        f" + {percent(schedule.processing_bp[level])} + ${dollars(schedule.a_sale)} an order"
        f" (level {level}, since {schedule.since})"
    )
