"""Answers a download request with status, byte range and headers.

A request may have one range (RFC 9110, section 14); for several ranges, or an unreadable range, the
whole file is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from cardsync.agents.errors import RangeNotSatisfiable
from cardsync.agents.releases.offer import Published
from cardsync.platform import errors
from cardsync.platform.storage import ObjectMissing, Store

log = structlog.get_logger(__name__)

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True)
class Part:
    """A part from `start` up to `end`, which is excluded."""

    status: int
    start: int
    end: int
    headers: dict[str, str]


def headers_of(release: Published) -> dict[str, str]:
    return {
        "ETag": f'"{release.sha256}"',
        "Cache-Control": "public, max-age=31536000, immutable",
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{release.file_name}"',
    }


def part_of(release: Published, asked: Mapping[str, str]) -> Part:
    headers = headers_of(release)
    if _names(asked.get("if-none-match", ""), headers["ETag"]):
        return Part(304, 0, 0, headers)
    wanted = _range(asked.get("range", ""), release.size)
    if wanted is None or asked.get("if-range", headers["ETag"]) != headers["ETag"]:
        return Part(
            200,
            0,
            release.size,
            headers | {"Content-Length": str(release.size)},
        )
    start, end = wanted
    answer_headers = {
        "Content-Range": f"bytes {start}-{end - 1}/{release.size}",
        "Content-Length": str(end - start),
    }
    return Part(206, start, end, headers | answer_headers)


def _names(header: str, etag: str) -> bool:
    return any(name.strip().removeprefix("W/") in (etag, "*") for name in header.split(","))


def _range(header: str, size: int) -> tuple[int, int] | None:
    found = _RANGE.fullmatch(header.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if first == "":
        start = max(0, size - int(last))
        end = size
    else:
        start = int(first)
        end = min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= size:
        raise RangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"})
    return start, end


async def check_stored(store: Store, release: Published) -> None:
    """Check that the bytes exist before the status is sent. Raises NotFound."""
    try:
        await store.size(release.storage_key)
    except ObjectMissing:
        log.warning("release_object_missing", product=release.product, version=str(release.version))
        raise errors.NotFound("this release's file is gone") from None
