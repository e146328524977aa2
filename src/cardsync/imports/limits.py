"""Limits of uploads."""

from __future__ import annotations

PRESIGNED_COMPRESSED_BYTES = 20_000_000

UPLOADS_PER_PAGE_MOST = 200

SHORT_INVENTORY_MIN_ROWS = 20
