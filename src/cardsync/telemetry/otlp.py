"""Hands spans and log lines of a process over to OpenTelemetry's exporters (OTLP over HTTP).

Only `exporting.py` imports this. The exporters send in threads of their own and drop what a receiver
does not take: no request waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as SdkSpan
from opentelemetry.trace import Tracer as SdkTracer

from cardsync import __version__, clock, logs
from cardsync.telemetry.spans import TRACING, Span, trace_id, traceparent

SERVICE: Final = "cardsync"
# A receiver that does not answer is left after so long; the last spans of a process wait for it.
SECONDS: Final = 5.0
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


def resource_of(process: str) -> Resource:
    return Resource(
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
    """A span of OpenTelemetry, by the names of `spans.Span`."""

    __slots__ = ("sdk", "traceparent")

    def __init__(self, sdk: SdkSpan) -> None:
        context = sdk.get_span_context()
        self.sdk = sdk
        self.traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-01"

    def name(self, name: str) -> None:
        self.sdk.update_name(name)

    def note(self, **attributes: Any) -> None:
        self.sdk.set_attributes(_named(attributes))

    def fail(self, kind: str) -> None:
        self.sdk.set_attribute("error.type", kind)
        self.sdk.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        self.sdk.end()


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes by the names of OpenTelemetry's conventions, or our own."""
    return {
        _CONVENTIONS.get(name) or f"cardsync.{name}": value
        for name, value in attributes.items()
        if value is not None
    }


_CONVENTIONS: Final = {
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
    "statement": "db.query.text",
    "system": "db.system.name",
}


class _Tracer:
    def __init__(self, sdk: SdkTracer, ratio: float) -> None:
        self._sdk, self.ratio = sdk, ratio

    def begin(
        self, name: str, parent: Span | str | None, kind: str, attributes: dict[str, Any]
    ) -> Span:
        above = _context_of(parent)
        sdk = self._sdk.start_span(name, above, _KINDS[kind], _named(attributes))
        return _Span(sdk)


def _context_of(parent: Span | str | None) -> Context:
    match parent:
        case None:
            return Context()
        case str():
            _, trace, span, _ = parent.split("-")
            known = SpanContext(
                int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(1)
            )
            return set_span_in_context(NonRecordingSpan(known), Context())
        case _Span():
            return set_span_in_context(parent.sdk, Context())
    raise TypeError(type(parent))


@contextmanager
def exported(url: str, ratio: float, process: str) -> Iterator[None]:
    """Export while the block runs, and send the rest at its end."""
    resource = resource_of(process)
    # Which traces are wanted is decided before a span is made.
    tracers = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(address(url, "traces"), timeout=SECONDS))
    )
    loggers = LoggerProvider(resource, shutdown_on_exit=False)
    loggers.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(address(url, "logs"), timeout=SECONDS))
    )
    logger = loggers.get_logger(SERVICE)

    def hand_over(event: MutableMapping[str, Any]) -> None:
        if trace := trace_id():
            event["trace_id"] = trace
        record = event.get("_record")
        # What the exporters say of themselves would come back to them.
        if record is None or not record.name.startswith("opentelemetry"):
            logger.emit(_record_of(event))

    before = TRACING.tracer
    TRACING.tracer = _Tracer(tracers.get_tracer(SERVICE), ratio)
    logs.LISTENERS.append(hand_over)
    try:
        yield
    finally:
        TRACING.tracer = before
        with suppress(ValueError):
            logs.LISTENERS.remove(hand_over)
        tracers.shutdown()
        loggers.shutdown()


def _record_of(event: MutableMapping[str, Any]) -> LogRecord:
    level = str(event.get("level", "info"))
    attributes = {
        name: value if isinstance(value, str | bool | int | float) else str(value)
        for name, value in event.items()
        if name not in ("event", "level", "timestamp") and not name.startswith("_")
        if value is not None
    }
    return LogRecord(
        timestamp=int(clock.now().timestamp() * 1e9),
        context=_context_of(traceparent()),
        severity_text=level,
        severity_number=_SEVERITIES.get(level, SeverityNumber.INFO),
        body=str(event.get("event", "")),
        attributes=attributes,
    )
