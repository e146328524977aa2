"""One rate limit as a token bucket, kept as GCRA keeps it: a single number, the theoretical arrival time (`tat`). Pure.

Arrival time and now in; admitted or not, what is left and when more comes out. Times are seconds on any one clock.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

WINDOW = 60
MOST = 1_000_000_000
_WRITTEN = re.compile(r"([0-9]{1,10})/min(?::([0-9]{1,10}))?")


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` requests a minute, of which `burst` may come at once."""

    count: int
    burst: int
    # Seconds that one request costs; how far the arrival time may lie ahead of a request that is admitted.
    emission: float = field(init=False)
    tolerance: float = field(init=False)

    def __post_init__(self) -> None:
        emission = WINDOW / self.count
        object.__setattr__(self, "emission", emission)
        # A millionth of a request for what floats lose: a burst must not be short of its last one.
        object.__setattr__(self, "tolerance", (self.burst - 1 + 1e-6) * emission)


def read_limit(text: str) -> Limit | None:
    """`300/min:100` or `300/min` (a burst of a third) as a limit, `0` as none; ValueError says what is wrong."""
    text = text.strip()
    if text == "0":
        return None
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no rate limit; write <n>/min or <n>/min:<burst>, for example 300/min:100, or 0")
    count = int(found[1])
    burst = int(found[2]) if found[2] else max(1, count // 3)
    if not (1 <= count <= MOST and 1 <= burst <= MOST):
        raise ValueError(f"{text!r}: requests and burst are 1 to {MOST:,}; 0 alone switches the limit off")
    return Limit(count, burst)


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
    """How many requests a process may admit before it must tell the others: less, the less is left."""
    return max(1, min(limit.burst // 8, remaining(limit, tat, now) // 4))
