"""bench/RESULTS.md is the table of bench/results.jsonl, and a part's rows are replaced as one."""

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


def test_a_part_measured_again_replaces_its_rows_where_they_stood(results):
    def row(part, what):
        return results.Row(part, what, "1 x", "at most 2 x", True, "c", "d", "m")

    rows = [row("a", "1"), row("b", "1"), row("b", "2"), row("c", "1")]
    again = results.replaced(rows, "b", [row("b", "3")])
    assert [(r.part, r.what) for r in again] == [("a", "1"), ("b", "3"), ("c", "1")]
    new = results.replaced(rows, "d", [row("d", "1")])
    assert [r.part for r in new] == ["a", "b", "b", "c", "d"]
