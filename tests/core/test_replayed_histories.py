"""Histories replayed observation by observation: supply, sales and prices of real products walk by
chance from their real base prices, with planted buy-outs and spikes, and with lookalikes that are
none. The verdicts' recall and false alarms are counted.

A walk is drawn from one seed, so the counts are exact. docs/market.md has them.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cardsync.catalog.market.verdicts import (
    SUPPLY_SINCE,
    Cell,
    Price,
    Sale,
    Supply,
    buy_out,
    in_buy_out_window,
    spike,
)

SEED = 20261123
PRODUCTS = 240
DAYS = 60
LOOKS_A_DAY = 4
BEGIN = datetime(2026, 8, 1, tzinfo=UTC)
LOOK = timedelta(hours=24 // LOOKS_A_DAY)
OWN = Cell("NM", "Normal", "English")


@dataclass
class History:
    """`bought` and `risen` are the moments of what was planted, None where nothing was."""

    supply: list[Supply] = field(default_factory=list)
    sales: list[Sale] = field(default_factory=list)
    prices: list[Price] = field(default_factory=list)
    bought: datetime | None = None
    risen: datetime | None = None


def real_prices(folder: Path) -> list[int]:
    """Market prices of a real export, in ten-thousandths."""
    with (folder / "samples" / "pricing_real_864.csv").open(encoding="utf-8", newline="") as file:
        told = [row["TCG Market Price"].replace(",", "") for row in csv.DictReader(file)]
    found = [round(float(price) * 100) * 100 for price in told if price]
    return [price for price in found if price >= 2_500]


def walked(base: int, rng: random.Random) -> History:
    """Sixty days of one product, looked at four times a day."""
    history = History()
    event = rng.random()
    at = rng.randrange(20 * LOOKS_A_DAY, (DAYS - 10) * LOOKS_A_DAY)
    copies = rng.randrange(12, 80)
    for look in range(DAYS * LOOKS_A_DAY):
        now = BEGIN + look * LOOK
        sold = sum(rng.random() < 0.02 for _ in range(copies))
        back = sum(rng.random() < 0.02 for _ in range(60))
        seen = copies = max(copies - sold + back, 3)
        if event < 0.15 and look == at:
            # A buy-out: nearly all copies are sold between two looks.
            history.bought = now
            sold, seen = copies - copies // 8, copies // 8
            copies = seen
        elif event < 0.15 and at < look < at + 8:
            seen = copies = min(copies, 4)
        elif 0.15 <= event < 0.25 and look == at:
            # One large seller leaves, and nobody bought.
            sold, seen = 0, copies // 8
            history.sales = [sale for sale in history.sales if now - sale.sold_at > LOOK * 5]
        elif 0.25 <= event < 0.35 and at <= look < at + 40:
            # Supply melts over ten days.
            seen = copies = max(int(copies * 0.9), 2)
        elif 0.35 <= event < 0.45 and look == at:
            continue  # the look was missed
        for one in range(sold):
            moment = now - LOOK * (one + 1) / (sold + 1)
            history.sales.append(Sale(moment, base, 1, OWN))
        history.supply.append(Supply(now, seen, seen, base))
    _priced(history, base, rng)
    return history


def _priced(history: History, base: int, rng: random.Random) -> None:
    """A market price each day, near the base; a spike, or what only looks like one."""
    event = rng.random()
    at = rng.randrange(20, DAYS - 10)
    swing = 0.35 if event >= 0.9 else 0.03
    for day in range(DAYS):
        now = BEGIN + timedelta(days=day, hours=9)
        factor = 1 + rng.uniform(-swing, swing)
        if event < 0.15 and day >= at:
            factor *= 1.4 + event * 4
            history.risen = history.risen or now
        elif 0.15 <= event < 0.25 and day == at:
            factor *= 3  # a glitch of one day
        elif 0.25 <= event < 0.35 and day >= at:
            factor *= 1.2  # a rise, and no spike
        elif 0.35 <= event < 0.45 and day == at:
            continue  # no upload came
        history.prices.append(Price(now, max(int(base * factor) // 100, 1) * 100))


def alarms(history: History) -> Iterator[datetime]:
    """The looks that first show a buy-out, an hour after each look."""
    told = set[datetime]()
    for place, one in enumerate(history.supply):
        now = one.observed_at + timedelta(hours=1)
        since = now - SUPPLY_SINCE
        lately = [
            seen
            for seen in history.supply[max(place - 12, 0) : place + 1]
            if seen.observed_at >= since
        ]
        sold = [sale for sale in history.sales if since <= sale.sold_at <= now]
        found = buy_out(lately, sold, now).detected_at
        if in_buy_out_window(found, now) and found is not None and found not in told:
            told.add(found)
            yield found


def spikes(history: History) -> Iterator[datetime]:
    """The days on which a spike is found, each at noon."""
    for day in range(DAYS):
        now = BEGIN + timedelta(days=day, hours=12)
        if spike([one for one in history.prices if one.observed_at <= now], now).holds:
            yield now


@pytest.fixture(scope="module")
def histories(shared_data: Path) -> list[History]:
    rng = random.Random(SEED)
    bases = rng.choices(real_prices(shared_data), k=PRODUCTS)
    return [walked(base, rng) for base in bases]


def test_planted_buy_outs_are_found_and_lookalikes_are_not(histories):
    planted = [one for one in histories if one.bought]
    found = [one for one in planted if one.bought in set(alarms(one))]
    false = sum(at != one.bought for one in histories for at in alarms(one))
    looks = sum(len(one.supply) for one in histories)
    print(f"{len(found)} of {len(planted)} buy-outs, {false} false alarms in {looks} looks")
    assert (len(planted), len(found), false) == (35, 35, 0)


def test_planted_spikes_are_found_within_three_days_and_glitches_are_not(histories):
    planted = [one for one in histories if one.risen]
    told = [set(spikes(one)) for one in histories]
    found = late = false = 0
    for one, days in zip(histories, told, strict=True):
        if one.risen is not None:
            third = one.risen.replace(hour=12) + timedelta(days=2)
            found += third in days
            late += third not in days and third + timedelta(days=2) in days
        false += sum(one.risen is None or day < one.risen for day in days)
    print(f"{found} of {len(planted)} spikes ({late} later), {false} false days")
    assert (len(planted), found, false) == (31, 31, 2)
