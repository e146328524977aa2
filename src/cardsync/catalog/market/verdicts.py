"""Judges market evidence: returns the verdict from the observations at a moment, and its reason.
Pure.

A verdict without usable evidence is null, never zero. An observation with a time in the future is
unknown. Evidence that is exactly as old as its limit is fresh. Prices are ten-thousandths of a
dollar.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal, NamedTuple

BUY_OUT_WINDOW: Final = timedelta(hours=4)
SALES_WINDOW: Final = timedelta(days=30)
SALES_WEEK: Final = timedelta(days=7)
SALES_FETCHED: Final = timedelta(hours=24)
LISTINGS_FRESH: Final = timedelta(hours=24)
SALES_SAMPLE: Final = 25
ANCHOR_SALES: Final = 3

# A buy-out is a fall of a cell's supply by at least four fifths, from at least ten copies, within a
# day.
FALL_WITHIN: Final = timedelta(hours=24)
FALL_FROM_COPIES: Final = 10
FALL_LEAVES_BP: Final = 2_000

# Supply older than this can't belong to a buy-out that still counts.
SUPPLY_SINCE: Final = BUY_OUT_WINDOW + 2 * FALL_WITHIN

# A spike is a rise of the last days' prices above the median of the earlier days in sixty days.
SPIKE_BASE: Final = timedelta(days=60)
SPIKE_LASTS_DAYS: Final = 3
SPIKE_BASE_DAYS: Final = 10
SPIKE_RISE_BP: Final = 3_000
SPIKE_SPREAD_BP: Final = 1_000
_WHOLE_BP: Final = 10_000

Age = Literal["fresh", "unknown", "future", "expired"]


class Cell(NamedTuple):
    """The condition, printing and language of a part of a product's market."""

    condition: str
    printing: str
    language: str


class Sale(NamedTuple):
    sold_at: datetime
    price: int
    quantity: int
    cell: Cell


class Supply(NamedTuple):
    """The listings of one cell at one moment; without listings, a supply of zero copies."""

    observed_at: datetime
    listings: int
    copies: int
    low: int | None


class Price(NamedTuple):
    observed_at: datetime
    price: int


@dataclass(frozen=True)
class Verdict:
    """`holds` is None if the evidence does not suffice. `reason` is a sentence."""

    holds: bool | None
    code: str
    reason: str


@dataclass(frozen=True)
class BuyOut(Verdict):
    detected_at: datetime | None = None


@dataclass(frozen=True)
class Spike(Verdict):
    base: int | None = None
    rise_bp: int | None = None


@dataclass(frozen=True)
class Clearing(Verdict):
    units: int | None = None


def age_of(observed_at: datetime | None, now: datetime, within: timedelta) -> Age:
    """Return whether an observation may still be used."""
    if observed_at is None:
        return "unknown"
    if observed_at > now:
        return "future"
    return "fresh" if now - observed_at <= within else "expired"


_AGE_SENTENCES: Final[dict[Age, str]] = {
    "fresh": "{what} is fresh.",
    "unknown": "{what} was never observed.",
    "future": "{what} carries a time in the future, so it is unknown.",
    "expired": "{what} is older than {hours} hours.",
}


def freshness(
    what: str,
    observed_at: datetime | None,
    now: datetime,
    within: timedelta,
) -> Verdict:
    """Return whether evidence with this time is fresh."""
    age = age_of(observed_at, now, within)
    hours = int(within / timedelta(hours=1))
    holds = None if age in ("unknown", "future") else age == "fresh"
    return Verdict(holds, age, _AGE_SENTENCES[age].format(what=what, hours=hours))


def buy_out(supply: Iterable[Supply], sales: Iterable[Sale], now: datetime) -> BuyOut:
    """Find a fall of the supply within a day, with sales, from which the supply has not recovered.
    `detected_at` is the time of the first observation after the fall. `in_buy_out_window` decides
    whether that is recent.
    """
    seen = sorted(one for one in supply if one.observed_at <= now)
    if len(seen) < 2:
        return BuyOut(None, "unknown", "Supply was observed less than twice.")
    sold = sorted(sale.sold_at for sale in sales if sale.sold_at <= now and sale.quantity > 0)
    detected: Supply | None = None
    from_copies = 0
    unsold = False
    for place, one in enumerate(seen):
        if detected is not None and not _fell(from_copies, one.copies):
            detected = None
        if detected is not None:
            continue
        before = [
            early
            for early in seen[:place]
            if one.observed_at - early.observed_at <= FALL_WITHIN
            and early.copies >= FALL_FROM_COPIES
            and _fell(early.copies, one.copies)
        ]
        with_sales = [early for early in before if _any(sold, early.observed_at, one.observed_at)]
        unsold = bool(before) and not with_sales
        if with_sales:
            detected, from_copies = one, max(early.copies for early in with_sales)
    if detected is not None:
        said = (
            f"Supply fell from {from_copies} to {detected.copies} copies within a day, with sales."
        )
        return BuyOut(True, "bought_out", said, detected.observed_at)
    if unsold:
        return BuyOut(False, "no_sales", "Supply fell within a day, but no sale was observed.")
    return BuyOut(False, "no_fall", "Supply did not fall by four fifths, or it has recovered.")


def in_buy_out_window(detected_at: datetime | None, now: datetime) -> bool:
    """Return whether a buy-out was detected in the last four hours."""
    return age_of(detected_at, now, BUY_OUT_WINDOW) == "fresh"


def _fell(before: int, after: int) -> bool:
    return after * _WHOLE_BP <= before * FALL_LEAVES_BP


def _any(sorted_times: Sequence[datetime], first: datetime, last: datetime) -> bool:
    return bisect_left(sorted_times, first) < bisect_right(sorted_times, last)


def spike(prices: Iterable[Price], now: datetime) -> Spike:
    """Return whether the prices of the last three days are far above the median of the days before,
    within sixty days. The earlier days must be stable: half of them are within a tenth of their
    median.
    """
    days = _daily(one for one in prices if now - SPIKE_BASE <= one.observed_at <= now)
    since = (now - timedelta(days=SPIKE_LASTS_DAYS)).date()
    base = [price for day, price in days.items() if day <= since]
    last = [price for day, price in days.items() if day > since]
    if len(base) < SPIKE_BASE_DAYS:
        return Spike(
            None, "too_few_days", f"Prices for {len(base)} days are not enough for a base."
        )
    middle = median(base)
    if spread(base, middle) * _WHOLE_BP > middle * SPIKE_SPREAD_BP:
        return Spike(None, "unstable", "The price over sixty days is not stable.", middle)
    if len(last) < SPIKE_LASTS_DAYS:
        return Spike(None, "unknown", "A price for one of the last few days is missing.", middle)
    rise = (min(last) - middle) * _WHOLE_BP // middle
    if rise >= SPIKE_RISE_BP:
        said = f"The price has been {rise / 100:g}% above its median for {len(last)} days."
        return Spike(True, "spike", said, middle, rise)
    return Spike(False, "no_spike", "The price is near its median.", middle, rise)


def _daily(prices: Iterable[Price]) -> dict[date, int]:
    """Return each day's median price; prices that are not positive are ignored."""
    by_day: dict[date, list[int]] = {}
    for one in prices:
        if one.price > 0:
            by_day.setdefault(one.observed_at.date(), []).append(one.price)
    return {day: median(found) for day, found in by_day.items()}


def clearing(
    sales: Iterable[Sale],
    cell: Cell,
    fetched_at: datetime | None,
    now: datetime,
) -> Clearing:
    """Count the cell's units of the last 30 days among the latest 25 sales of its product in all
    cells. Zero does not prove that there is no demand, because the sample is small.
    """
    clock = freshness("The latest check of sales", fetched_at, now, SALES_FETCHED)
    if not clock.holds:
        return Clearing(None, clock.code, clock.reason)
    past = sorted((sale for sale in sales if sale.sold_at <= now), reverse=True)
    sample = past[:SALES_SAMPLE]
    units = sum(
        sale.quantity for sale in sample if sale.cell == cell and sale.sold_at >= now - SALES_WINDOW
    )
    said = f"{units} copies are among the latest {len(sample)} sales of the product."
    return Clearing(True, "counted", said, units)


def median(values: Sequence[int]) -> int:
    """Return the median; the mean of two middle values rounds half-up."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half] + 1) // 2


def spread(values: Sequence[int], middle: int) -> int:
    """Return the median absolute deviation (MAD)."""
    return median([abs(value - middle) for value in values])
