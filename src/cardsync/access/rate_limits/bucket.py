"""A process's view of one token bucket: it admits a request, refuses it, or first requires a report
to the other processes. Pure.

Its arrival time is a lower bound of the true one, on this process's monotonic clock: the database's
last value plus the requests admitted here since.
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
        # The database does not have this number of admitted requests yet.
        self.unsaid = 0
        # The holder's credentials were last found valid at this time.
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
        """Take in the database's answer to a report of `said` requests: it was read at `asked_at`
        or later, and its arrival time was `ahead` seconds ahead then.

        Until this answer the requests count as unsaid: a process that admits more while it
        asks would not know of the others yet.
        """
        self.unsaid -= said
        self.tat = max(self.tat, asked_at + ahead + self.unsaid * self.limit.emission)

    def state(self, now: float) -> str:
        """Return the number that may be spent at once and the time when the bucket is full again;
        with nothing left, the time of the next admission.
        """
        left = gcra.remaining(self.limit, self.tat, now)
        if left:
            seconds = gcra.seconds_until_full(self.tat, now)
        else:
            seconds = gcra.seconds_until_admitted(self.limit, self.tat, now)
        return f'"{self.group}";r={left};t={seconds}'
