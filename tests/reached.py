"""Writes `daily_tests.txt`: the long tests that `make test` runs each day, since they alone
reach lines of `src`, from a run that recorded the lines of each test.

`pip install pytest-cov`, then `pytest -m "not soak" --cov=src --cov-context=test` with
`CARDSYNC_TEST_TURN=all`, then this. A test is taken for most new lines a second.
"""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict

import everyday

LIST = everyday.TESTS / "daily_tests.txt"
# Fewer lines than these are not worth a long test each day.
LEAST = 5


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


def main() -> None:
    reached = lines_of_tests(sys.argv[1] if len(sys.argv) > 1 else ".coverage")
    seconds = {test: taken for test, taken in everyday.LONG.items() if everyday.may_wait(test)}
    LIST.write_text("\n".join([*chosen(reached, seconds), ""]))


if __name__ == "__main__":
    main()
