"""bench/RESULTS.md has the misses and the table of bench/results.jsonl; a part's rows are replaced as
one, and those that are long behind are marked.
"""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import results

    yield results
    for name in ("results", "ground"):
        sys.modules.pop(name, None)


def test_the_page_is_the_table_of_the_rows(results):
    assert results.TABLE.read_text() == results.table(results.read())


def test_the_page_begins_with_the_misses(results):
    head, _, _ = results.TABLE.read_text().partition("## All figures")
    assert results.misses(results.read()) in head


@pytest.fixture
def row(results):
    def row(part, what="1", commit="c", *, met=True):
        return results.Row(part, what, "1 x", "at most 2 x", met, commit, "d", "m")

    return row


def test_each_part_with_a_miss_is_named_with_what_was_reached_and_the_goal(results, row):
    rows = [row("a"), row("b", "first", met=False), row("b", "last", met=False)]
    told = results.misses(results.marked(rows, lambda _: 0))
    assert told.startswith("2 of 3 goals")
    assert told.endswith("\n- `b`: first 1 x (at most 2 x); last 1 x (at most 2 x)\n")
    old = results.misses(results.marked(rows, lambda _: None))
    assert "last 1 x (at most 2 x, old)" in old


def test_rows_of_a_commit_that_is_far_behind_or_unknown_are_marked_as_old(results, row):
    ages = {"new": 0, "~then": 500, "before+": 501, "unknown": None}
    rows = results.marked([row("a", commit=commit) for commit in ages], ages.get)
    assert {one.commit: one.old for one in rows} == {
        "new": False,
        "~then": False,
        "before+": True,
        "unknown": True,
    }
    assert results.table(rows).count("| met, old |") == 2
    # Measured again, or with the history at hand again, a row is old no more.
    assert not any(one.old for one in results.marked(rows, lambda _: 1))


def test_the_age_of_a_figure_is_read_from_the_history(results, tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
        done = subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for number in range(3):
        git("commit", "-q", "--allow-empty", "-m", str(number))
        commits.append(git("rev-parse", "--short", "HEAD"))
    written = [f"~{commits[0]}", f"{commits[1]}+", commits[2], "unknown", "0000000"]
    ages = [results.commits_since(commit, tmp_path) for commit in written]
    assert ages == [2, 1, 0, None, None]


def test_a_part_measured_again_replaces_its_rows_where_they_stood(results, row):
    rows = [row("a", "1"), row("b", "1"), row("b", "2"), row("c", "1")]
    again = results.replaced(rows, "b", [row("b", "3")])
    assert [(r.part, r.what) for r in again] == [("a", "1"), ("b", "3"), ("c", "1")]
    new = results.replaced(rows, "d", [row("d", "1")])
    assert [r.part for r in new] == ["a", "b", "b", "c", "d"]
