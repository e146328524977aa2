"""Makes a file in a heavy read, which returns its path, and sends it from the web process: it may
be large, and its reader slow.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO, Final

from cardsync.access.caller import Caller
from cardsync.web.heavy_work import HeavyWork

# The file's name begins with this.
MADE: Final = "cardsync-made-"
_CHUNK: Final = 1 << 18


@contextmanager
def making() -> Iterator[tuple[Path, IO[bytes]]]:
    """Open a new file; where the block fails, nothing is left of it."""
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
    """Return the parts, the first of which is made already, so that a refusal is not a file that
    ends early. A seller has one such file at a time.
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
    """Return the file's bytes in chunks. It has no name any more from here on, so nothing is left
    of it however its reader ends.
    """
    file = path.open("rb")
    path.unlink()
    return _chunks(file)


async def _chunks(file: IO[bytes]) -> AsyncGenerator[bytes, None]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
