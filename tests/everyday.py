"""The tests that `make check` leaves out and `make test` runs, and the cases that `make nightly`
alone runs.

Tests say themselves that they are slow, or of the soak. Beside them, rules mark tests by where they
are: a test of real processes is slow. So is a test that takes over 0.2 seconds (`long_tests.txt`,
which `durations.py` writes), unless it is the first of its capability's story. Where a test of a
feature or a contract has parameters, its first cases are everyday and the next ones slow. Of a long
list the rest is of the soak, except where sign-in, accounts, money, activity, assistants and the
search language are tested; a test may say itself how many of its cases are enough by day:
`@pytest.mark.first(1)`.

Tests over half a second take turns: a seventh of them is of `make test`, the next one each day, and the
others are of the soak. Those that no turn leaves out are in ALWAYS and, up to three seconds, in
`daily_tests.txt`, which `reached.py` writes: they alone reach lines of `src`.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Container
from pathlib import Path

import pytest

import soak
from stories import STORIES, files_of

TESTS = Path(__file__).parent


def _long_tests() -> dict[str, float]:
    """Return the long tests with their seconds."""
    lines = map(str.split, (TESTS / "long_tests.txt").read_text().splitlines())
    return {test: float(seconds) for test, seconds in lines}


LONG = _long_tests()
DAYS = 7
TURN_SECONDS = 0.5
# A longer test takes turns although it alone finds something.
LONGEST_DAILY_SECONDS = 3.0
# Sign-in, roles, tenancy and money; files of the field; one kill of each stream; the contract; what
# the README says.
ALWAYS = (
    *(f"tests/features/{room}/" for room in ("access", "shop/accounts", "shop/credits")),
    "tests/contract/",
    "tests/field/",
    "tests/core/test_engine.py",
    "tests/core/test_loss_limits.py",
    "tests/kills/",
    "tests/system/test_agent_cycle.py",
    "tests/system/test_demo.py",
    # Another eighth of the pages each day.
    "tests/system/test_pages_in_browser.py::test_every_page_and_refusal_can_be_read_and_fits",
)


# Two at once, and the data of others: lines that are reached do not show what these find.
NAMED = re.compile(
    "at_once|concurrent|whoever|_rac|many_|two_|twice|(other|foreign).*(seller|shop)"
)


def may_wait(test: str, daily: Container[str] = ()) -> bool:
    """Return whether a test takes so long that it may take turns with others."""
    seconds = LONG.get(test, 0)
    if seconds > LONGEST_DAILY_SECONDS:
        return not test.startswith(ALWAYS)
    is_needed = test in daily or test.startswith(ALWAYS) or NAMED.search(test.rpartition("::")[2])
    return seconds > TURN_SECONDS and not is_needed


def _turns() -> dict[str, int]:
    """Return the day of the week on which a test has its turn."""
    daily = frozenset((TESTS / "daily_tests.txt").read_text().split())
    waiting = sorted(test for test in LONG if may_wait(test, daily))
    return {test: number % DAYS for number, test in enumerate(waiting)}


# Nothing takes turns where CARDSYNC_TEST_TURN says "all", as it is beside a stock server.
TURNS = (
    {}
    if os.environ.get("CARDSYNC_TEST_TURN", "all" if soak.BESIDE else "day") == "all"
    else _turns()
)
STORY_FILES = frozenset(str(file.relative_to(TESTS.parent)) for file in files_of(STORIES))
# `make check` runs this many cases of a test with parameters.
CASES = 2
# `make test` runs this many of a test that talks to a database or to processes.
DAILY = 2
WHOLE = ("access", "accounts", "activity", "assistant", "credits", "plans", "search")
# These folders start real processes.
PROCESSES = ("chaos", "kills", "system")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    begun: set[str] = set()
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        room = item.path.parent.name if folder == "features" else item.path.name
        test = item.nodeid.partition("[")[0]
        seen[test] += item.get_closest_marker("soak") is None
        file = test.partition("::")[0]
        is_story = file in STORY_FILES and file not in begun
        if is_story and not any(map(item.get_closest_marker, ("slow", "soak"))):
            begun.add(file)
        elif test in LONG:
            item.add_marker(pytest.mark.slow)
        if folder in PROCESSES or (folder in ("features", "contract") and seen[test] > CASES):
            item.add_marker(pytest.mark.slow)
        if folder == "core" and getattr(item.obj, "is_hypothesis_test", False):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.deeper)
        if seen[test] > _daily(item, folder, room) or not _has_its_turn(test):
            item.add_marker(pytest.mark.soak)


def _has_its_turn(test: str) -> bool:
    return TURNS.get(test, soak.DAY % DAYS) == soak.DAY % DAYS


def _daily(item: pytest.Item, folder: str, room: str) -> float:
    """Return how many cases of its test `make test` runs."""
    said = item.get_closest_marker("first")
    if said is not None:
        return int(said.args[0])
    return DAILY if _is_long(folder, room) else math.inf


def _is_long(folder: str, room: str) -> bool:
    """Whether the rest of a long list waits for the night: it needs a database or processes."""
    return (
        folder == "system"
        or (folder == "features" and room not in WHOLE)
        or (folder == "contract" and room.startswith("test_agent_"))
    )


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
