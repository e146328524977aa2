"""Limits how long a request may take. It is refused with 503 if its answer does not begin in time,
and with 400 if its body ends too early or arrives too slowly.

The time for receiving the body does not count toward the answer's limit; the body has its own
limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec
from litestar.enums import ScopeType

from cardsync.platform import errors
from cardsync.platform.database import connections, seller_slots
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.settings import Settings

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Message, Receive, Scope, Send

SLOWEST_BYTES = 1_000
"""The lowest accepted speed of a body, in bytes per second."""
# Waits for the database end earlier, with an error of their own. All other waits may last this many
# seconds longer.
_LATER = 0.25
_OPTION = "patience"


def _polled(settings: Settings) -> float:
    return settings.polled_seconds


def longest(settings: Settings) -> float:
    """Return the longest time limit of any route."""
    return settings.request_seconds + settings.backtest_seconds


POLLED: dict[str, object] = {_OPTION: _polled}
"""The `opt` of the routes that agents poll, which have a limit of their own. An agent that gets its
answer in time soon polls again.
"""
BACKTEST: dict[str, object] = {_OPTION: longest}
"""The `opt` of the route that prices many days in one request."""


class Patience:
    """The time limits of one request and of its body."""

    def __init__(self, settings: Settings, receive: Receive, watch: _Watch) -> None:
        self._settings = settings
        self._receive = receive
        self._watch = watch
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.deadline = connections.Deadline(self._began + settings.request_seconds)
        self.timeout = asyncio.timeout(None)
        # The end of the present limit, on the event loop's clock.
        self.ends_at = self.deadline.at + _LATER
        self.answers = self.client_left = False
        self._reads = self._whole = False
        self._body_took = 0.0
        # The current window: the seconds spent waiting for the body, and the bytes received.
        self._waited = 0.0
        self._came = 0

    def allow(self, seconds: float) -> None:
        """Limit the time from the request to the beginning of the answer, without the time for the
        body.
        """
        self.deadline.at = self._began + self._body_took + seconds
        self._end_at(self.deadline.at + _LATER)

    def answering(self) -> None:
        """Remove the time limit: the answer has begun, and sending it may take any time."""
        self.answers = True
        self.deadline.at = inf
        self._end_at(inf)

    def _end_at(self, when: float) -> None:
        self.ends_at = when
        self._watch.look_by(when, self._loop)
        # After its limit a request may still answer, but the limit can no longer be moved.
        if self.timeout.when() is not None and not self.timeout.expired():
            self.timeout.reschedule(None)

    async def receive(self) -> Any:
        """Receive a message of the body. Raises BadRequest if the body ends too early or arrives
        too slowly.
        """
        if self._whole or self.answers:
            return await self._receive()
        began = self._loop.time()
        self._reads = True
        self._end_at(began + self._silence())
        message: Any = await self._receive()
        self._reads = False
        took = self._loop.time() - began
        self._waited += took
        self._body_took += took
        self.deadline.at += took
        self._end_at(self.deadline.at + _LATER)
        if message["type"] == "http.disconnect":
            self.client_left = True
            raise errors.BadRequest("the body ended before it was complete")
        self._came += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if not self._whole:
            self._judge()
        return message

    def _silence(self) -> float:
        """Return for how many more seconds the client may send nothing of the body."""
        window = self._settings.body_slow_seconds
        enough = self._came >= window * SLOWEST_BYTES
        left = window * (2 if enough else 1) - self._waited
        return max(0, min(left, self._settings.body_seconds - self._body_took))

    def _judge(self) -> None:
        window = self._settings.body_slow_seconds
        if self._waited >= window:
            if self._came < window * SLOWEST_BYTES:
                raise _too_slow()
            self._waited = self._waited % window
            self._came = 0
        if self._body_took > self._settings.body_seconds:
            raise _too_slow()

    def problem(self) -> errors.Problem:
        """Return the error for a request that timed out."""
        if self._reads:
            return _too_slow()
        return errors.ServiceUnavailable("this took too long to answer; try again")


class _Watch:
    """Ends the requests whose limit is over. One timer waits for the next limit of all requests: a
    request moves its limit five times, and timers of its own would take a fifteenth of a heartbeat.
    """

    def __init__(self) -> None:
        self._requests: set[Patience] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looks_at = inf
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def over(self, request: Patience) -> Iterator[None]:
        """Watch a request during the block."""
        self._requests.add(request)
        self.look_by(request.ends_at, asyncio.get_running_loop())
        try:
            yield
        finally:
            self._requests.discard(request)

    def look_by(self, when: float, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the requests at `when` at the latest."""
        if loop is not self._loop:
            self._loop, self._looks_at, self._timer = loop, inf, None
        if when < self._looks_at:
            if self._timer is not None:
                self._timer.cancel()
            self._looks_at, self._timer = when, loop.call_at(when, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looks_at, self._timer, now = inf, None, loop.time()
        for request in self._requests:
            if request.ends_at <= now:
                request.ends_at = inf
                request.timeout.reschedule(now)
        self.look_by(min((one.ends_at for one in self._requests), default=inf), loop)


def _too_slow() -> errors.BadRequest:
    # The connection must close, because the rest of the body is not read.
    return errors.BadRequest("the body was sent too slowly", headers={"Connection": "close"})


_PATIENCE = ScopeValue[Patience]("patience")


def patient(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Middleware that ends requests that take too long."""
    watch = _Watch()

    async def ended(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        patience = Patience(settings, receive, watch)
        _PATIENCE.put(scope, patience)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                patience.answering()
            await send(message)

        try:
            with connections.until(patience.deadline), seller_slots.answering():
                async with patience.timeout:
                    with watch.over(patience):
                        await app(scope, patience.receive, answer)
        except TimeoutError:
            if patience.answers or not patience.timeout.expired():
                raise
            await _refuse(patience.problem(), answer)

    return ended


async def _refuse(problem: errors.Problem, send: Send) -> None:
    body = msgspec.json.encode(problem.body())
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    pairs = [
        (name.lower().encode(), value.encode())
        for name, value in (headers | problem.headers).items()
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def allow(scope: Scope, opt: Mapping[str, Any], settings: Settings) -> None:
    """Apply the time limit that a route declares in its `opt`: `opt=POLLED`."""
    seconds: Callable[[Settings], float] | None = opt.get(_OPTION)
    if seconds is not None:
        _PATIENCE.of(scope).allow(seconds(settings))


def client_left(scope: Scope) -> bool:
    patience = _PATIENCE.find(scope)
    return patience is not None and patience.client_left
