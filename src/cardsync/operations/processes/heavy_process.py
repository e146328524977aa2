"""Answers the heavy reads of web processes (`web/heavy_work.py`), one at a time, until standard
input ends.

The process has a memory limit. Web processes have precedence for the processor and for the system's
memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from structlog.contextvars import bound_contextvars

# The modules for a draft rule's preview are loaded before the first request.
import cardsync.prices.preview.asked  # noqa: F401
from cardsync.operations.processes.worker_memory import limit_memory
from cardsync.platform import errors
from cardsync.platform.database.hot_reads import only_looking
from cardsync.platform.database.read_copy import ReadCopy, read_copy
from cardsync.platform.database.session import Database
from cardsync.platform.logs import setup_logging
from cardsync.platform.settings import Settings
from cardsync.prices.preview.warm_up import warm_up
from cardsync.web.heavy_child import LENGTH, STOP, Answered
from cardsync.web.heavy_work import FOLDER, TOO_MUCH, HeavyRequest
from cardsync.web.made_files import MADE

# The connections of the work and of the renewal of its lease.
_CONNECTIONS = 3
# The answer when the memory limit is reached.
_NO_ROOM = Answered(None, errors.ServiceUnavailable(TOO_MUCH))


def serve_heavy_reads() -> None:
    """Serve requests from standard input. All other output is written to the log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # A service manager may forbid a change of the priority.
    with contextlib.suppress(OSError):
        os.nice(5)
    try:
        # Its web process may end before the settings arrive, or before this process is ready.
        with contextlib.suppress(asyncio.IncompleteReadError, BrokenPipeError):
            asyncio.run(_serve(answers))
    finally:
        # A killed web process does not remove its folder.
        folder = Path(tempfile.gettempdir())
        if folder.name.startswith(FOLDER):
            shutil.rmtree(folder, ignore_errors=True)


async def _serve(answers: BinaryIO) -> None:
    asked = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(asked)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    settings: Settings = pickle.loads(await _frame(asked))  # noqa: S301
    setup_logging(settings.log_level, settings.log_format)
    limit_memory(settings.heavy_memory_mb)
    assert settings.database_url is not None
    opening = Database.open(
        settings.database_url,
        pool=_CONNECTIONS,
        hot_pool=0,
        slow=settings.slow_seconds,
        pooler=settings.pooler_database_url,
    )
    working: asyncio.Task[None] | None = None
    async with opening as database, read_copy(settings.read_database_url) as copy:
        await warm_up(database)
        answers.write(LENGTH.pack(0))
        answers.flush()
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                data = await _frame(asked)
                if data != STOP:
                    working = asyncio.create_task(_answer(data, answers, database, copy, settings))
                elif working is not None:
                    working.cancel()
                    working.add_done_callback(_forget)
        if working is not None:
            working.cancel()


def _forget(_: object) -> None:
    """Remove the files of work that was stopped at its end, because nobody reads its answer."""
    for path in Path(tempfile.gettempdir()).glob(f"{MADE}*"):
        path.unlink()


async def _frame(asked: asyncio.StreamReader) -> bytes:
    length = LENGTH.unpack(await asked.readexactly(LENGTH.size))[0]
    return await asked.readexactly(length)


async def _answer(
    data: bytes,
    answers: BinaryIO,
    database: Database,
    copy: ReadCopy | None,
    settings: Settings,
) -> None:
    asked: HeavyRequest = pickle.loads(data)  # noqa: S301
    caller, *values = asked.values
    work = getattr(import_module(asked.module), asked.name)

    async def of(place: Database) -> Any:
        return await work(place, caller, settings, *values, **asked.options)

    try:
        looking = only_looking() if asked.only_looks else contextlib.nullcontext()
        with bound_contextvars(**asked.logged), looking:
            found = await (of(database) if copy is None else copy.read(database, of))
        answered = Answered(found)
    except BaseException as e:
        answered = Answered(None, e)
    tell(answers, answered)


def tell(answers: BinaryIO, answered: Answered) -> None:
    """Write the name of the file with the answer, which may be large and is read once."""
    if isinstance(answered.failure, MemoryError):
        answered = _NO_ROOM
    try:
        path = _kept(answered)
    except MemoryError:
        path = _kept(_NO_ROOM)
    except Exception:
        path = _kept(Answered(None, RuntimeError(repr(answered.failure))))
    answers.write(LENGTH.pack(len(path)) + path)
    answers.flush()


def _kept(answered: Answered) -> bytes:
    """Write the answer; its reader removes the file."""
    with tempfile.NamedTemporaryFile(prefix="cardsync-", delete=False) as file:
        pickle.dump(answered, file)
    return file.name.encode()
