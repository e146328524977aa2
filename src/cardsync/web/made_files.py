"""Lets a heavy read write its answer to a file and return the path; the web process then sends the
file. The file may be large, and the client slow.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, NamedTuple

from cardsync.access.caller import Caller
from cardsync.web.heavy_work import HeavyWork

# Data up to this size stays in memory.
SMALL: Final = 1 << 16
# The prefix of the file's name.
MADE: Final = "cardsync-made-"
_CHUNK: Final = 1 << 18


class Made(NamedTuple):
    """A finished file, with its size and checksum."""

    path: Path
    size: int
    sha256: str


class UnnamedFile(NamedTuple):
    """An open file that is already unlinked, so that it leaves nothing on the disk, whatever
    happens to its reader.
    """

    file: IO[bytes]
    size: int
    sha256: str


def made(data: bytes) -> bytes | Made:
    """Return the data, or write it to a file if it is large."""
    if len(data) <= SMALL:
        return data
    with making() as (path, file):
        file.write(data)
    return Made(path, len(data), sha256(data).hexdigest())


def taken(data: bytes | Made) -> bytes | UnnamedFile:
    """Open the file and unlink it at once, because nothing else would remove it."""
    if isinstance(data, bytes):
        return data
    return UnnamedFile(_nameless(data.path), data.size, data.sha256)


def sha256_of(data: bytes | UnnamedFile) -> str:
    return data.sha256 if isinstance(data, UnnamedFile) else sha256(data).hexdigest()


def _nameless(path: Path) -> IO[bytes]:
    file = path.open("rb")
    path.unlink()
    return file


@contextmanager
def making() -> Iterator[tuple[Path, IO[bytes]]]:
    """Create and open a file. The file is removed if the block raises."""
    with tempfile.NamedTemporaryFile(prefix=MADE, delete=False) as file:
        path = Path(file.name)
        try:
            yield path, file
        except BaseException:
            path.unlink()
            raise


async def begun(
    heavy: HeavyWork, caller: Caller, parts: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Return the parts, after making the first one, so that an error is reported instead of a
    truncated file. A seller makes only one such file at a time.
    """
    held = _held(heavy, caller, parts)
    return _all(await anext(held), held)


async def _held(
    heavy: HeavyWork, caller: Caller, parts: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with heavy.place(caller.seller_id), aclosing(parts):
        async for part in parts:
            yield part


async def _all(first: bytes, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        yield first
        async for part in parts:
            yield part


def sent(path: Path) -> AsyncGenerator[bytes, None]:
    """Open a file, unlink it at once, and return its bytes in chunks."""
    return chunks(_nameless(path))


async def chunks(file: IO[bytes]) -> AsyncGenerator[bytes, None]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
