"""Computes one rate limit as a token bucket in the manner of GCRA, which stores a single number,
the theoretical arrival time (`tat`). Pure.

The arrival time and the current time determine whether a request is admitted, how many more would
be, and when the next one will be. Times are seconds on any clock.
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
    """Return whole seconds, at least 1, for Retry-After."""
    return math.ceil(max(1.0, tat - now - limit.tolerance))


def seconds_until_full(tat: float, now: float) -> int:
    return math.ceil(max(0.0, tat - now))


def may_go_unsaid(limit: Limit, tat: float, now: float) -> int:
    """Return how many requests a process may admit before it must report to the others. The number
    falls with what is left.
    """
    return max(1, min(limit.burst // 8, remaining(limit, tat, now) // 4))
