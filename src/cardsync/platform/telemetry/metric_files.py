"""Reserves the files in which processes store their metrics for the supervisor to read.

Prometheus' client maps files with holes into memory. Where the disk has no byte left for a hole,
the process that counts dies of SIGBUS. A file that cannot be reserved is kept in memory instead:
its process goes on, and the next one reports its metrics again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import prometheus_client.values
import structlog
from prometheus_client.mmap_dict import MmapedDict

log = structlog.get_logger(__name__)

# All routes' counts find room in it.
RESERVED_BYTES = 1 << 20
# The bytes of a value beside its name.
_VALUE_BYTES = 32


class ReservedDict(MmapedDict):
    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode and not Path(filename).exists():
            filename = _reserved(Path(filename))
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        needed = self._used + len(key.encode()) + _VALUE_BYTES
        if needed > self._capacity:
            os.posix_fallocate(self._f.fileno(), 0, self._capacity * 2)
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def read_value(self, key: str) -> tuple[float, float]:
        try:
            value: tuple[float, float] = super().read_value(key)  # type: ignore[no-untyped-call]
        except OSError:
            return 0.0, 0.0
        return value

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        # Without room the process that counts holds the value, and writes it the next time.
        with suppress(OSError):
            super().write_value(key, value, timestamp)  # type: ignore[no-untyped-call]


def _reserved(path: Path) -> str:
    """Write the file under another name until it is whole: a reader in between would find it empty."""
    draft = path.with_suffix(".draft")
    try:
        with draft.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, RESERVED_BYTES)
        draft.rename(path)
    except OSError as e:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        log.warning("metrics_not_shared", reason=e.strerror)
        return f"/proc/self/fd/{os.memfd_create(path.name)}"
    return str(path)


def reserve() -> None:
    """Prepare the files before the first metric is counted. Elsewhere than on Linux files stay as
    they are.
    """
    if hasattr(os, "memfd_create"):
        prometheus_client.values.MmapedDict = ReservedDict  # type: ignore[attr-defined]
