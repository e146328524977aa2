"""Runs the process that encodes pictures (`encode_process.py`), and kills it when it takes too
long.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from cardsync.stock.pictures import encode_process
from cardsync.stock.pictures.encode_process import LENGTH, MADE, SIZES, Unfit

SECONDS: Final = 10.0
_BYTES_MOST: Final = 4_000_000
_PROGRAM: Final = str(Path(encode_process.__file__))


class Encoder:
    """Runs one encoder process at a time. If the process was killed, the next picture starts a new
    process.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process else None

    async def make(self, source: bytes) -> dict[str, bytes]:
        """Return the picture's WebP files by size name. Raises Unfit."""
        try:
            async with asyncio.timeout(SECONDS):
                return await self._made(source)
        except Refused:
            raise
        except TimeoutError:
            await self.end()
            raise Unfit(f"making it took more than {SECONDS:.0f} seconds") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.end()
            raise Unfit("making it failed") from None
        except BaseException:
            # The pipe may still hold half an answer, so the process can't be reused.
            await self.end()
            raise

    async def _made(self, source: bytes) -> dict[str, bytes]:
        process = self._process = self._process or await _started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(LENGTH.pack(len(source)) + source)
        await process.stdin.drain()
        if await process.stdout.readexactly(1) == MADE:
            return {size: await _part(process.stdout) for size in SIZES}
        raise Refused((await _part(process.stdout)).decode())

    async def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class Refused(Unfit):
    """The encoder process refused the picture, and can encode further pictures."""


async def _started() -> asyncio.subprocess.Process:
    # The process gets no environment variables and no import paths of the service, so that a
    # malicious picture can't read secrets there.
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        _PROGRAM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )


async def _part(answer: asyncio.StreamReader) -> bytes:
    length = LENGTH.unpack(await answer.readexactly(LENGTH.size))[0]
    if length > _BYTES_MOST:
        raise ConnectionError("the answer is not from the encoder")
    return await answer.readexactly(length)


@asynccontextmanager
async def encoder() -> AsyncIterator[Encoder]:
    made = Encoder()
    try:
        yield made
    finally:
        await made.end()
