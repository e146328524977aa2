"""Paces the agent: how long it waits, how a signal ends the wait, and how a call is repeated until
the server answers it.

Environment variables CARDSYNC_AGENT_PACE_<NAME> override the defaults (tests).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from random import Random, SystemRandom
from types import FrameType
from typing import TypeVar

from cardsync_agent import clock
from cardsync_agent.client import TryAgain

T = TypeVar("T")
_random: Random = SystemRandom()


@dataclass(frozen=True)
class Pace:
    """All values are in seconds."""

    # The interval of heartbeats and polls.
    interval: float = 30.0
    # A file in the inbox is complete if it is unchanged for this long.
    settle: float = 2.0
    retry_first: float = 1.0
    retry_most: float = 300.0
    # The interval of the tries while the server does not accept the key.
    refused: float = 300.0
    # The first and the longest interval of requests for an upload's progress.
    poll_first: float = 0.2
    poll_most: float = 5.0
    # With --once, the server's first answer may take this long.
    contact: float = 60.0
    # With --once, the network may be unavailable for this long within a cycle.
    patience: float = 600.0
    # After an object store is unavailable for this long, the bytes are sent to the server.
    elsewhere: float = 120.0
    cycle_expires: float = 86_400.0
    # Without a request for this long, the lock may be gone: the server drops it after 300 s.
    lock_lives: float = 240.0
    # An update is downloaded for this long between two heartbeats.
    update_slice: float = 30.0
    # A refused update is tried again after this time.
    update_again: float = 3600.0

    @classmethod
    def from_env(
        cls, environ: Mapping[str, str], settings: Mapping[str, float] | None = None
    ) -> Pace:
        """Return the pace of a settings file, overridden by the environment."""
        given = {f.name: environ.get(f"CARDSYNC_AGENT_PACE_{f.name.upper()}") for f in fields(cls)}
        numbers = {name: float(text) for name, text in given.items() if text}
        return cls(**{**(settings or {}), **numbers})


class Stopped(Exception):
    """A signal ended the agent; all unfinished work is journaled."""


class GaveUp(Exception):
    """With --once, the network was unavailable for too long."""


class Stop:
    """Remembers SIGTERM and SIGINT until the next safe point."""

    def __init__(self) -> None:
        self.requested = False

    def listen(self) -> None:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        # A second signal ends a call that hangs; the journal makes that safe.
        signal.signal(number, signal.SIG_DFL)

    def check(self) -> None:
        if self.requested:
            raise Stopped

    def sleep(self, seconds: float) -> None:
        # Sleep in slices instead of waiting for a threading.Event: the signal handler might need
        # the event's lock while this method has it.
        ends = clock.monotonic() + seconds
        self.check()
        while (left := ends - clock.monotonic()) > 0:
            clock.sleep(min(left, 0.25))
            self.check()


def spread(seconds: float, chance: Random = _random) -> float:
    """Return a wait that is up to a tenth longer, never shorter, so that agents that started
    together do not send heartbeats together forever.
    """
    return seconds + chance.uniform(0.0, seconds * 0.1)


def backoff(
    attempt: int, pace: Pace, retry_after: float | None = None, chance: Random = _random
) -> float:
    """Return an exponential delay with full jitter, so that a thousand agents do not return
    together; it never ends before the server's Retry-After.
    """
    most = min(pace.retry_most, pace.retry_first * 2.0 ** min(attempt, 30))
    return (retry_after or 0.0) + chance.uniform(0.0, most)


def persist(
    call: Callable[[], T],
    pace: Pace,
    stop: Stop,
    on_retry: Callable[[TryAgain, float], None],
    patience: float | None,
) -> T:
    """Repeat `call` until the server answers it, for at most `patience` seconds (None: without
    limit).
    """
    began, attempt = clock.monotonic(), 0
    while True:
        stop.check()
        try:
            return call()
        except TryAgain as trouble:
            delay = backoff(attempt, pace, trouble.retry_after)
            if patience is not None and clock.monotonic() + delay - began > patience:
                raise GaveUp(str(trouble)) from trouble
            on_retry(trouble, delay)
            stop.sleep(delay)
            attempt += 1


def now_and_then(pace: Pace, stop: Stop, look: Callable[[], object]) -> Callable[[], None]:
    """Return a function to call between the parts of long work: it stops the work at a signal, and
    checks the server once per interval.
    """
    last = clock.monotonic()

    def between() -> None:
        nonlocal last
        stop.check()
        if clock.monotonic() - last < pace.interval:
            return
        last = clock.monotonic()
        # The work itself shows whether the network is available.
        with suppress(TryAgain):
            look()

    return between
