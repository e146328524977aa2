"""Checks a screenshot in base64, and returns the picture's bytes or raises an error with the
reason. Pure.

Only the PNG container is checked, chunk by chunk; the picture is never decoded.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib

from cardsync.agents.limits import SCREENSHOT_BYTES, SCREENSHOT_SIDE
from cardsync.platform.errors import PayloadTooLarge

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_IHDR = struct.Struct(">IIBBBBB")
# Bit depths that each color type may have.
_DEPTHS = {
    0: (1, 2, 4, 8, 16),
    2: (8, 16),
    3: (1, 2, 4, 8),
    4: (8, 16),
    6: (8, 16),
}


class BadScreenshot(Exception):
    """The text is not base64 of a complete PNG; the message names the fault."""


def read_screenshot(encoded: str) -> bytes:
    """Decode and check a screenshot. Raises BadScreenshot, or PayloadTooLarge before anything is
    decoded.

    This is CPU work: call it in a thread.
    """
    if _decoded_size(encoded) > SCREENSHOT_BYTES:
        raise PayloadTooLarge(f"screenshot is larger than {SCREENSHOT_BYTES:,} bytes decoded")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as e:
        raise BadScreenshot("it is not valid Base64") from e
    check_png(data)
    return data


def _decoded_size(encoded: str) -> int:
    return len(encoded) // 4 * 3 - encoded[-2:].count("=")


def check_png(data: bytes) -> None:
    """Check the signature, the first chunk IHDR, each chunk's CRC, and the last chunk IEND without
    any byte after it.

    Raises BadScreenshot.
    """
    if not data.startswith(_SIGNATURE):
        raise BadScreenshot("it does not begin with the PNG signature")
    view = memoryview(data)
    at = len(_SIGNATURE)
    kind = b""
    while at < len(data):
        if kind == b"IEND":
            raise BadScreenshot("there is extra data after its end")
        first = not kind
        kind, content = _chunk(view, at)
        if first != (kind == b"IHDR"):
            raise BadScreenshot("IHDR must be its first chunk, and no other")
        if first:
            _check_header(content)
        at += 12 + len(content)
    if kind != b"IEND" or len(content):
        raise BadScreenshot("it does not end with IEND")


def _chunk(view: memoryview, at: int) -> tuple[bytes, memoryview]:
    length = int.from_bytes(view[at : at + 4])
    kind, content, crc = (
        view[at + 4 : at + 8],
        view[at + 8 : at + 8 + length],
        view[at + 8 + length : at + 12 + length],
    )
    if len(crc) != 4:
        raise BadScreenshot(f"it ends within the chunk at byte {at}")
    if zlib.crc32(view[at + 4 : at + 8 + length]) != int.from_bytes(crc):
        raise BadScreenshot(f"the CRC of the chunk at byte {at} does not match")
    if not (name := bytes(kind)).isalpha():
        raise BadScreenshot(f"the chunk at byte {at} has an invalid name")
    return name, content


def _check_header(content: memoryview) -> None:
    if len(content) != _IHDR.size:
        raise BadScreenshot("its IHDR has the wrong length")
    width, height, depth, colour, compression, filtering, interlace = _IHDR.unpack(content)
    side = SCREENSHOT_SIDE
    if not (1 <= width <= side and 1 <= height <= side):
        raise BadScreenshot(f"it is {width} x {height}; at most {side} x {side} is allowed")
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlace > 1:
        raise BadScreenshot("its IHDR is not one of a PNG")
