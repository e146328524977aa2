"""docs/derived.md shows each declaration of a kept figure, and each kept table has one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cardsync.operations.processes.worker import KEPT
from cardsync.platform.derived.kept_figures import AT_ONCE, Figure
from cardsync.tables import metadata

PAGE = Path("docs/derived.md")


def printed() -> list[str]:
    return [
        f"| {kept.figure} | {', '.join(f'`{table}`' for table in kept.tables)} | {kept.source}"
        f" | {kept.marked_by} | {'at once' if kept.figure in AT_ONCE else 'by the sweep'}"
        f" | {kept.meanwhile} |"
        for kept in KEPT
    ]


def test_the_page_shows_the_declarations() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert rows[1:] == printed(), "\n".join(printed())


def test_each_figure_has_one_declaration_and_each_table_one_figure() -> None:
    assert sorted(kept.figure for kept in KEPT) == sorted(Figure)
    tables = Counter(table for kept in KEPT for table in kept.tables)
    assert set(tables.values()) == {1}
    assert tables.keys() <= metadata.tables.keys()
