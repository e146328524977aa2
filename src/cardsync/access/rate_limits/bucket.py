"""One token bucket in this process. It admits a request, refuses it, or first requires a report to
the other processes. Pure.

`tat`, the theoretical arrival time on this process's monotonic clock, is never later than the true
one: it is the database's last value plus the requests that this process has admitted since.
"""

from __future__ import annotations

from enum import Enum, auto

from cardsync.access.rate_limits import gcra
from cardsync.platform.limits import WINDOW, Limit


class Verdict(Enum):
    ADMIT = auto()
    REFUSE = auto()
    REPORT_FIRST = auto()


class Bucket:
    __slots__ = ("checked_at", "group", "limit", "name", "policy", "tat", "unsaid")

    def __init__(self, group: str, limit: Limit, holder: str) -> None:
        self.group = group
        self.limit = limit
        self.name = f"{group}:{holder}"
        self.policy = f'"{group}";q={limit.count};w={WINDOW}'
        self.tat = float("-inf")
        # The number of admitted requests that are not yet in the database.
        self.unsaid = 0
        # The time when the holder's credentials were last found valid.
        self.checked_at = float("-inf")

    def is_empty(self, now: float) -> bool:
        return not gcra.admits(self.limit, self.tat, now)

    def verdict(self, now: float) -> Verdict:
        if self.is_empty(now):
            return Verdict.REFUSE
        if self.unsaid >= gcra.may_go_unsaid(self.limit, self.tat, now):
            return Verdict.REPORT_FIRST
        return Verdict.ADMIT

    def admit(self, now: float) -> None:
        self.tat = gcra.after_one(self.limit, self.tat, now)
        self.unsaid += 1

    def learn(self, asked_at: float, ahead: float, said: int) -> None:
        """Apply the database's answer to a report of `said` requests. The answer was read at
        `asked_at` or later, when the arrival time was `ahead` seconds in the future.

        The reported requests stay in `unsaid` until the answer arrives. The requests that this
        process admits during the exchange are not in the answer.
        """
        self.unsaid -= said
        self.tat = max(self.tat, asked_at + ahead + self.unsaid * self.limit.emission)

    def state(self, now: float) -> str:
        """Return the item for the RateLimit header: how many requests may be sent now, and the
        seconds until the bucket is full; if no request may be sent now, the seconds until the next
        request may be sent.
        """
        left = gcra.remaining(self.limit, self.tat, now)
        if left:
            seconds = gcra.seconds_until_full(self.tat, now)
        else:
            seconds = gcra.seconds_until_admitted(self.limit, self.tat, now)
        return f'"{self.group}";r={left};t={seconds}'
