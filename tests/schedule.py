"""Which tests run when: what is fast, what is of the day, and what is of the night.

| mark | run by | who says so |
|---|---|---|
| fast | `make check` | what has no other mark |
| day | `make test`, which runs what is fast, too | the test itself; `_mark` |
| night | `make soak` and `make nightly`; CI runs a slice of it | the test itself; `_mark`; its turn |

docs/testing.md says why. The seconds of tests are in `long_tests.txt`, which `long_tests.py` writes.
This is a plugin of pytest; tests ask it for their counts (`count`, `examples`, `parts`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from s3_server import OF_THE_FOLDER

TESTS = Path(__file__).parent

# The counts of a run: the day's, the night's of SOAK_NIGHT seconds, or a slice of SOAK_SECONDS.
SECONDS = int(os.environ.get("SOAK_SECONDS") or 0)
NIGHT = int(os.environ.get("SOAK_NIGHT") or 0)
# `make soak` says so, too.
DEEP = bool(SECONDS or NIGHT or os.environ.get("SOAK"))
# A stock server or a cluster beside the tests.
BESIDE = os.environ.get("CARDSYNC_TEST_BESIDE", "")
# The processes of a run inherit its day, also across midnight.
DAY = int(os.environ.setdefault("CARDSYNC_TEST_DAY", str(datetime.now(UTC).toordinal())))

# Real browsers and rounds of chaos take much of a machine: a slice leaves them to the whole night.
whole_night = pytest.mark.skipif(SECONDS > 0, reason="it takes a machine of its own: the night")
# `make test` runs these, and the night with more examples.
deeper = pytest.mark.deeper


def count(name: str, whole: int, part: int) -> int:
    """The repetitions of a test: `whole`, in a slice and beside a stock server `part`, unless the
    variable `name` says another number.
    """
    return int(os.environ.get(name) or (part if SECONDS or BESIDE else whole))


def examples(day: int, night: int) -> int:
    """Return the examples of a property in `make test`, or those of the night."""
    return night if DEEP else day


def parts(count: int) -> list[Any]:
    """Return the parts of a long test: `make test` runs one of them, the next one each day, and the
    night all others.
    """
    others = pytest.mark.night
    return [
        part if part == DAY % count else pytest.param(part, marks=others) for part in range(count)
    ]


# A slice takes this many cases of a test with parameters.
SLICED = 4

# Tests over 0.3 seconds take turns: one in 28 of them is of the day, the next one each day, and the
# others are of the night. No turn leaves out what is in ALWAYS, nor, up to half a second, the tests
# of `long_tests.txt` that alone reach lines of `src`.
DAYS = 28
TURN_SECONDS = 0.3
# A longer test takes turns although it alone finds something: races and tenancy, other lines.
LONGEST_DAILY_SECONDS = 1.0
LONGEST_ALONE_SECONDS = 0.5
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
    # Another sixteenth of the pages each day.
    "tests/system/test_pages_in_browser.py::test_every_page_and_refusal_can_be_read_and_fits",
)
# These are in a folder of ALWAYS, but change seldom and take long: upgrades, processes of the agent
# and of the server, limits of requests, deletions by others than the owner, and the program with
# one setting more.
IN_TURNS = (
    "tests/contract/test_agent_",
    "tests/contract/test_migrate.py",
    "tests/contract/test_released_schemas.py::test_no_migration_keeps_a_shop_waiting",
    "tests/features/access/test_public_demo.py",
    "tests/features/access/test_rate_limits.py",
    "tests/features/access/test_seller_slots.py",
    "tests/features/shop/accounts/test_erasure.py",
    "tests/features/shop/accounts/test_new_setting.py",
    "tests/kills/test_processes.py",
)

# Two at once, and the data of others: lines that are reached do not show what these find.
NAMED = re.compile(
    "at_once|concurrent|whoever|_rac|many_|two_|twice|(other|foreign).*(seller|shop)"
)

_LINES = [line.split() for line in (TESTS / "long_tests.txt").read_text().splitlines()]
LONG = {test: float(seconds) for test, seconds, *_ in _LINES}
# They alone reach lines of `src`.
ALONE = frozenset(test for test, _, *alone in _LINES if alone)


def may_wait(test: str, daily: Container[str] = ()) -> bool:
    """Return whether a test takes so long that it may take turns with others."""
    seconds = LONG.get(test, 0)
    if test.startswith(ALWAYS) and not test.startswith(IN_TURNS):
        return False
    if NAMED.search(test.rpartition("::")[2]):
        return seconds > LONGEST_DAILY_SECONDS
    return seconds > (LONGEST_ALONE_SECONDS if test in daily else TURN_SECONDS)


def _turns() -> dict[str, int]:
    """Return the day of four weeks on which a test has its turn: all days take about as long."""
    waiting = sorted(test for test in LONG if may_wait(test, ALONE))
    days = [(0.0, day) for day in range(DAYS)]
    turns = {}
    for test in sorted(waiting, key=LONG.__getitem__, reverse=True):
        seconds, day = heapq.heappop(days)
        turns[test] = day
        heapq.heappush(days, (seconds + LONG[test], day))
    return turns


# Nothing takes turns where CARDSYNC_TEST_TURN says "all", as it is beside a stock server.
TURNS = (
    {} if os.environ.get("CARDSYNC_TEST_TURN", "all" if BESIDE else "day") == "all" else _turns()
)

# CI also runs this at each commit against a stock PostgreSQL server: what speaks of the schema
# itself, and one story of each capability.
SCHEMA = ("test_migrate", "test_released_schemas", "test_statements", "test_tenancy")
STORIES = {
    "access": "test_two_callers",
    "accounts": "test_deletion",
    "activity": "test_undo",
    "agentwork": "test_claims",
    "assistant": "test_protocol",
    "buying": "test_collections",
    "cards": "test_history",
    "catalog": "test_catalog_import",
    "contributions": "test_contributions",
    "credits": "test_skip_wait",
    "dashboard": "test_every_page",
    "database": "test_locks",
    "imports": "test_inventory_cycle",
    "lists": "test_lists",
    "lots": "test_lots",
    "market": "test_whole_life",
    "moving": "test_move",
    "network": "test_network",
    "notices": "test_webhooks",
    "old_data": "test_old_rows",
    "operators": "test_operators",
    "orders": "test_order_sequences",
    "pictures": "test_pictures",
    "plans": "test_plans",
    "prices": "test_reprice",
    "printing": "test_sheets",
    "pulling": "test_pull_machine",
    "quick_add": "test_quick_add",
    "releases": "test_releases",
    "repairs": "test_repairs",
    "search": "test_search_agrees",
    "shelving": "test_shelves",
    "sync": "test_sync_machine",
    "telemetry": "test_traces",
    "today": "test_today",
    "waiting": "test_waiting",
    "web": "test_health",
    "work": "test_queue",
    "workflows": "test_workflow_packs",
}
# `.ci/wheel` takes these instead, where the story is a machine of many steps.
SHORT = {
    "orders": "test_one_order",
    "pulling": "test_pulled_orders",
    "search": "test_own_names",
    "sync": "test_sync_decision",
    "work": "test_put_back",
}


def files_of(stories: dict[str, str]) -> frozenset[Path]:
    """Return the file of each capability's story, whatever district its folder is in."""
    folders = {file.parent.name: file.parent for file in (TESTS / "features").rglob("test_*.py")}
    return frozenset(folders[room] / f"{name}.py" for room, name in stories.items())


STORY_FILES = files_of(STORIES)
FILES = STORY_FILES | {TESTS / "contract" / f"{name}.py" for name in SCHEMA}
SHORT_FILES = files_of(STORIES | SHORT)
# This many cases of a test with parameters are fast.
FAST = 2
# This many are of the day where they talk to a database or to processes, but for WHOLE.
DAILY = 2
WHOLE = ("access", "accounts", "activity", "assistant", "credits", "plans", "search")
# These folders start real processes.
PROCESSES = ("chaos", "kills", "system")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _mark_stories(items)
    _mark(items)
    for item in items:
        if not any(map(item.get_closest_marker, ("day", "night"))):
            item.add_marker(pytest.mark.fast)


def _mark_stories(items: list[pytest.Item]) -> None:
    with_bucket = "CARDSYNC_TEST_BUCKET_URL" in os.environ
    begun = set()
    for item in items:
        if item.path in FILES:
            item.add_marker(pytest.mark.story)
        if item.path in SHORT_FILES - begun and not item.get_closest_marker("night"):
            begun.add(item.path)
            item.add_marker(pytest.mark.installed)
        if with_bucket and item.name.partition("[")[0] in OF_THE_FOLDER:
            item.add_marker(pytest.mark.skip("it is about the local store"))


def _mark(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    begun: set[Path] = set()
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        room = item.path.parent.name if folder == "features" else item.path.name
        test = item.nodeid.partition("[")[0]
        seen[test] += item.get_closest_marker("night") is None
        is_story = item.path in STORY_FILES and item.path not in begun
        if is_story and not any(map(item.get_closest_marker, ("day", "night"))):
            begun.add(item.path)
        elif test in LONG:
            item.add_marker(pytest.mark.day)
        if folder in PROCESSES or (folder in ("features", "contract") and seen[test] > FAST):
            item.add_marker(pytest.mark.day)
        if folder == "core" and getattr(item.obj, "is_hypothesis_test", False):  # type: ignore[attr-defined]
            item.add_marker(pytest.mark.deeper)
        if seen[test] > _daily(item, folder, room) or not _has_its_turn(test):
            item.add_marker(pytest.mark.night)


def _has_its_turn(test: str) -> bool:
    return TURNS.get(test, DAY % DAYS) == DAY % DAYS


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
            for item in (dice.sample(cases, min(SLICED, len(cases))) if SECONDS else cases)
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


def pytest_sessionfinish() -> None:
    """Raise where CARDSYNC_TEST_INSTALLED names a folder and a module of ours came from another."""
    if site := os.environ.get("CARDSYNC_TEST_INSTALLED"):
        ours = {
            name: Path(module.__file__)
            for name, module in sys.modules.items()
            if name.partition(".")[0] in ("cardsync", "cardsync_agent")
            and getattr(module, "__file__", None)
        }
        if strange := sorted(it for it, file in ours.items() if not file.is_relative_to(site)):
            raise pytest.UsageError(f"not from {site}: {len(strange)}, such as {strange[-1]}")
