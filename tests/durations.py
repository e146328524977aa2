"""Writes the tables of docs/testing.md, the seconds by folder and by cause, and the list of the long
tests that `make check` leaves out, from the output of a run with `--durations=0` on standard input.
Tests that have their turn on another day keep their seconds.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "testing.md"
LONG_LIST = TESTS / "long_tests.txt"
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
    known = LONG_LIST.read_text().splitlines()
    return [line for line in known if (test := line.split()[0]) not in ran and is_there(test)]


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = TESTS.parent / file
    function = name.rpartition("::")[2]
    return path.is_file() and re.search(rf"def {function}\(", path.read_text()) is not None


def main() -> None:
    lines = sys.stdin.readlines()
    LONG_LIST.write_text("\n".join([*sorted(long_tests(lines) + of_other_days(lines)), ""]))
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n{tables(lines)}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
