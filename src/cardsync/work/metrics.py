"""Prometheus metrics of background work."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from cardsync.work import metric_files

metric_files.reserve()
UPLOADS = Counter("cardsync_uploads_finished_total", "Uploads processed", ["state"])


UPLOAD_SECONDS = Histogram(
    "cardsync_upload_seconds",
    "From acceptance to the end of the import",
    buckets=(0.5, 1, 2, 5, 10, 30, 60, 300, 1800),
)
