"""The solver's process: a wish comes in, and the answer of `optimum.py` goes out.

The solver neither yields nor can be stopped inside ours, so it has a process of its own.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from cardsync import errors
from cardsync.discovery.split import Answer, Wish

# It starts Python and the solver before it works.
_STARTING = 5.0
# Each takes a whole core: the others wait.
_AT_ONCE = asyncio.Semaphore(2)


async def solved(wish: Wish) -> Answer:
    """Solve in a process of its own. Raises ServiceUnavailable when it does not end in time."""
    async with _AT_ONCE:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "cardsync.discovery.optimum",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(wish.seconds * 2 + _STARTING):
                told, _ = await process.communicate(msgspec.json.encode(wish))
        except TimeoutError as e:
            raise errors.ServiceUnavailable("the basket took too long; try again") from e
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode:
        raise errors.ServiceUnavailable("the basket could not be solved; try again")
    return msgspec.json.decode(told, type=Answer)
