"""Divides rows into the bodies of uploads, none larger than the server accepts.

A body is JSON, compressed if that saves enough; the same rows give the same bytes. Pure.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from cardsync_agent.orders import Row

MOST_ROWS = 50_000
# This limit applies before gzip. The server's limit is 10 MB after gzip, which a body of this size
# never reaches, whatever the rows contain.
MOST_BYTES = 9_500_000
GZIP_FROM_BYTES = 4_096


def parts(
    rows: Sequence[Row], most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> Iterator[bytes]:
    """Divide rows into bodies. Adjacent rows of one order stay in one part, unless the order fills
    more than one part.
    """
    part: list[bytes] = []
    size = 0
    for _, group in groupby(rows, lambda row: row["order_number"]):
        packed = [
            json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() for row in group
        ]
        whole = sum(map(len, packed)) + len(packed)
        if part and (len(part) + len(packed) > most_rows or size + whole > most_bytes):
            yield _body(part)
            part, size = [], 0
        for row in packed:
            if len(part) == most_rows or size + len(row) > most_bytes:
                yield _body(part)
                part, size = [], 0
            part.append(row)
            size += len(row) + 1
    if part:
        yield _body(part)


def _body(rows: list[bytes]) -> bytes:
    plain = b"[" + b",".join(rows) + b"]"
    return plain if len(plain) < GZIP_FROM_BYTES else gzip.compress(plain, compresslevel=6, mtime=0)
