"""Serves /metrics on its own address, and pushes the same metrics by OTLP if that is set. The
metrics are those of all processes of a supervisor together, or of a worker that runs alone.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil
import structlog
from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Metric,
    multiprocess,
    start_http_server,
)
from prometheus_client.mmap_dict import MmapedDict

from cardsync.operations.processes.installation_metrics import InstallationMetrics
from cardsync.platform.settings import Settings

log = structlog.get_logger(__name__)

# The ID in the names of the files with the counts of dead processes. No process has this ID.
_DEAD = "0"
_folding = threading.Lock()
_Counts: Any = MmapedDict


def metrics_folder(run_folder: Path) -> Path:
    """Make the folder in which the processes of a supervisor store their counts.

    The processes map the folder's files into memory. A full disk would then kill a process, so the
    folder is in memory if the system has a place for that. Its name is derived from `run_folder`,
    so that a killed supervisor leaves no second folder.
    """
    name = f"cardsync-metrics-{sha256(bytes(run_folder.resolve())).hexdigest()[:16]}"
    for folder in (Path("/dev/shm") / name, run_folder / "metrics"):  # noqa: S108
        shutil.rmtree(folder, ignore_errors=True)
        # Another user of this machine may have taken the name.
        with suppress(OSError):
            folder.mkdir(mode=0o700)
            return folder
    raise RuntimeError(f"no folder for metrics can be made in {run_folder}")


class _OfAll(multiprocess.MultiProcessCollector):
    def __init__(self, registry: CollectorRegistry, folder: Path) -> None:
        self._folder = folder
        super().__init__(registry, path=str(folder))  # type: ignore[no-untyped-call]

    def collect(self) -> Iterable[Metric]:
        fold_dead(self._folder)
        with _folding:
            found: Iterable[Metric] = super().collect()  # type: ignore[no-untyped-call]
            return found


def fold_dead(folder: Path) -> None:
    """Add the counts of dead processes to one file of each kind, and delete the processes' own
    files, which would otherwise accumulate.
    """
    dead: dict[str, list[Path]] = {}
    with _folding:
        for path in folder.glob("*.db"):
            kind, _, number = path.stem.rpartition("_")
            if number != _DEAD and not psutil.pid_exists(int(number)):
                dead.setdefault(kind, []).append(path)
        for kind, paths in dead.items():
            with suppress(OSError):
                _fold(folder / f"{kind}_{_DEAD}.db", paths)


def _fold(kept: Path, dead: list[Path]) -> None:
    sums = Counter[str]()
    for path in (kept, *dead):
        # A process that was killed while it made its file has counted nothing.
        if path.exists() and path.stat().st_size:
            for key, value, *_ in _Counts.read_all_values_from_file(str(path)):
                sums[key] += value
    fresh = kept.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    counts = _Counts(str(fresh))
    for key, value in sums.items():
        counts.write_value(key, value, 0)
    counts.close()
    fresh.replace(kept)
    for path in dead:
        path.unlink()


@contextmanager
def metrics_served(
    settings: Settings, folder: Path, deaths: Callable[[], dict[str, int]]
) -> Iterator[None]:
    """Serve the metrics of processes that write their counts into the folder. `deaths` returns how
    often each process ended by itself.
    """
    registry = CollectorRegistry()
    _OfAll(registry, folder)
    registry.register(InstallationMetrics(settings, deaths))
    with _shown(settings, registry):
        yield


@contextmanager
def own_metrics_served(settings: Settings) -> Iterator[None]:
    """Serve the counts of this process; do nothing if its supervisor serves the counts of all its
    processes.
    """
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with _shown(settings, REGISTRY):
        yield


@contextmanager
def _shown(settings: Settings, registry: CollectorRegistry) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(_served(settings, registry))
        if settings.otlp_url and "metrics" in settings.exports:
            # Imported only here, so that nothing of OpenTelemetry is loaded without an export.
            from cardsync.platform.telemetry.pushed_metrics import pushed

            stack.enter_context(pushed(settings.otlp_url, registry))
        yield


@contextmanager
def _served(settings: Settings, registry: CollectorRegistry) -> Iterator[None]:
    if not settings.metrics_bind:
        yield
        return
    host, _, port = settings.metrics_bind.rpartition(":")
    try:
        server, thread = start_http_server(int(port), addr=host, registry=registry)
    except OSError as e:
        log.warning("metrics_off", bind=settings.metrics_bind, reason=e.strerror)
        yield
        return
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
