"""Exports a process's traces and logs by OTLP while a block runs, if OTLP_URL is set. Otherwise no
module of OpenTelemetry is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from cardsync.platform.settings import Settings


@contextmanager
def exporting(settings: Settings, process: str) -> Iterator[None]:
    with ExitStack() as stack:
        if settings.otlp_url and settings.exports & {"traces", "logs"}:
            # OpenTelemetry is imported only here, because it costs a process 15 MB and a quarter of
            # a second.
            from cardsync.platform.telemetry import otlp

            if "traces" in settings.exports:
                ratio = settings.trace_ratio
                stack.enter_context(otlp.traces_exported(settings.otlp_url, ratio, process))
            if "logs" in settings.exports:
                stack.enter_context(otlp.logs_exported(settings.otlp_url, process))
        yield
