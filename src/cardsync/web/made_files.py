"""Makes a file in a heavy read, and sends it from the web process: it may be large, and its reader
slow. The read returns its path.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

_CHUNK: Final = 1 << 18


@contextmanager
def making() -> Iterator[tuple[Path, IO[bytes]]]:
    """Open a new file; where the block fails, nothing is left of it."""
    with tempfile.NamedTemporaryFile(prefix="cardsync-", delete=False) as file:
        path = Path(file.name)
        try:
            yield path, file
        except BaseException:
            path.unlink()
            raise


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
