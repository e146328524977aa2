"""One rate limit as a token bucket, kept as GCRA keeps it: a single number, the theoretical
arrival time (`tat`). Pure.

Arrival time and now in; admitted or not, what is left and when more comes out. Times are seconds
on any one clock.
"""

from __future__ import annotations

import math

from cardsync.limits import Limit


def admits(limit: Limit, tat: float, now: float) -> bool:
    return tat - now <= limit.tolerance


def after_one(limit: Limit, tat: float, now: float) -> float:
    """The arrival time once a request was admitted."""
    return max(tat, now) + limit.emission


def remaining(limit: Limit, tat: float, now: float) -> int:
    """How many requests would be admitted now, one after the other."""
    ahead = max(0.0, tat - now)
    return min(limit.burst, max(0, math.floor((limit.tolerance - ahead) / limit.emission + 1)))


def seconds_until_admitted(limit: Limit, tat: float, now: float) -> int:
    """Whole seconds, at least 1: what Retry-After says."""
    return math.ceil(max(1.0, tat - now - limit.tolerance))


def seconds_until_full(tat: float, now: float) -> int:
    return math.ceil(max(0.0, tat - now))


def may_go_unsaid(limit: Limit, tat: float, now: float) -> int:
    """How many requests a process may admit before it must tell the others: less, the less is
    left.
    """
    return max(1, min(limit.burst // 8, remaining(limit, tat, now) // 4))
