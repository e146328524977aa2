"""How a worker takes memory and gives it back: an environment in, the same with the allocators'
settings out.

Allocators read them when a process starts, and never again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

# Frames are large and short-lived: what they held goes back to the system within the second.
FRUGAL = {
    "MALLOC_ARENA_MAX": "2",
    # Fixed, because glibc raises both by itself and then keeps what large buffers leave behind.
    "MALLOC_MMAP_THRESHOLD_": "262144",
    "MALLOC_TRIM_THRESHOLD_": "262144",
    # Huge pages for what is not a frame's, where the system gives them: a third fewer page
    # faults. Frames in them cost more than they save.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "_RJEM_MALLOC_CONF": "background_thread:true,dirty_decay_ms:700,muzzy_decay_ms:0,narenas:2",
}


def frugal(env: Mapping[str, str]) -> dict[str, str]:
    # Ours count: in the environment of who imported Polars stand its own, and would be passed on.
    return {**env, **FRUGAL}


def begin_anew() -> None:
    """The same program in the same process with a worker's memory, unless it began with that."""
    # Polars writes its own beside ours into the environment of whoever imports it.
    if not all(value in os.environ.get(name, "") for name, value in FRUGAL.items()):
        os.execve(  # noqa: S606
            sys.executable,
            [sys.executable, "-m", "cardsync", *sys.argv[1:]],
            frugal(os.environ),
        )
