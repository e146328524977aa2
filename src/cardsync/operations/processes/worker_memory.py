"""Sets the allocators of a worker, so that it uses less memory, and the most that it may have.

Allocators read their settings when a process starts, and never again.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

# Frames are large and short-lived: their memory goes back to the system within the second.
FRUGAL = {
    "MALLOC_ARENA_MAX": "2",
    # Fixed values, because glibc raises both by itself and then does not return the memory of large
    # buffers.
    "MALLOC_MMAP_THRESHOLD_": "262144",
    "MALLOC_TRIM_THRESHOLD_": "262144",
    # Memory outside frames uses huge pages, where the system gives them: a third fewer page faults.
    # Frames in them cost more than they save.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "_RJEM_MALLOC_CONF": "background_thread:true,dirty_decay_ms:700,muzzy_decay_ms:0,narenas:2",
}


def frugal(env: Mapping[str, str]) -> dict[str, str]:
    # Our settings count. Polars writes its own into the environment of a process that imports it,
    # and they would be passed on.
    return {**env, **FRUGAL}


def begin_anew() -> None:
    """Start the same program again in the same process with a worker's memory, unless it began with
    that.
    """
    # Polars writes its own settings beside ours into the environment of the process that imports
    # it.
    if not all(value in os.environ.get(name, "") for name, value in FRUGAL.items()):
        os.execve(  # noqa: S606
            sys.executable,
            [sys.executable, "-m", "cardsync", *sys.argv[1:]],
            frugal(os.environ),
        )


def limit_memory(megabytes: int) -> None:
    """Limit this process's memory, and let the system end it before others when memory runs out.
    Systems differ in what they can limit.
    """
    with contextlib.suppress(ValueError, OSError):
        most = megabytes << 20
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
