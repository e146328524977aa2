"""Middleware around every request. It gives the request an id, which the response header, error
bodies and log lines contain. It adds the headers of every answer, and writes one metric and one log
line; a successful poll gets no log line.
"""

from __future__ import annotations

import re
import secrets
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache

import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from prometheus_client import Counter, Histogram
from structlog.contextvars import bind_contextvars, reset_contextvars

from cardsync.access.activity import REQUEST_ID
from cardsync.access.caller import ADMITTED, header
from cardsync.access.patience import client_left
from cardsync.access.rate_limits.check_limits import limit_headers
from cardsync.platform import clock
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.settings import Settings
from cardsync.platform.telemetry.spans import TRACING, Span, trace
from cardsync.web.browser_headers import RawHeaders, fixed_headers, missing_headers
from cardsync.web.retired import retired_headers

log = structlog.get_logger("cardsync.request")
REQUESTS = Counter("cardsync_requests_total", "Requests answered", ["method", "route", "status"])
SECONDS = Histogram(
    "cardsync_request_seconds",
    "Time to the answer's first byte",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)

_ID = ScopeValue[str]("request_id")
# A caller may send its own request id in this form; any other id is replaced.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
_QUIET = {"/api/v1/heartbeat", "/api/v1/sync/pending", "/healthz", "/readyz"}


def request_id_of(scope: Scope) -> str:
    return _ID.find(scope) or ""


def _incoming_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(given := value.decode("latin-1")):
            return given
    return secrets.token_hex(12)


def observing(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Middleware that adds the request id, the caller's rate limits and the browser headers to the
    answer. It writes one metric and, unless the request is a successful poll, one log line.
    """
    fixed = fixed_headers(settings)

    async def observed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        request_id = _incoming_id(scope)
        ids = bind_contextvars(request_id=request_id)
        _ID.put(scope, request_id)
        started = clock.monotonic()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: RawHeaders = [
                    *message["headers"],
                    (b"x-request-id", request_id.encode()),
                    *limit_headers(scope),
                    *retired_headers(scope),
                ]
                message["headers"] = headers + missing_headers(fixed, headers, scope["headers"])
                _account(scope, message["status"], clock.monotonic() - started, span)
            await send(message)

        given = REQUEST_ID.set(request_id)
        try:
            with _traced(scope, request_id) as span:
                await app(scope, receive, answer)
        finally:
            REQUEST_ID.reset(given)
            reset_contextvars(**ids)

    return observed


@lru_cache(maxsize=2048)
def _metrics(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, str(status)), SECONDS.labels(method, route)


def _traced(scope: HTTPScope, request_id: str) -> AbstractContextManager[Span | None]:
    """Trace the request unless it is a poll. Polls are frequent, and their traces would show
    little.
    """
    if TRACING.tracer is None or scope["path"] in _QUIET:
        return nullcontext()
    return trace("request", header(scope, b"traceparent"), kind="server", request_id=request_id)


def _account(scope: HTTPScope, status: int, seconds: float, span: Span | None) -> None:
    # Use the route's template instead of the path: paths contain ids, and unknown paths would make
    # the number of metrics grow without limit.
    route = str(scope.get("path_template") or "unmatched")
    method = (
        scope["method"]
        if scope["method"] in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
        else "other"
    )
    requests, took = _metrics(method, route, status)
    requests.inc()
    took.observe(seconds)
    caller = ADMITTED.find(scope)
    seller_id = caller.seller_id if caller else None
    if span is not None:
        span.name(f"{method} {route}")
        span.note(method=method, route=route, status=status, seller_id=seller_id)
        if status >= 500:
            span.fail(str(status))
    if status >= 400 or route not in _QUIET:
        # A disconnect of the caller is not an error, so it is logged at a lower level.
        log_line = log.debug if client_left(scope) else log.info
        log_line(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            **({} if seller_id is None else {"seller_id": seller_id}),
        )
