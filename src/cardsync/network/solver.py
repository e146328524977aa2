"""Runs `optimum.py` in its own process, and returns the last answer that it writes within the time
limit.

The library HiGHS would block the web process and can't be stopped. The solver writes a simple
answer first, which is used if the machine is too busy to find a better one.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from cardsync.network.split import Answer, Wish
from cardsync.platform import errors
from cardsync.web.fair_turns import FairTurns

# The solver may exceed its time limit by about this many seconds.
_LATER = 0.3
# If there is no answer at the end, wait this many seconds longer, because the process has to start
# Python first.
_STARTING = 10.0
# Each solver uses a whole core, so at most two run at the same time.
_solving = FairTurns(2)
_LONGEST_LINE = 10_000_000


async def solved(wish: Wish) -> Answer:
    """Solve in a separate process. Raises ServiceUnavailable if there is no answer."""
    async with _solving.turn():
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "cardsync.network.optimum",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
        )
        try:
            last = await _last_line(process, wish)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if not last:
        raise errors.ServiceUnavailable("the basket could not be solved; try again")
    return msgspec.json.decode(last, type=Answer)


async def _last_line(process: asyncio.subprocess.Process, wish: Wish) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    last = b""
    loop = asyncio.get_running_loop()
    end = loop.time() + wish.seconds + _LATER
    try:
        async with asyncio.timeout_at(end + _STARTING) as until:
            process.stdin.write(msgspec.json.encode(wish))
            await process.stdin.drain()
            process.stdin.close()
            while line := await process.stdout.readline():
                last = line if line.endswith(b"\n") else last
                until.reschedule(max(end, loop.time()))
    except (TimeoutError, ConnectionError):
        pass
    return last
