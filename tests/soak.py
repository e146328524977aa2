"""The soak: whole, a night of it, or a slice of it.

`make soak` runs every test with its full count. `make nightly` does so for SOAK_NIGHT seconds, and
SOAK_SECONDS runs a slice: a few cases of each test, long counts short. In both the seed shuffles
the files and seeds the random moments, and no test begins after that many seconds. The seed is the
day unless SOAK_SEED names one; a line repeats each red test.
"""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime
from typing import Any

import pytest

SECONDS = int(os.environ.get("SOAK_SECONDS") or 0)
NIGHT = int(os.environ.get("SOAK_NIGHT") or 0)
# `make soak` says so, and what comes after it: a stock server or a cluster beside the tests.
DEEP = bool(SECONDS or NIGHT or os.environ.get("SOAK"))
BESIDE = os.environ.get("CARDSYNC_TEST_BESIDE", "")
# The processes of a run inherit its day, also across midnight.
DAY = int(os.environ.setdefault("CARDSYNC_TEST_DAY", str(datetime.now(UTC).toordinal())))
# A slice takes this many cases of a test with parameters.
CASES = 4


# Real browsers and rounds of chaos take much of a machine: a slice leaves them to the night.
night = pytest.mark.skipif(SECONDS > 0, reason="it takes a machine of its own: the night")


# Of `make test`, and of the soak with more examples.
deeper = pytest.mark.deeper


def count(name: str, whole: int, part: int) -> int:
    """The repetitions of a test: `whole`, in a slice and beside a stock server `part`, unless the
    variable `name` says another number.
    """
    return int(os.environ.get(name) or (part if SECONDS or BESIDE else whole))


def examples(day: int, night: int) -> int:
    """Return the examples of a property in `make test`, or those of the soak and the night."""
    return night if DEEP else day


def parts(count: int) -> list[Any]:
    """Return the parts of a long test: `make test` runs one of them, the next one each day, and the
    soak all others.
    """
    others = pytest.mark.soak
    return [
        part if part == DAY % count else pytest.param(part, marks=others) for part in range(count)
    ]


def pytest_configure(config: pytest.Config) -> None:
    if SECONDS or NIGHT:
        # The processes of one run inherit the seed, also across midnight.
        os.environ.setdefault("SOAK_SEED", datetime.now(UTC).strftime("%Y%m%d"))
        if config.option.hypothesis_seed is None:
            config.option.hypothesis_seed = os.environ["SOAK_SEED"]
        seeded = _Seeded(os.environ["SOAK_SEED"], config.getoption("--hypothesis-profile"))
        config.pluginmanager.register(seeded, "soak-seeded")


class _Seeded:
    def __init__(self, seed: str, profile: str | None) -> None:
        self._seed = seed
        self._profile = f" --hypothesis-profile {profile}" if profile else ""
        self._until = time.monotonic() + (SECONDS or NIGHT)
        length = f"SOAK_SECONDS={SECONDS}" if SECONDS else f"SOAK_NIGHT={NIGHT}"
        self._variables = f"{length} SOAK_SEED={seed}"

    def pytest_report_header(self) -> str:
        name = f"a slice of {SECONDS} s" if SECONDS else f"a night of {NIGHT} s"
        return f"soak: {name}, to be repeated with {self._variables}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        # A file's tests stay together: they share their servers.
        files: dict[str, dict[str, list[pytest.Item]]] = {}
        for item in items:
            file, _, test = item.nodeid.partition("::")
            files.setdefault(file, {}).setdefault(test.partition("[")[0], []).append(item)
        dice = random.Random(self._seed)
        drawn = [
            item
            for file in dice.sample(sorted(files), len(files))
            for cases in files[file].values()
            for item in (dice.sample(cases, min(CASES, len(cases))) if SECONDS else cases)
        ]
        kept = set(drawn)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = drawn

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.monotonic() > self._until:
            pytest.skip("the time of this part is over")
        random.seed(f"{self._seed} {item.nodeid}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        left = len(terminalreporter.stats.get("skipped", []))
        terminalreporter.write_line(f"{self.pytest_report_header()}; {left} tests were not begun")
        python = f"{BESIDE} .venv/bin/python".strip()
        stats = terminalreporter.stats
        for report in [*stats.get("failed", []), *stats.get("error", [])]:
            terminalreporter.write_line(
                f"again: {self._variables} {python} -m pytest{self._profile} {report.nodeid!r}"
            )
