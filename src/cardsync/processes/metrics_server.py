"""Serves /metrics on its own address, and pushes the same by OTLP where that is set: of all processes
of a supervisor together, or of a worker that runs alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import structlog
from prometheus_client import REGISTRY, CollectorRegistry, multiprocess, start_http_server

from cardsync.processes.installation_metrics import InstallationMetrics
from cardsync.settings import Settings

log = structlog.get_logger(__name__)


@contextmanager
def metrics_served(
    settings: Settings, folder: Path, deaths: Callable[[], dict[str, int]]
) -> Iterator[None]:
    """Processes write what they count into the folder; `deaths` counts those that ended."""
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    registry.register(InstallationMetrics(settings, deaths))
    with _shown(settings, registry):
        yield


@contextmanager
def own_metrics_served(settings: Settings) -> Iterator[None]:
    """Show what this process counts, unless a supervisor shows it with its others'."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with _shown(settings, REGISTRY):
        yield


@contextmanager
def _shown(settings: Settings, registry: CollectorRegistry) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(_served(settings, registry))
        if settings.otlp_url and "metrics" in settings.exports:
            # Only here: nothing of OpenTelemetry is imported where nothing is exported.
            from cardsync.telemetry.pushed_metrics import pushed

            stack.enter_context(pushed(settings.otlp_url, registry))
        yield


@contextmanager
def _served(settings: Settings, registry: CollectorRegistry) -> Iterator[None]:
    if not settings.metrics_bind:
        yield
        return
    host, _, port = settings.metrics_bind.rpartition(":")
    try:
        server, thread = start_http_server(int(port), addr=host, registry=registry)
    except OSError as e:
        log.warning("metrics_off", bind=settings.metrics_bind, reason=e.strerror)
        yield
        return
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
