"""bench/RESULTS.md and bench/BUDGETS.md are written from bench/results.jsonl and bench/budgets.py; a
part's rows are replaced as one, those that are long behind are marked, and the night compares them.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
MODULES = ("budgets", "compare", "ground", "results")


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import results

    yield results
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def budgets(results):
    import budgets

    return budgets


@pytest.fixture
def compare(results):
    import compare

    return compare


def test_the_pages_are_those_of_the_rows_and_the_budgets(results):
    assert results.TABLE.read_text() == results.table(results.read())
    assert results.GOALS.read_text() == results.goals()


def test_there_are_at_most_forty_budgets_each_once(budgets):
    assert len(budgets.BY_NAME) == len(budgets.BUDGETS) <= budgets.MOST_BUDGETS == 40


def test_each_budget_is_of_a_part_that_bench_measures(budgets):
    """run_all.py imports all parts, so its tables are read and not imported."""
    tables = {}
    for node in ast.parse((BENCH / "run_all.py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            tables[node.target.id] = {key.value for key in node.value.keys}
    parts = {one.part for one in budgets.BUDGETS}
    assert parts <= tables["PARTS"]
    # The tests alone take longer than all other budgets.
    assert parts - {"suite"} == tables["NARROW"]


def test_a_budget_is_met_at_its_reach(budgets):
    most = budgets.Budget("w", "p", "f", 0.8, "s")
    least = budgets.Budget("w", "p", "f", 0.75, "x", least=True)
    assert (most.goal, least.goal) == ("at most 0.8 s", "at least 0.75 x")
    assert [most.met(value) for value in (0.79, 0.8, 0.81)] == [True, True, False]
    assert [least.met(value) for value in (0.74, 0.75, 0.76)] == [False, True, True]


def test_a_value_is_told_with_its_unit(budgets):
    told = [budgets.said(value, "ms") for value in (1_234.0, 0.5, 12.345)]
    assert [*told, budgets.said(0.0, "")] == ["1,234 ms", "0.50 ms", "12.35 ms", "0"]


@pytest.fixture
def row(results):
    def row(part, what="1", commit="c", value=1.0, unit="x", **others):
        return results.Row(part, what, value, unit, commit, "d", "m", **others)

    return row


FIRST = ("import_inventory", "first import / floor")
BEATS = ("heartbeat", "heartbeats a second / raw ASGI")
POLLS = ("fleet", "heartbeat and poll, p99")


def test_the_head_counts_what_is_missed_not_measured_and_old(results, row):
    rows = [
        row(*FIRST, value=5.1),
        row(*BEATS, value=0.7, old=True),
        row(*POLLS, value=50, unit="ms"),
    ]
    another = [row("orders", "another", value=99), row("orders", "a third", value=98, old=True)]
    whole = [*rows, *another]
    assert results.missed(whole).startswith(
        "2 of 38 budgets are missed, 35 are not measured yet. 1 of"
    )
    head, _, others = results.table(whole).partition("## All other figures")
    assert "| 5.10 x | at most 5 x | **missed** |" in head
    assert "| 0.70 x | at least 0.75 x | **missed**, old |" in head
    assert "| 50 ms | at most 50 ms | met |" in head
    assert head.count("| not measured |") == 35
    assert "| orders | another | 99 x |" in others
    assert "\n1 more, which are old, are in `bench/results.jsonl`.\n" in others
    assert "a third" not in others
    assert "first import" not in others


def test_rows_of_a_commit_that_is_far_behind_or_unknown_are_marked_as_old(results, row):
    ages = {"new": 0, "~then": 500, "before+": 501, "unknown": None}
    rows = results.marked([row("a", commit=commit) for commit in ages], ages.get)
    assert {one.commit: one.old for one in rows} == {
        "new": False,
        "~then": False,
        "before+": True,
        "unknown": True,
    }
    # Measured again, or with the history at hand again, a row is old no more.
    assert not any(one.old for one in results.marked(rows, lambda _: 1))


def test_the_age_and_the_rows_of_a_commit_are_read_from_the_history(results, row, tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for number in range(3):
        (tmp_path / "results.jsonl").write_bytes(results.encoded([row("a", str(number))]))
        git("add", "results.jsonl")
        git("commit", "-q", "-m", str(number))
        commits.append(git("rev-parse", "--short", "HEAD"))
    written = [f"~{commits[0]}", f"{commits[1]}+", commits[2], "unknown", "0000000"]
    ages = [results.commits_since(commit, tmp_path) for commit in written]
    assert ages == [2, 1, 0, None, None]
    assert results.committed("HEAD~1", tmp_path) == [row("a", "1")]


def test_a_part_measured_again_replaces_its_rows_where_they_stood(results, row):
    rows = [row("a", "1"), row("b", "1"), row("b", "2"), row("c", "1")]
    again = results.replaced(rows, "b", [row("b", "3")])
    assert [(r.part, r.what) for r in again] == [("a", "1"), ("b", "3"), ("c", "1")]
    new = results.replaced(rows, "d", [row("d", "1")])
    assert [r.part for r in new] == ["a", "b", "b", "c", "d"]


def test_budgets_measured_alone_leave_the_parts_other_rows(results, row):
    rows = [row("a", "1"), row("b", "1"), row("b", "2"), row("c", "1")]
    again = results.replaced(rows, "b", [row("b", "2", "new")], whole=False)
    told = [(r.part, r.what, r.commit) for r in again]
    assert told == [("a", "1", "c"), ("b", "2", "new"), ("b", "1", "c"), ("c", "1", "c")]


SIZES = {"sizes": "300,000 rows"}


def test_a_ratio_is_worse_from_15_percent(compare, row):
    def times(what, then, now):
        [one] = compare.compared(
            [row(*what, value=then, **SIZES)], [row(*what, value=now, **SIZES)]
        )
        return one.times, one.worse

    assert times(FIRST, 4, 5) == (1.25, True)
    assert times(FIRST, 4, 4.5) == (1.125, False)
    assert times(FIRST, 5, 4) == (0.8, False)
    # More heartbeats are better.
    assert times(BEATS, 0.75, 0.6) == (1.25, True)
    assert times(BEATS, 0.5, 1) == (0.5, False)


def test_a_time_is_compared_by_the_speed_of_the_machine_beside_it(compare, row):
    then = row(*POLLS, value=30, unit="ms", speed=10, **SIZES)
    slower = row(*POLLS, value=60, unit="ms", speed=20, **SIZES)
    worse = row(*POLLS, value=60, unit="ms", speed=10, **SIZES)
    unknown = row(*POLLS, value=60, unit="ms", **SIZES)
    found = [compare.compared([then], [now])[0] for now in (slower, worse, unknown)]
    assert [one.times for one in found] == [1, 2, None]
    assert [one.worse for one in found] == [False, True, False]


def test_other_sizes_and_figures_without_a_budget_are_not_compared(compare, row):
    now = [row(*FIRST, value=9, **SIZES), row("orders", "another", value=9, **SIZES)]
    for before in ([], [row(*FIRST, value=1)], [row(*FIRST, value=1, sizes="10 rows")]):
        [one] = compare.compared(before, now)
        assert (one.times, one.worse) == (None, False)
        assert one.why


def test_of_two_measurements_the_better_one_counts(compare, row):
    before = [row(*what, value=4, **SIZES) for what in (FIRST, BEATS)]
    first = compare.compared(before, [row(*FIRST, value=6, **SIZES), row(*BEATS, value=2, **SIZES)])
    again = compare.compared(before, [row(*FIRST, value=4.4, **SIZES)])
    assert [one.worse for one in first] == [True, True]
    assert [one.times for one in compare.better(first, again)] == [1.1, 2]


def test_the_speed_of_the_machine_is_measured(compare):
    assert compare.machine_speed() > 0
