"""Checks and inflates uploaded bodies, gzipped or not, up to a size limit, and decodes JSON of
limited depth.

Inflating blocks, so async callers use a thread. isal's file reader streams its input, verifies the
CRC and length of each gzip member, and takes time linear in the number of members. A loop over
zlib's `unused_data` would take quadratic time.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import msgspec
from isal import igzip, igzip_lib

from cardsync.platform import limits
from cardsync.platform.concurrency import ahead
from cardsync.platform.errors import BadRequest, DecompressedTooLarge, InvalidGzip

Source: TypeAlias = bytes | bytearray | memoryview | Path | BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 128 * 1024
# Chunk size trades memory (small chunks) against start-up cost (large ones).
PIECE_BYTES = 4 * 1024 * 1024
# isal's stubs declare its exception class as an instance and leave its file class untyped.
_ISAL_ERROR = cast("type[Exception]", igzip_lib.error)


class BadGzip(Exception):
    """The body is not complete gzip: it is damaged, truncated, or followed by other bytes.

    The caller of this module chooses the error that the client gets.
    """


def decoded(body: bytes) -> object:
    """Decode JSON. Raises BadRequest if it nests deeper than any body of the API, and msgspec's
    errors if it is not valid JSON.
    """
    try:
        value = msgspec.json.decode(body)
    except RecursionError as e:
        raise _too_deep() from e
    if body.count(b"[") + body.count(b"{") > limits.JSON_DEPTH:
        _need_shallow(value)
    return value


def _need_shallow(value: object) -> None:
    inside = [value]
    for _ in range(limits.JSON_DEPTH + 1):
        inside = [
            item
            for each in inside
            if isinstance(each, list | dict)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not inside:
            return
    raise _too_deep()


def _too_deep() -> BadRequest:
    return BadRequest(f"the body nests deeper than {limits.JSON_DEPTH} levels")


def is_gzip(first_bytes: bytes | bytearray | memoryview) -> bool:
    return bytes(first_bytes[:2]) == _GZIP_MAGIC


def inflate(source: Source, cap: int) -> bytes:
    """Inflate a file. Raises BadGzip, and DecompressedTooLarge beyond `cap` bytes."""
    out = io.BytesIO()
    for chunk in _inflated(source, cap):
        out.write(chunk)
    return out.getvalue()


def pieces(body: bytes, cap: int) -> Iterator[bytes]:
    """Yield the body in pieces, inflated if it is gzip. The next piece is inflated while the caller
    reads the current one. Raises as `inflate`.
    """
    if not is_gzip(body):
        return (body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES))
    return ahead(_in_pieces(_inflated(body, cap)))


def plain(body: bytes, cap: int) -> bytes:
    """Return the body, inflated if it begins like gzip.

    Raises InvalidGzip or DecompressedTooLarge.
    """
    if is_gzip(body):
        try:
            return inflate(body, cap)
        except BadGzip as e:
            raise InvalidGzip(f"this file is damaged; export it again (gzip: {e})") from e
    return body


def check_gzip(source: Source, cap: int, head: int) -> tuple[bytes, int]:
    """Inflate the whole body without storing it. Return the first `head` bytes and the total
    length. Raises as `inflate`.
    """
    first = bytearray()
    total = 0
    for chunk in _inflated(source, cap):
        total += len(chunk)
        if len(first) < head:
            first.extend(chunk[: head - len(first)])
    return bytes(first), total


def _inflated(source: Source, cap: int) -> Iterator[memoryview]:
    """Yield the inflated chunks. A chunk is valid only until the next one."""
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    total = 0
    with _opened(source) as file:
        # isal's reader accepts an empty file as gzip, so the first bytes are checked here.
        if not is_gzip(file.read(2)):
            raise BadGzip("it does not begin with 1f 8b")
        file.seek(-2, io.SEEK_CUR)
        reader = igzip.IGzipFile(fileobj=file, mode="rb")
        # Read at most one byte more than the limit, so that a gzip bomb cannot use more memory.
        while got := _read(reader, buffer[: cap - total + 1]):
            total += got
            if total > cap:
                raise DecompressedTooLarge(
                    f"the body is larger than {cap:,} bytes once decompressed"
                )
            yield buffer[:got]


def _in_pieces(chunks: Iterator[memoryview]) -> Iterator[bytes]:
    piece = bytearray()
    for chunk in chunks:
        piece += chunk
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


def _read(reader: igzip.IGzipFile, buffer: memoryview) -> int:
    try:
        return reader.readinto(buffer)
    except EOFError:
        raise BadGzip("it ends too early, or extra data follows it") from None
    except (gzip.BadGzipFile, _ISAL_ERROR) as e:
        raise BadGzip("it is damaged") from e


def _opened(source: Source) -> BinaryIO | nullcontext[BinaryIO]:
    if isinstance(source, Path):
        return source.open("rb")
    if isinstance(source, bytes | bytearray | memoryview):
        return io.BytesIO(source)
    return nullcontext(source)
