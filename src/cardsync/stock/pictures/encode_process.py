"""Encodes pictures as WebP in a separate process, so that an untrusted picture can crash, exhaust
or hang only this process.

The service runs this module as a script. The script imports no other module of cardsync, and loads
Pillow late, so that the service can import the script's constants without Pillow. The script reads
each picture from standard input as a length and bytes. It answers with the byte MADE and, for each
size, a length and the bytes of the WebP file; or with the byte REFUSED and a sentence.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
import sys
import warnings
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from PIL import Image

# The box (width, height in pixels) of each size, the largest first. A card is 63 × 88 mm.
SIZES: Final = {"large": (488, 680), "medium": (146, 204), "small": (73, 102)}
FORMATS: Final = ("JPEG", "PNG", "WEBP")
PIXELS_MOST: Final = 25_000_000
SIDE_LEAST: Final = 20
QUALITY: Final = 78
# The WebP encoder's `method` per size, from 0 (fast) to 6 (small files).
EFFORT: Final = {"large": 0, "medium": 1, "small": 2}
MEMORY_BYTES: Final = 1 << 30
CPU_SECONDS: Final = 120
LENGTH: Final = struct.Struct(">I")
MADE: Final = b"\x00"
REFUSED: Final = b"\x01"


class Unfit(Exception):
    """A picture that can't be encoded; the message is the reason."""


def made(source: bytes) -> list[bytes]:
    """Return the picture in all sizes, in the order of SIZES, without any metadata. Raises
    Unfit.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(source), formats=FORMATS) as opened:
            return _encoded(_plain(opened))
    except Unfit:
        raise
    except MemoryError:
        raise Unfit("it takes too much memory") from None
    except Exception as e:
        # Pillow's decoders raise almost any exception for maliciously damaged files.
        raise Unfit(f"it cannot be read ({type(e).__name__})") from None


def _plain(opened: Image.Image) -> Image.Image:
    """Return the first frame, upright, in RGB, and no larger than the largest size."""
    from PIL import Image, ImageOps

    width, height = opened.size
    if width * height > PIXELS_MOST:
        raise Unfit(f"it has more than {PIXELS_MOST:,} pixels")
    if min(width, height) < SIDE_LEAST:
        raise Unfit(f"a side has less than {SIDE_LEAST} pixels")
    largest = SIZES["large"]
    # Pillow decodes a JPEG at a fraction of its size if that is enough for either orientation.
    opened.draft("RGB", (2 * max(largest), 2 * max(largest)))
    opened.load()
    turned = ImageOps.exif_transpose(opened)
    picture = turned.convert("RGBA" if turned.has_transparency_data else "RGB")
    picture.thumbnail(largest, Image.Resampling.LANCZOS, reducing_gap=2.0)
    return picture


def _encoded(picture: Image.Image) -> list[bytes]:
    from PIL.Image import Resampling

    # `info` may hold a location, a camera's name or a color profile.
    picture.info = {}
    found: list[bytes] = []
    size = (0, 0)
    for name, box in SIZES.items():
        picture.thumbnail(box, Resampling.LANCZOS)
        # A picture is never enlarged. If it is smaller than two sizes, both have the same file.
        if picture.size != size:
            file = io.BytesIO()
            picture.save(file, "WEBP", quality=QUALITY, method=EFFORT[name])
            found.append(file.getvalue())
            size = picture.size
        else:
            found.append(found[-1])
    return found


def limit() -> None:
    """Limit the memory, CPU time and file sizes of this process. Limits that the operating system
    does not support are skipped.
    """
    import resource

    from PIL import Image

    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError):
        os.nice(10)
    Image.MAX_IMAGE_PIXELS = PIXELS_MOST
    warnings.simplefilter("error", Image.DecompressionBombWarning)


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Encode pictures until the input ends."""
    while len(head := asked.read(LENGTH.size)) == LENGTH.size:
        source = asked.read(LENGTH.unpack(head)[0])
        try:
            sign, parts = MADE, made(source)
        except Unfit as e:
            sign, parts = REFUSED, [str(e).encode()]
        answers.write(sign + b"".join(LENGTH.pack(len(part)) + part for part in parts))
        answers.flush()


if __name__ == "__main__":
    limit()
    serve(sys.stdin.buffer, sys.stdout.buffer)
