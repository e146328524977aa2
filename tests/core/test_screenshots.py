"""The PNG check: it takes whole files of every kind and refuses each way to break one."""

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_chunk, a_png
from cardsync.agents.limits import SCREENSHOT_BYTES
from cardsync.agents.sync.screenshots import BadScreenshot, check_png, read_screenshot
from cardsync.platform.errors import PayloadTooLarge


def an_ihdr(width=1, height=1, depth=8, colour=2, compression=0, filtering=0, interlace=0):
    return a_chunk(
        b"IHDR",
        struct.pack(">IIBBBBB", width, height, depth, colour, compression, filtering, interlace),
    )


SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXEL = a_chunk(b"IDAT", zlib.compress(b"\0\0\0\0"))
END = a_chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "png",
    [
        a_png(),
        a_png(8192, 8192),
        SIGNATURE + an_ihdr(depth=16, colour=6, interlace=1) + PIXEL + END,
        SIGNATURE + an_ihdr() + a_chunk(b"tEXt", b"Software\0a browser") + PIXEL + PIXEL + END,
    ],
    ids=["smallest", "largest", "interlaced", "several chunks"],
)
def test_a_whole_png_is_taken_as_it_is(png):
    assert read_screenshot(base64.b64encode(png).decode()) == png


BROKEN = {
    "empty": b"",
    "a JPEG": b"\xff\xd8\xff\xe0" + b"0" * 100,
    "the signature alone": SIGNATURE,
    "a signature mangled by a text transfer": SIGNATURE.replace(b"\r\n", b"\n")
    + an_ihdr()
    + PIXEL
    + END,
    "no IHDR": SIGNATURE + PIXEL + END,
    "IHDR not first": SIGNATURE + PIXEL + an_ihdr() + END,
    "two IHDRs": SIGNATURE + an_ihdr() + an_ihdr() + PIXEL + END,
    "a short IHDR": SIGNATURE + a_chunk(b"IHDR", b"\0" * 12) + PIXEL + END,
    "no width": SIGNATURE + an_ihdr(width=0) + PIXEL + END,
    "no height": SIGNATURE + an_ihdr(height=0) + PIXEL + END,
    "too wide": SIGNATURE + an_ihdr(width=8193) + PIXEL + END,
    "too high": SIGNATURE + an_ihdr(height=8193) + PIXEL + END,
    "as large as a number gets": SIGNATURE + an_ihdr(2**32 - 1, 2**32 - 1) + PIXEL + END,
    "no such colour type": SIGNATURE + an_ihdr(colour=5) + PIXEL + END,
    "no such depth": SIGNATURE + an_ihdr(depth=4, colour=2) + PIXEL + END,
    "no such compression": SIGNATURE + an_ihdr(compression=1) + PIXEL + END,
    "no such filter": SIGNATURE + an_ihdr(filtering=1) + PIXEL + END,
    "no such interlace": SIGNATURE + an_ihdr(interlace=2) + PIXEL + END,
    "no IEND": SIGNATURE + an_ihdr() + PIXEL,
    "an IEND with content": SIGNATURE + an_ihdr() + PIXEL + a_chunk(b"IEND", b"x"),
    "something after IEND": a_png() + b"\0",
    "a second picture after IEND": a_png() + an_ihdr() + PIXEL + END,
    "a chunk that claims more than there is": SIGNATURE
    + an_ihdr()
    + struct.pack(">I", 2**31)
    + PIXEL[4:]
    + END,
    "a chunk without a proper name": SIGNATURE + an_ihdr() + a_chunk(b"\0\0\0\0", b"") + END,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_anything_else_is_refused(data):
    with pytest.raises(BadScreenshot):
        check_png(data)


@given(st.integers(0, len(a_png(3, 3)) - 1))
def test_a_png_that_is_cut_short_is_refused(length):
    with pytest.raises(BadScreenshot):
        check_png(a_png(3, 3)[:length])


@given(st.integers(0, len(a_png(3, 3)) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(at, change):
    png = bytearray(a_png(3, 3))
    png[at] ^= change
    with pytest.raises(BadScreenshot):
        check_png(bytes(png))


@given(st.binary())
def test_any_bytes_are_taken_or_refused(data):
    with pytest.raises(BadScreenshot):
        check_png(data)


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        "not base64!",
        "iVBORw0KGgo",
        "data:image/png;base64," + base64.b64encode(a_png()).decode(),
        "é" * 8,
        "====",
    ],
)
def test_what_is_not_strict_base64_of_a_png_is_refused(encoded):
    with pytest.raises(BadScreenshot):
        read_screenshot(encoded)


@pytest.mark.parametrize(
    "spoil",
    [lambda text: text[:76] + "\n" + text[76:], lambda text: text + " ", lambda text: text[:-1]],
)
def test_base64_is_read_strictly(spoil):
    with pytest.raises(BadScreenshot):
        read_screenshot(spoil(base64.b64encode(a_png()).decode()))


@pytest.mark.parametrize("over", [0, 1, 2, 3])
def test_the_limit_counts_decoded_bytes(over):
    room = SCREENSHOT_BYTES + over - len(a_png()) - len(a_chunk(b"tEXt", b""))
    png = a_png()[:-12] + a_chunk(b"tEXt", b"x" * room) + a_png()[-12:]
    assert len(png) == SCREENSHOT_BYTES + over
    encoded = base64.b64encode(png).decode()
    if over:
        with pytest.raises(PayloadTooLarge):
            read_screenshot(encoded)
    else:
        assert read_screenshot(encoded) == png
