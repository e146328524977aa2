"""A plain proxy for the tests: each connection goes to one of the servers in turn, or to the next one
where that does not answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def plain_proxy(ports: list[int]) -> Iterator[str]:
    """Yield its address; it runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    begun = threading.Event()
    ports_served: list[int] = []
    turns = iter(range(10**9))

    async def connected() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first = next(turns)
        for n in range(len(ports)):
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", ports[(first + n) % len(ports)])
        raise ConnectionRefusedError

    async def piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await connected()
        except OSError:
            writer.close()
            return
        await asyncio.gather(piped(reader, back), piped(there, writer))

    async def run() -> None:
        server = await asyncio.start_server(served, "127.0.0.1", 0)
        ports_served.append(server.sockets[0].getsockname()[1])
        begun.set()
        with suppress(asyncio.CancelledError):
            await server.serve_forever()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(task), daemon=True)
    task = loop.create_task(run())
    thread.start()
    begun.wait()
    try:
        yield f"http://127.0.0.1:{ports_served[0]}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
