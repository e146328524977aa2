"""A name of a module or a class is assigned once: a second assignment takes the first one's place
wherever it is read, also above. No rule of ruff finds that, so this reads the whole tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ("src", "agent", "bench", "migrations", "tests")


def assigned(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The names that a body's own statements give a value, each with its line."""
    for statement in body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        else:
            continue
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, statement.lineno


def assigned_again(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The names of a module, and of its classes, that are assigned a second time."""
    seen: set[str] = set()
    for name, line in assigned(body):
        if name in seen and name != "_":
            yield name, line
        seen.add(name)
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from assigned_again(statement.body)


def test_no_name_of_a_module_or_a_class_is_assigned_twice() -> None:
    twice = [
        f"{path}:{line}: {name}"
        for folder in FOLDERS
        for path in sorted(Path(folder).rglob("*.py"))
        if ".venv" not in path.parts
        for name, line in assigned_again(ast.parse(path.read_text()).body)
    ]
    assert not twice, "\n".join(twice)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("A = 50\nB = 1\nA = 25", ["A"]),
        ("A: int = 50\nA: int = 25", ["A"]),
        ("A = 1\n(A, B) = 2, 3", ["A"]),
        ("class C:\n    A = 1\n    A = 2", ["A"]),
        ("A: int\nA = 1", []),
        ("A = 1\nA += 1", []),
        ("A = 1\nclass C:\n    A = 2", []),
        ("A = 1\ndef f():\n    A = 2\n    A = 3", []),
        ("if X:\n    A = 1\nelse:\n    A = 2", []),
    ],
)
def test_what_counts_as_assigned_twice(source: str, names: list[str]) -> None:
    assert [name for name, _ in assigned_again(ast.parse(source).body)] == names
