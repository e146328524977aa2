"""Pushes the metrics of a Prometheus registry by OTLP, every half minute and at the end. Only
`metrics_server.py` imports this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family

from cardsync.platform import clock
from cardsync.platform.concurrency import every_in_thread
from cardsync.platform.telemetry.otlp import SECONDS, SERVICE, address, resource_of

EVERY_SECONDS: Final = 30.0
_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE


@contextmanager
def pushed(url: str, registry: CollectorRegistry, seconds: float = EVERY_SECONDS) -> Iterator[None]:
    exporter = OTLPMetricExporter(address(url, "metrics"), timeout=SECONDS)
    resource = resource_of("supervisor")
    began = _now()

    def push() -> None:
        metrics = [_metric_of(family, began, _now()) for family in registry.collect()]
        scope = ScopeMetrics(InstrumentationScope(SERVICE), metrics, "")
        exporter.export(MetricsData([ResourceMetrics(resource, [scope], "")]))

    try:
        with every_in_thread(seconds, push, "metrics_not_pushed", last=True):
            yield
    finally:
        exporter.shutdown()


def _now() -> int:
    return int(clock.now().timestamp() * 1e9)


def _metric_of(family: Family, began: int, now: int) -> Metric:
    """Return a metric family under the name that Prometheus shows."""
    if family.type == "histogram":
        points = list(_histogram_points(family, began, now))
        return Metric(family.name, family.documentation, "", Histogram(points, _CUMULATIVE))
    name = f"{family.name}_total" if family.type == "counter" else family.name
    numbers = [
        NumberDataPoint(dict(sample.labels), began, now, sample.value)
        for sample in family.samples
        if sample.name == name
    ]
    if family.type == "counter":
        return Metric(name, family.documentation, "", Sum(numbers, _CUMULATIVE, is_monotonic=True))
    return Metric(name, family.documentation, "", Gauge(numbers))


def _histogram_points(family: Family, began: int, now: int) -> Iterable[HistogramDataPoint]:
    """Convert buckets: Prometheus counts a value in every bucket that it fits in, OTLP only in the
    first.
    """
    buckets: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = dict(sample.labels)
        bound = labels.pop("le", None)
        key = tuple(sorted(labels.items()))
        if bound is not None:
            buckets.setdefault(key, {})[float(bound)] = sample.value
        elif sample.name.endswith("_sum"):
            sums[key] = sample.value
    for key, counted in buckets.items():
        bounds = sorted(counted)
        below = [0.0, *(counted[bound] for bound in bounds)]
        attributes: dict[str, Any] = dict(key)
        yield HistogramDataPoint(
            attributes,
            began,
            now,
            count=int(below[-1]),
            sum=sums.get(key, 0.0),
            bucket_counts=[int(upper - lower) for lower, upper in pairwise(below)],
            explicit_bounds=bounds[:-1],
            # The minimum and maximum are unknown, and an exporter omits them.
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
        )
