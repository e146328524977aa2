"""Counts of dead processes are kept in one file, and their own files are deleted."""

import os
import subprocess
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from cardsync.operations.processes.metrics_server import _OfAll, fold_dead

KEY = mmap_key("seen", "seen_total", ["route"], ["/cards"], "Seen")


def counted(folder, number, value):
    counts = MmapedDict(str(folder / f"counter_{number}.db"))
    counts.write_value(KEY, value, 0)
    counts.close()


def a_dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def shown(folder):
    registry = CollectorRegistry()
    _OfAll(registry, folder)
    return registry.get_sample_value("seen_total", {"route": "/cards"})


def test_the_counts_of_dead_processes_are_in_one_file(tmp_path):
    counted(tmp_path, os.getpid(), 1)
    for value in (10, 100):
        counted(tmp_path, a_dead_process(), value)
        assert shown(tmp_path) == 1 + (value if value == 10 else 110)
    (tmp_path / f"counter_{a_dead_process()}.db").touch()  # It was killed as it made its file.
    fold_dead(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"counter_0.db", f"counter_{os.getpid()}.db"}
    assert shown(tmp_path) == 111


def test_on_a_full_disk_the_files_of_the_dead_stay(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    counted(tmp_path, a_dead_process(), 7)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert shown(tmp_path) == 7
    assert shown(tmp_path) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["counter_0.db"]
