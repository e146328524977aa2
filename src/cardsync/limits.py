"""Every number of the specification's Limits table (and what decisions.md adds to it), one constant each. Sizes in bytes."""

from __future__ import annotations

BODY_WIRE_BYTES = 10_000_000
BODY_INFLATED_BYTES = 50_000_000
PRESIGNED_COMPRESSED_BYTES = 20_000_000
PRESIGNED_PLAIN_BYTES = 50_000_000
PRESIGNED_SECONDS = 600

CSV_MAX_COLUMNS = 200
REJECTED_LISTED = 1_000

SHORT_INVENTORY_MIN_ROWS = 20
BREAKER_MIN_CARDS = 50

POLL_SECONDS = 30
