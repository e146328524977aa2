"""One bucket as one process knows it. Pure: now in; admit, refuse, or tell the others first out.

Its arrival time is a lower bound of the true one, on this process's monotonic clock: what the
database said last, and what was admitted here since.
"""

from __future__ import annotations

from enum import Enum, auto

from cardsync.access.rate_limits import gcra
from cardsync.limits import WINDOW, Limit


class Verdict(Enum):
    ADMIT = auto()
    REFUSE = auto()
    TELL_FIRST = auto()


class Bucket:
    __slots__ = ("checked_at", "group", "limit", "name", "policy", "tat", "unsaid")

    def __init__(self, group: str, limit: Limit, holder: str) -> None:
        self.group = group
        self.limit = limit
        self.name = f"{group}:{holder}"
        self.policy = f'"{group}";q={limit.count};w={WINDOW}'
        self.tat = float("-inf")
        # How many were admitted that the database doesn't know of yet.
        self.unsaid = 0
        # When the holder's credentials were last found good.
        self.checked_at = float("-inf")

    def is_empty(self, now: float) -> bool:
        return not gcra.admits(self.limit, self.tat, now)

    def verdict(self, now: float) -> Verdict:
        if self.is_empty(now):
            return Verdict.REFUSE
        if self.unsaid >= gcra.may_go_unsaid(self.limit, self.tat, now):
            return Verdict.TELL_FIRST
        return Verdict.ADMIT

    def admit(self, now: float) -> None:
        self.tat = gcra.after_one(self.limit, self.tat, now)
        self.unsaid += 1

    def say(self) -> int:
        """How many to tell of; they count as told from now on."""
        said, self.unsaid = self.unsaid, 0
        return said

    def take_back(self, said: int) -> None:
        """The telling failed."""
        self.unsaid += said

    def learn(self, asked_at: float, ahead: float) -> None:
        """The database was asked at `asked_at` or later, and then its arrival time lay `ahead`
        seconds ahead.
        """
        self.tat = max(self.tat, asked_at + ahead + self.unsaid * self.limit.emission)

    def state(self, now: float) -> str:
        """What may be spent at once and when the bucket is full again; with nothing left, when
        one more is admitted.
        """
        left = gcra.remaining(self.limit, self.tat, now)
        if left:
            seconds = gcra.seconds_until_full(self.tat, now)
        else:
            seconds = gcra.seconds_until_admitted(self.limit, self.tat, now)
        return f'"{self.group}";r={left};t={seconds}'
