"""Controls a process that does heavy work, over a pipe. (`heavy_work.py` starts it.)"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

LENGTH: Final = struct.Struct(">Q")
# The message that tells a process to stop its current work.
STOP: Final = b""
_STOP_SECONDS: Final = 2.0


class Answered(NamedTuple):
    """The function's result, or the exception that it raised."""

    found: Any
    failure: BaseException | None = None


def _taken(path: Path) -> Answered:
    """Read an answer from its file. A large answer does not go through the pipe, because the pipe
    would hold it in memory three times.
    """
    try:
        with path.open("rb") as file:
            answer: Answered = pickle.load(file)  # noqa: S301
    finally:
        path.unlink()
    return answer


class Child:
    def __init__(
        self, process: asyncio.subprocess.Process, folder: TemporaryDirectory[str]
    ) -> None:
        self._process, self._folder = process, folder
        self._late: asyncio.TimerHandle | None = None

    def wakes(self) -> None:
        """Cancel the scheduled end of an idle process."""
        if self._late is not None:
            self._late.cancel()

    def lives(self) -> bool:
        """Return whether the process still runs and can take a request."""
        assert self._process.stdout is not None
        return self._process.returncode is None and not self._process.stdout.at_eof()

    async def tell(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(LENGTH.pack(len(data)) + data)
        await self._process.stdin.drain()

    async def ready(self) -> None:
        """Wait until the process reports that it is ready."""
        assert self._process.stdout is not None
        await self._process.stdout.readexactly(LENGTH.size)

    async def answer(self, asked: bytes) -> Answered:
        await self.tell(asked)
        return await self._heard()

    async def _heard(self) -> Answered:
        assert self._process.stdout is not None
        head = await self._process.stdout.readexactly(LENGTH.size)
        path = await self._process.stdout.readexactly(LENGTH.unpack(head)[0])
        return await asyncio.to_thread(_taken, Path(path.decode()))

    async def stopped(self) -> bool:
        """Tell the process to stop its work, and return whether it did. After a partly read answer
        the process cannot be used again.
        """
        with contextlib.suppress(TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self.tell(STOP)
                await self._heard()
                return True
        return False

    def rests(self, seconds: float, ended: Callable[[], bool]) -> None:
        """End the process after `seconds` without a request, if `ended` then allows it."""

        def late() -> None:
            if not ended():
                self.rests(seconds, ended)
                return
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._folder.cleanup()

        self._late = asyncio.get_running_loop().call_later(seconds, late)

    async def end(self) -> None:
        self.wakes()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await asyncio.to_thread(self._folder.cleanup)
