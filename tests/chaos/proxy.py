"""A TCP proxy of our own between processes and what they depend on, with a fault that is put on and
taken off while connections live.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

Fault = Literal["latency", "slow", "half_open", "reset", "cut"]
FAULTS: tuple[Fault, ...] = ("latency", "slow", "half_open", "reset", "cut")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CHUNK = 1 << 16
# A connection that waits so long sends a probe (database/urls.py).
KEPT_ALIVE_SECONDS = 5
# Bytes of the slow fault in each part, and the seconds between two parts.
_SLOWLY, _PAUSE = 2_000, 0.05


class Proxy:
    """Hands on bytes to a port of this machine, or to a socket's path; `port` is its own."""

    def __init__(self, upstream: int | Path) -> None:
        self._upstream = upstream
        self._fault: Fault | None = None
        # A connection that lived in a fault that swallowed its bytes is not one any more.
        self._dead: set[asyncio.StreamWriter] = set()
        self._open: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(30)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        self._call(self._server.close)
        self._call(self._reset_all)
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._call(self._loop.stop)
        self._thread.join(30)

    async def _end(self) -> None:
        """End what still serves a connection: no task outlives its loop."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        self._call(lambda: self._begin(fault))
        try:
            yield
        finally:
            self._call(self._heal)

    def _call(self, work: object) -> None:
        self._loop.call_soon_threadsafe(work)  # type: ignore[arg-type]

    def _begin(self, fault: Fault) -> None:
        self._fault = fault
        if fault in ("reset", "cut"):
            self._reset_all()

    def _heal(self) -> None:
        if self._fault == "half_open":
            self._dead |= self._open.keys()
            self._loop.call_later(KEPT_ALIVE_SECONDS, self._answer_probes, set(self._dead))
        self._fault = None

    def _answer_probes(self, dead: set[asyncio.StreamWriter]) -> None:
        """A host that came back answers the probe of an old connection by RST. Probes end at this
        side of the proxy, so that it answers for the host.
        """
        for writer in dead & self._dead:
            _reset(writer)

    def _reset_all(self) -> None:
        for writer in list(self._open):
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._fault in ("reset", "cut"):
            _reset(writer)
            return
        try:
            up_reader, up_writer = await self._connect()
        except OSError:
            _reset(writer)
            return
        self._open |= {writer: up_writer, up_writer: writer}
        ways = ((reader, up_writer, writer), (up_reader, writer, up_writer))
        await asyncio.gather(*(self._pump(*way) for way in ways))
        self._open.pop(writer, None)
        self._open.pop(up_writer, None)
        self._dead -= {writer, up_writer}

    async def _connect(self) -> Streams:
        if isinstance(self._upstream, Path):
            return await asyncio.open_unix_connection(self._upstream)
        return await asyncio.open_connection("127.0.0.1", self._upstream)

    async def _pump(
        self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, of: asyncio.StreamWriter
    ) -> None:
        """Hand on one direction. A host that was away resets what comes on its old connections."""
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                if of in self._dead:
                    _reset(of)
                    _reset(to)
                    return
                await self._hand_on(data, to)
        with suppress(OSError, RuntimeError):
            to.close()

    async def _hand_on(self, data: bytes, to: asyncio.StreamWriter) -> None:
        if self._fault == "half_open":
            return
        if self._fault == "latency":
            await asyncio.sleep(random.uniform(0.05, 0.4))
        while self._fault == "slow" and data:
            part, data = data[:_SLOWLY], data[_SLOWLY:]
            to.write(part)
            await asyncio.sleep(_PAUSE)
        to.write(data)
        await to.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a dead host does, by RST."""
    with suppress(OSError):
        one: socket.socket | None = writer.get_extra_info("socket")
        if one is not None and one.family != socket.AF_UNIX:
            linger = struct.pack("ii", 1, 0)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
