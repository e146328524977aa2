"""Passes a process's spans and log lines to OpenTelemetry's exporters (OTLP over HTTP).

Only `exporting.py` imports this. The exporters send in their own threads and drop data that a
receiver does not take, so no request waits for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from random import getrandbits
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from cardsync import __version__
from cardsync.platform import clock, logs
from cardsync.platform.telemetry.spans import TRACING, Span, trace_id, traceparent

SERVICE: Final = "cardsync"
# Time limit for a receiver's answer; a process waits for its last spans at most this long.
SECONDS: Final = 5.0
_SCOPE: Final = InstrumentationScope(SERVICE)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_UNSET, _FAILED = Status(), Status(StatusCode.ERROR)
_KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "consumer": SpanKind.CONSUMER,
}
_SEVERITIES: Final = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
    "critical": SeverityNumber.FATAL,
}


class _OneResource(Resource):
    """A resource that is hashed by its identity, because the exporter needs the hash for each span,
    and the library's hash reads all values each time.
    """

    def __hash__(self) -> int:
        return id(self)


def resource_of(process: str) -> Resource:
    return _OneResource(
        {
            "service.name": SERVICE,
            "service.version": __version__,
            "service.instance.id": f"{process}-{os.getpid()}",
            "cardsync.process": process,
        }
    )


def address(url: str, signal: str) -> str:
    return f"{url.rstrip('/')}/v1/{signal}"


class _Span:
    """A span that is converted to a span of OpenTelemetry at its end, because the spans of
    OpenTelemetry's tracer cost three times as much.
    """

    __slots__ = (
        "_attributes",
        "_began",
        "_failed",
        "_kind",
        "_name",
        "_parent",
        "_started",
        "_tracer",
        "context",
    )

    def __init__(
        self,
        tracer: _Tracer,
        name: str,
        parent: SpanContext | None,
        kind: SpanKind,
        attributes: dict[str, object],
    ) -> None:
        trace = getrandbits(128) if parent is None else parent.trace_id
        self.context = SpanContext(trace, getrandbits(64), False, _SAMPLED)
        self._tracer, self._name, self._parent, self._kind = tracer, name, parent, kind
        self._attributes, self._failed = attributes, False
        self._began, self._started = _nanoseconds(), clock.monotonic()

    @property
    def traceparent(self) -> str:
        return f"00-{self.context.trace_id:032x}-{self.context.span_id:016x}-01"

    def name(self, name: str) -> None:
        self._name = name

    def note(self, **attributes: object) -> None:
        self._attributes |= attributes

    def fail(self, kind: str) -> None:
        self._attributes["error"] = kind
        self._failed = True

    def end(self) -> None:
        took = int((clock.monotonic() - self._started) * 1e9)
        self._tracer.processor.on_end(
            ReadableSpan(
                self._name,
                self.context,
                self._parent,
                self._tracer.resource,
                _named(self._attributes),
                kind=self._kind,
                instrumentation_scope=_SCOPE,
                status=_FAILED if self._failed else _UNSET,
                start_time=self._began,
                end_time=self._began + took,
            )
        )


def _nanoseconds() -> int:
    return int(clock.now().timestamp() * 1e9)


def _named(attributes: dict[str, object]) -> dict[str, Any]:
    """Return attributes by the names of OpenTelemetry's conventions, or by our own names."""
    return {
        _CONVENTIONS.get(name) or f"cardsync.{name}": value
        for name, value in attributes.items()
        if value is not None
    }


_CONVENTIONS: Final = {
    "error": "error.type",
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
    "statement": "db.query.text",
    "system": "db.system.name",
}


class _Tracer:
    def __init__(self, processor: BatchSpanProcessor, resource: Resource, ratio: float) -> None:
        self.processor, self.resource, self.ratio = processor, resource, ratio

    def begin(
        self, name: str, parent: Span | str | None, kind: str, attributes: dict[str, object]
    ) -> Span:
        return _Span(self, name, _context_of(parent), _KINDS[kind], attributes)


def _context_of(parent: Span | str | None) -> SpanContext | None:
    match parent:
        case str():
            _, trace, span, _ = parent.split("-")
            return SpanContext(int(trace, 16), int(span, 16), True, _SAMPLED)
        case _Span():
            return parent.context
    return None


@contextmanager
def traces_exported(url: str, ratio: float, process: str) -> Iterator[None]:
    """Export traces while the block runs, and send the rest at its end."""
    processor = BatchSpanProcessor(OTLPSpanExporter(address(url, "traces"), timeout=SECONDS))
    before = TRACING.tracer
    TRACING.tracer = _Tracer(processor, resource_of(process), ratio)
    logs.LISTENERS.append(_with_trace)
    try:
        yield
    finally:
        TRACING.tracer = before
        logs.LISTENERS.remove(_with_trace)
        processor.shutdown()


def _with_trace(event: MutableMapping[str, object]) -> None:
    if trace := trace_id():
        event["trace_id"] = trace


@contextmanager
def logs_exported(url: str, process: str) -> Iterator[None]:
    """Export the lines of the log while the block runs, and send the rest at its end."""
    provider = LoggerProvider(resource_of(process), shutdown_on_exit=False)
    provider.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(address(url, "logs"), timeout=SECONDS))
    )
    logger = provider.get_logger(SERVICE)

    def hand_over(event: MutableMapping[str, Any]) -> None:
        record = event.get("_record")
        # The exporters' own log lines are not exported, because each export would cause another.
        if record is None or not record.name.startswith("opentelemetry"):
            logger.emit(_record_of(event))

    logs.LISTENERS.append(hand_over)
    try:
        yield
    finally:
        logs.LISTENERS.remove(hand_over)
        provider.shutdown()


def _record_of(event: MutableMapping[str, object]) -> LogRecord:
    level = str(event.get("level", "info"))
    attributes = {
        name: value if isinstance(value, str | bool | int | float) else str(value)
        for name, value in event.items()
        if name not in ("event", "level", "timestamp") and not name.startswith("_")
        if value is not None
    }
    return LogRecord(
        timestamp=_nanoseconds(),
        context=_log_context(),
        severity_text=level,
        severity_number=_SEVERITIES.get(level, SeverityNumber.INFO),
        body=str(event.get("event", "")),
        attributes=attributes,
    )


def _log_context() -> Context:
    above = _context_of(traceparent())
    return Context() if above is None else set_span_in_context(NonRecordingSpan(above), Context())
