"""Compares budgets with those of another time: how many times worse each is.

Machines are noisy, so a ratio to a floor of the same run is compared as it is, and any other figure
after it was divided by the machine's speed beside it. Figures of other sizes, or without a speed,
are not compared. `run_all.py --against HEAD` measures once more what seems worse, and the better of
the two counts.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable
from time import perf_counter
from typing import NamedTuple

from budgets import Budget
from results import Row

WORSE = 1.15
_ROUNDS, _LOOP, _BLOCK = 9, 60_000, bytes(4 << 20)


class Compared(NamedTuple):
    """A budget and how many times worse it is than before, or why that is not known."""

    budget: Budget
    times: float | None
    why: str = ""

    @property
    def worse(self) -> bool:
        return self.times is not None and self.times > WORSE

    def __str__(self) -> str:
        told = self.why if self.times is None else f"{self.times:.2f} times the last"
        return f"{self.budget.part}: {self.budget.what}: {told}{' WORSE' * self.worse}"


def machine_speed() -> float:
    """The milliseconds of a fixed piece of work: a loop, and a hash over some memory."""
    times = []
    for _ in range(_ROUNDS):
        began = perf_counter()
        sum(number * number for number in range(_LOOP))
        hashlib.sha256(_BLOCK).digest()
        times.append((perf_counter() - began) * 1000)
    return statistics.median(times)


def compared(before: Iterable[Row], after: Iterable[Row]) -> list[Compared]:
    """The budgets of `after`, each beside the same of `before`."""
    earlier = {(row.part, row.what): row for row in before}
    return [
        _compared(budget, earlier.get((row.part, row.what)), row)
        for row in after
        if (budget := row.budget) is not None
    ]


def _compared(budget: Budget, before: Row | None, after: Row) -> Compared:
    if before is None:
        return Compared(budget, None, "not measured before")
    if not before.sizes or before.sizes != after.sizes:
        return Compared(budget, None, f"measured with other sizes: {before.sizes or 'unknown'}")
    then, now = before.value, after.value
    if after.unit != "x":
        if not before.speed or not after.speed:
            return Compared(budget, None, "the speed of the machine is not known")
        then, now = then / before.speed, now / after.speed
    if budget.least:
        then, now = now, then
    if not then:
        return Compared(budget, None, "nothing to divide by")
    return Compared(budget, now / then)


def better(first: Iterable[Compared], second: Iterable[Compared]) -> list[Compared]:
    """Return the better of two measurements of each budget."""
    again = {one.budget: one for one in second}

    def least(one: Compared) -> Compared:
        other = again.get(one.budget)
        known = other is not None and other.times is not None
        return other if known and one.times is not None and other.times < one.times else one

    return [least(one) for one in first]
