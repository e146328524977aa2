"""Sets a worker's memory allocators, so that it uses less memory, and its memory limit.

Allocators read their settings only when a process starts.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

# Memory of frames returns to the system after ten seconds, because the next frames of an import use
# it again: after 0.7 s, 300,000 rows took the worker 11 % more processor time (ADR 19).
FRUGAL = {
    "MALLOC_ARENA_MAX": "2",
    # These two values are fixed, because glibc otherwise raises both, and then does not return the
    # memory of large buffers.
    "MALLOC_MMAP_THRESHOLD_": "262144",
    "MALLOC_TRIM_THRESHOLD_": "262144",
    # Memory outside frames uses huge pages if the system has them: a third fewer page faults. For
    # frames, huge pages cost more than they save.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "_RJEM_MALLOC_CONF": "background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:0,narenas:2",
}


def frugal(env: Mapping[str, str]) -> dict[str, str]:
    # These settings take precedence over those that Polars writes into the environment of a process
    # that imports it, because children would inherit them.
    return {**env, **FRUGAL}


def begin_anew() -> None:
    """Restart the same program in the same process with a worker's memory settings, unless it
    already has them.
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
    """Limit this process's memory, and make the system kill it before others when memory runs out.
    Systems differ in what they can limit.
    """
    with contextlib.suppress(ValueError, OSError):
        most = megabytes << 20
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")
