"""The tests that `make check` leaves out and `make test` runs.

Tests say themselves that they are slow. Beside them, two rules mark tests by where they stand: a
test of real processes is slow, and where a test of a feature or a contract has parameters, its
first cases are everyday and the others slow.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# `make check` runs this many cases of a test with parameters.
CASES = 2
# These folders start real processes.
PROCESSES = ("kills", "system")
# One file of real processes stays in `make check`: a first run from nothing, told in the terminal.
DEMO = "test_demo.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in PROCESSES and item.path.name != DEMO:
            item.add_marker(pytest.mark.slow)
        elif folder in ("features", "contract"):
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > CASES:
                item.add_marker(pytest.mark.slow)


def spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """The files of real processes evenly among the others, and the short files of `core` last.

    Tests of processes wait and the others compute: side by side they use a machine well, and
    no worker is left alone with a long file at the end.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    kinds: dict[str, list[Path]] = {}
    for path in sorted(files, key=lambda path: -len(files[path])):
        folder = path.relative_to(TESTS).parts[0]
        kind = "processes" if folder in PROCESSES else folder if folder == "core" else "others"
        kinds.setdefault(kind, []).append(path)
    both = (kinds.get("processes", []), kinds.get("others", []))
    placed = sorted(
        ((place + 0.5) / len(paths), path) for paths in both for place, path in enumerate(paths)
    )
    ordered = [*(path for _, path in placed), *kinds.get("core", [])]
    return list(itertools.chain.from_iterable(files[path] for path in ordered))
