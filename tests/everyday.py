"""What `make check` leaves out and `make test` runs.

Tests say themselves that they are slow. Beside them, two rules mark tests by where they stand: a
test of real processes is slow, and where a test of a feature or a contract has parameters, its
first cases are everyday and the others slow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# `make check` runs this many cases of a test with parameters.
CASES = 2
# One file of real processes stays in `make check`: a first run from nothing, told in the terminal.
DEMO = "test_demo.py"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder == "system" and item.path.name != DEMO:
            item.add_marker(pytest.mark.slow)
        elif folder in ("features", "contract"):
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > CASES:
                item.add_marker(pytest.mark.slow)
