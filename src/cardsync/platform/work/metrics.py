"""Prometheus metrics of background work, and of the mails and webhooks that it sends."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

UPLOADS = Counter("cardsync_uploads_finished_total", "Uploads processed", ["state"])
UPLOAD_SECONDS = Histogram(
    "cardsync_upload_seconds",
    "From acceptance to the end of the import",
    buckets=(0.5, 1, 2, 5, 10, 30, 60, 300, 1800),
)
WORK_ENDED = Counter(
    "cardsync_work_ended_total",
    "Turns of background work, by how they ended",
    ["stream", "outcome"],
)
WORK_SECONDS = Histogram(
    "cardsync_work_seconds",
    "Time of a turn of background work",
    ["stream"],
    buckets=(0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 1800),
)
SENT = Counter(
    "cardsync_notices_sent_total",
    "Tries to send a letter or a webhook, by how they ended",
    ["way", "outcome"],
)
