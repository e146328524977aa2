"""Computes a rate limit as a token bucket with the algorithm GCRA. It stores only one number, the
theoretical arrival time (`tat`). Pure.

The arrival time and the present time determine whether a request is admitted, how many more are
admitted now, and when the next one is admitted. Times are seconds on any clock.
"""

from __future__ import annotations

import math

from cardsync.platform.limits import Limit


def admits(limit: Limit, tat: float, now: float) -> bool:
    return tat - now <= limit.tolerance


def after_one(limit: Limit, tat: float, now: float) -> float:
    """Return the arrival time after one more request."""
    return max(tat, now) + limit.emission


def remaining(limit: Limit, tat: float, now: float) -> int:
    """Return how many requests would be admitted now."""
    ahead = max(0.0, tat - now)
    return min(limit.burst, max(0, math.floor((limit.tolerance - ahead) / limit.emission + 1)))


def seconds_until_admitted(limit: Limit, tat: float, now: float) -> int:
    """Return the whole seconds for Retry-After, at least 1."""
    return math.ceil(max(1.0, tat - now - limit.tolerance))


def seconds_until_full(tat: float, now: float) -> int:
    return math.ceil(max(0.0, tat - now))


def may_go_unsaid(limit: Limit, tat: float, now: float) -> int:
    """Return how many requests a process may admit before it must report them to the other
    processes. The fewer requests are left, the smaller this number.
    """
    return max(1, min(limit.burst // 8, remaining(limit, tat, now) // 4))
