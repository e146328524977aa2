"""Traces requests and jobs: begins or joins a trace, whose parts are spans.

This module imports nothing of OpenTelemetry; `otlp.py` sets the tracer if traces are exported.
Spans contain ids, counts, routes and statements without their values: no name, address, key or
price.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_SAMPLED: Final = 1


class Span(Protocol):
    """A span that has not ended."""

    @property
    def traceparent(self) -> str: ...

    def name(self, name: str) -> None: ...

    def note(self, **attributes: object) -> None: ...

    def fail(self, kind: str) -> None: ...

    def end(self) -> None: ...


class Tracer(Protocol):
    """Begins spans; `ratio` is the share of traces without a parent that are recorded."""

    ratio: float

    def begin(
        self, name: str, parent: Span | str | None, kind: str, attributes: dict[str, object]
    ) -> Span: ...


class _Tracing:
    tracer: Tracer | None = None


TRACING: Final = _Tracing()
_current: ContextVar[Span | None] = ContextVar("span", default=None)


def traceparent() -> str | None:
    """Return the current span as W3C's traceparent header. Return None outside a trace."""
    span = _current.get()
    return None if span is None else span.traceparent


def trace_id() -> str | None:
    span = _current.get()
    return None if span is None else span.traceparent[3:35]


def is_traced() -> bool:
    return _current.get() is not None


@contextmanager
def trace(
    name: str,
    parent: str | None = None,
    *,
    kind: str = "internal",
    always: bool = False,
    **attributes: object,
) -> Iterator[Span | None]:
    """Join the trace of `parent` (a traceparent) or the current trace, or begin a trace. Nothing is
    recorded if the parent is not recorded, or if a new trace is outside the sampled share and not
    `always`.
    """
    tracer = TRACING.tracer
    if parent is None and is_traced():
        with part(name, kind=kind, **attributes) as span:
            yield span
        return
    if tracer is None or not _is_wanted(tracer, parent, always=always):
        yield None
        return
    joined = parent if parent and _TRACEPARENT.fullmatch(parent) else None
    with _under(tracer.begin(name, joined, kind, attributes)) as span:
        yield span


def _is_wanted(tracer: Tracer, parent: str | None, *, always: bool) -> bool:
    if parent and _TRACEPARENT.fullmatch(parent):
        return bool(int(parent[-2:], 16) & _SAMPLED)
    return always or random.random() < tracer.ratio  # noqa: S311


@contextmanager
def part(name: str, *, kind: str = "internal", **attributes: Any) -> Iterator[Span | None]:
    """Record a part of the current trace; do nothing outside a trace."""
    above = _current.get()
    tracer = TRACING.tracer
    if above is None or tracer is None:
        yield None
        return
    with _under(tracer.begin(name, above, kind, attributes)) as span:
        yield span


@contextmanager
def _under(span: Span) -> Iterator[Span]:
    token = _current.set(span)
    try:
        yield span
    except BaseException as e:
        # Record only the class of the error: messages quote values.
        span.fail(type(e).__name__)
        raise
    finally:
        _current.reset(token)
        span.end()
