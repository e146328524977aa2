"""Writes `long_tests.txt`, each test that takes long with its seconds, and which of them alone reach
lines of `src`, so that they are of every day (`schedule.py`).

`make test PYTEST_ADDOPTS="--durations=0" | python tests/long_tests.py seconds` writes the seconds,
and the tables of docs/testing.md. `pip install pytest-cov`, `pytest -m "not night" --cov=src
--cov-context=test` with `CARDSYNC_TEST_TURN=all`, then `python tests/long_tests.py alone` writes
who is alone, for most new lines a second.
"""

from __future__ import annotations

import heapq
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import schedule

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "testing.md"
LONG_LIST = TESTS / "long_tests.txt"
# Fewer lines than these are not worth a long test each day.
LEAST = 5
# A test is long from so many seconds on, with its own setup; all tests of a file are, if one of
# them sets up for so long.
LONG, LONG_SETUP = 0.2, 3.0
MARKS = ("<!-- durations -->", "<!-- end of durations -->")
LINE = re.compile(r"^\s*(\d+\.\d+)s (setup|call|teardown)\s+tests/((\S+)/test_\w+)\.py::(\S+)")
# The first that matches a file says what its calls mostly spend their time on.
CAUSES = (
    (r"kills/", "kills of real processes"),
    (r"system/test_(browser|\w*pages|phones|labels|gone)", "a browser"),
    (r"system/", "real processes"),
    (r"contract/test_agent", "agent processes"),
    (r"contract/", "the contract: openapi.json, statements, settings"),
    (r"core/", "pure rules and Hypothesis"),
    (r"(machine|sequences|every_state|shop_year)$", "state machines"),
    (r"", "requests and jobs in one process"),
)


def cause_of(phase: str, file: str) -> str:
    if phase != "call":
        return "start and end of servers, databases and browsers"
    return next(cause for pattern, cause in CAUSES if re.search(pattern, file))


def tables(lines: Iterable[str]) -> str:
    """Return both tables; the seconds of tests under 5 ms are not in pytest's output."""
    folders: dict[str, float] = defaultdict(float)
    causes: dict[str, float] = defaultdict(float)
    for line in lines:
        if found := LINE.match(line):
            seconds, phase, file, folder, _ = found.groups()
            folders[folder] += float(seconds)
            causes[cause_of(phase, file)] += float(seconds)
    return "\n".join((table("folder", folders), "", table("cause", causes)))


def table(what: str, seconds: dict[str, float]) -> str:
    whole = sum(seconds.values())
    longest = sorted(seconds.items(), key=lambda row: -row[1])
    rows = [f"| {name} | {value:.0f} |" for name, value in longest]
    return "\n".join([f"| {what} | seconds |", "|---|---|", *rows, f"| all | {whole:.0f} |"])


def long_tests(lines: Iterable[str]) -> list[str]:
    """Return the long test functions, each with its file and its seconds."""
    calls: dict[str, float] = defaultdict(float)
    setups: dict[str, float] = defaultdict(float)
    for line in lines:
        if found := LINE.match(line):
            seconds, phase, file, _, name = found.groups()
            test = f"tests/{file}.py::{name.partition('[')[0]}"
            kept = calls if phase == "call" else setups
            kept[test] = max(kept[test], float(seconds))
    slow = {test.partition("::")[0] for test, seconds in setups.items() if seconds > LONG_SETUP}
    return sorted(
        f"{test} {calls[test] + setups[test]:.1f}"
        for test in {*calls, *setups}
        if test.partition("::")[0] in slow or calls[test] + setups[test] > LONG
    )


def of_other_days(lines: Iterable[str]) -> list[str]:
    """Return the lines of the present list whose tests are there and did not run."""
    ran = {
        f"tests/{found[3]}.py::{found[5].partition('[')[0]}"
        for line in lines
        if (found := LINE.match(line))
    }
    return [
        f"{test} {seconds}"
        for test, seconds in schedule.LONG.items()
        if test not in ran and is_there(test)
    ]


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = TESTS.parent / file
    function = name.rpartition("::")[2]
    return path.is_file() and re.search(rf"def {function}\(", path.read_text()) is not None


def lines_of_tests(path: str) -> dict[str, set[tuple[str, int]]]:
    """Return the lines of `src` that each test function reaches."""
    from coverage import CoverageData

    data = CoverageData(path)
    data.read()
    reached: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                test = context.partition("|")[0].partition("[")[0]
                reached[test].add((file, line))
    return reached


def chosen(reached: dict[str, set[tuple[str, int]]], seconds: dict[str, float]) -> list[str]:
    """Return the fewest seconds of tests, greedily, that reach what no shorter test does."""
    known: set[tuple[str, int]] = set()
    for test, lines in reached.items():
        if test not in seconds:
            known |= lines
    heap = [(-len(reached.get(test, ())) / seconds[test], test) for test in seconds]
    heapq.heapify(heap)
    taken = []
    while heap:
        worth, test = heapq.heappop(heap)
        new = len(reached.get(test, set()) - known)
        if new < LEAST:
            continue
        if -new / seconds[test] > worth:  # Others have taken lines of it since.
            heapq.heappush(heap, (-new / seconds[test], test))
            continue
        taken.append(test)
        known |= reached[test]
    return sorted(taken)


def write(lines: Iterable[str], alone: Iterable[str]) -> None:
    names = frozenset(alone)
    ends = [f"{line} alone" if line.split()[0] in names else line for line in sorted(lines)]
    LONG_LIST.write_text("\n".join([*ends, ""]))


def write_seconds() -> None:
    lines = sys.stdin.readlines()
    write(long_tests(lines) + of_other_days(lines), schedule.ALONE)
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n{tables(lines)}\n{MARKS[1]}{after}")


def write_alone(path: str = ".coverage") -> None:
    reached = lines_of_tests(path)
    seconds = {test: taken for test, taken in schedule.LONG.items() if schedule.may_wait(test)}
    write((f"{test} {taken}" for test, taken in schedule.LONG.items()), chosen(reached, seconds))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["seconds"]:
            write_seconds()
        case ["alone", *path]:
            write_alone(*path)
        case _:
            sys.exit(__doc__)
