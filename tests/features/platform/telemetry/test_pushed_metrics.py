"""What /metrics counts is pushed by OTLP, too, with the same names and numbers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from cardsync.platform.telemetry.pushed_metrics import pushed
from otlp_receiver import receiving


def test_a_push_has_the_numbers_of_the_registry():
    registry = CollectorRegistry()
    Counter("asked_total", "Asked", ["route"], registry=registry).labels("/a").inc(3)
    Gauge("free_bytes", "Free", registry=registry).set(7)
    took = Histogram("took_seconds", "Took", ["route"], registry=registry, buckets=(1, 2))
    for seconds in (0.5, 1.5, 1.75, 9):
        took.labels("/a").observe(seconds)
    with receiving() as received:
        with pushed(received.url, registry, seconds=600):
            pass
        metrics = received.metrics
    [asked] = metrics["asked_total"].sum.data_points
    assert asked.as_double == 3
    assert metrics["asked_total"].sum.is_monotonic
    assert [(one.key, one.value.string_value) for one in asked.attributes] == [("route", "/a")]
    [free] = metrics["free_bytes"].gauge.data_points
    assert free.as_double == 7
    [point] = metrics["took_seconds"].histogram.data_points
    assert (point.count, point.sum) == (4, 12.75)
    assert list(point.explicit_bounds) == [1, 2]
    assert list(point.bucket_counts) == [1, 2, 1]
