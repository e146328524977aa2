"""Whole gzip is distinguished from broken gzip, and nothing inflates past its cap."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import threading
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardsync.platform import limits
from cardsync.platform.errors import BadRequest, DecompressedTooLarge
from cardsync.web import bodies

WHOLE = gzip.compress(b"a,b\n1,2\n", mtime=0)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(b"\x1f\x8b\x08", True), (b"\x1f\x8b", True), (b"\x1f", False), (b"", False), (b"TCG", False)],
)
def test_gzip_is_told_by_its_first_two_bytes(start, expected):
    assert bodies.is_gzip(start) is expected
    assert bodies.is_gzip(memoryview(start)) is expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (WHOLE, b"a,b\n1,2\n"),
        (WHOLE * 3, b"a,b\n1,2\n" * 3),
        (WHOLE + b"\0" * 700, b"a,b\n1,2\n"),
        (WHOLE + b"\0\0" + WHOLE, b"a,b\n1,2\n" * 2),
        (gzip.compress(b"", mtime=0), b""),
    ],
)
def test_whole_gzip_is_read_to_its_end(data, expected, tmp_path):
    path = tmp_path / "body.gz"
    path.write_bytes(data)
    with path.open("rb") as file:
        for source in (data, memoryview(data), bytearray(data), path, file):
            assert bodies.inflate(source, 1000) == expected
    assert bodies.check_gzip(path, 1000, 3) == (expected[:3], len(expected))
    assert bodies.check_gzip(data, 1000, 1000) == (expected, len(expected))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x1f",
        b"plain text",
        b"\x1f\x8b",
        b"\x1f\x8b\x07" + b"\0" * 20,
        WHOLE[:5],
        WHOLE[:-1],
        WHOLE[:-8] + b"\0\0\0\0" + WHOLE[-4:],
        WHOLE[:-4] + b"\1\2\3\4",
        WHOLE[:12] + b"\xff\xff\xff" + WHOLE[15:],
        WHOLE + b"garbage",
        WHOLE + b"\0\0x",
        WHOLE + b"\x1f",
        WHOLE + WHOLE[:-2],
    ],
)
def test_anything_else_is_bad_gzip(data):
    with pytest.raises(bodies.BadGzip):
        bodies.inflate(data, 1000)
    with pytest.raises(bodies.BadGzip):
        bodies.check_gzip(data, 1000, 10)


def test_bad_gzip_is_told_in_our_words():
    for place in range(10, len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[place] ^= 0xFF
        with pytest.raises(bodies.BadGzip) as raised:
            bodies.inflate(bytes(damaged), 1000)
        assert str(raised.value) in (
            "it is damaged",
            "it ends too early, or extra data follows it",
        )


def test_the_cap_itself_is_allowed_and_one_byte_more_is_not():
    assert bodies.inflate(WHOLE, 8) == b"a,b\n1,2\n"
    for data in (WHOLE, gzip.compress(b"") * 5 + WHOLE, gzip.compress(b"abcd") * 2):
        with pytest.raises(DecompressedTooLarge, match="7 bytes"):
            bodies.inflate(data, 7)
        with pytest.raises(DecompressedTooLarge):
            bodies.check_gzip(data, 7, 1)


def test_a_bomb_stops_at_the_cap():
    engine = zlib.compressobj(9, wbits=31)
    # After a full flush the same bytes stand for the same megabyte, as often as they come.
    head, megabyte = (
        engine.compress(bytes(1 << 20)) + engine.flush(zlib.Z_FULL_FLUSH) for _ in range(2)
    )
    bomb = head + megabyte * 1023 + engine.flush()

    class Counting(io.BytesIO):
        taken = 0

        def read(self, size=-1):
            data = super().read(size)
            self.taken += len(data)
            return data

        def readinto(self, buffer):
            got = super().readinto(buffer)
            self.taken += got
            return got

    source = Counting(bomb)
    with pytest.raises(DecompressedTooLarge):
        bodies.check_gzip(source, 5_000_000, 10)
    # The reader takes half a megabyte at a time; the other half of the bomb is never looked at.
    assert source.taken < len(bomb) * 0.6


def test_many_members_are_linear():
    data = gzip.compress(b"row\n") * 200_000
    started = time.process_time()
    assert bodies.inflate(data, 10_000_000) == b"row\n" * 200_000
    # A reader that copies the rest for every member needs minutes.
    assert time.process_time() - started < 20


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=30),
    st.integers(0, 40),
    st.integers(1, 9),
)
def test_any_split_into_members_gives_the_same_bytes(parts, padding, level):
    data = b"".join(gzip.compress(part, level) for part in parts) + bytes(padding)
    whole = b"".join(parts)
    assert bodies.inflate(data, len(whole)) == whole
    assert bodies.check_gzip(data, len(whole), 50) == (whole[:50], len(whole))
    assert b"".join(bodies.pieces(data, len(whole))) == whole


@pytest.mark.day
def test_a_body_comes_in_pieces_and_whoever_stops_reading_leaves_no_thread():
    threads = threading.active_count()
    whole = random.Random(7).randbytes(3 * bodies.PIECE_BYTES + 5)
    for body in (
        whole,
        gzip.compress(whole, 1),
        gzip.compress(whole[:99], 1) + gzip.compress(whole[99:], 1),
    ):
        made = list(bodies.pieces(body, len(whole)))
        assert b"".join(made) == whole
        assert max(map(len, made)) <= bodies.PIECE_BYTES + 2**17
        assert next(bodies.pieces(body, len(whole))) == made[0]
    damaged = bodies.pieces(gzip.compress(whole, 1)[:-9], len(whole))
    assert next(damaged) == whole[: bodies.PIECE_BYTES]
    with pytest.raises(bodies.BadGzip):
        list(damaged)
    with pytest.raises(DecompressedTooLarge):
        list(bodies.pieces(gzip.compress(whole, 1), len(whole) - 1))
    assert threading.active_count() == threads


@settings(deadline=None)
@given(st.binary(max_size=2000), st.data())
def test_any_damage_is_bad_gzip_or_leaves_the_bytes_as_they_were(content, data):
    packed = bytearray(gzip.compress(content, mtime=0))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(bodies.BadGzip):
        assert bodies.inflate(bytes(packed), 10_000) == content


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_json_nests_so_deep_and_no_deeper(opens, closes):
    def nested(depth):
        return f"{opens * depth}1{closes * depth}".encode()

    assert bodies.decoded(nested(limits.JSON_DEPTH))
    wide = b"[" + b",".join([nested(3)] * limits.JSON_DEPTH) + b"]"
    assert len(bodies.decoded(wide)) == limits.JSON_DEPTH
    for depth in (limits.JSON_DEPTH + 1, 500, 100_000):
        with pytest.raises(BadRequest, match="deeper than 100"):
            bodies.decoded(nested(depth))
