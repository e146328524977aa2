"""The files of statements beside the modules: each statement is asked for by its room, once, and each
that is asked for is there.
"""

import re
from pathlib import Path

import pytest

import cardsync
from cardsync.platform.database.room_sql import named_in

FILES = sorted(Path(cardsync.__file__).parent.rglob("*.sql"))
_ASKED = re.compile(r'queries_of\(__package__\)\["(\w+)"\]')


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-3:-1]))
def test_a_room_asks_for_each_of_its_statements(file):
    text = file.read_text()
    asked = [
        name for module in file.parent.glob("*.py") for name in _ASKED.findall(module.read_text())
    ]
    assert sorted(asked) == sorted(re.findall(r"^-- name: (\w+)$", text, re.MULTILINE))
    assert sorted(asked) == sorted(named_in(text))
    assert [line for line in text.splitlines() if len(line) > 100] == []


def test_who_asks_for_statements_has_a_file():
    rooms = {
        module.parent
        for module in Path(cardsync.__file__).parent.rglob("*.py")
        if _ASKED.search(module.read_text())
    }
    assert rooms == {file.parent for file in FILES}


# A text without parts that come from elsewhere; an f-string has them.
_PLAIN = re.compile(
    r'(?<!f)"""\s*((?:SELECT|INSERT|UPDATE|DELETE|WITH|MERGE|CREATE|COPY)\b[^{]*?)\s*"""'
)


def test_no_plain_statement_of_over_ten_lines_stands_in_a_module():
    long = {
        f"{module.name}: {text.splitlines()[0]}"
        for module in Path(cardsync.__file__).parent.rglob("*.py")
        for text in _PLAIN.findall(module.read_text())
        if text.count("\n") >= 10
    }
    assert long == set()


def test_statements_are_named():
    assert named_in("-- name: a\nSELECT 1\n  -- of one\n\n-- name: b\nSELECT 2\n") == {
        "a": "SELECT 1\n  -- of one",
        "b": "SELECT 2",
    }
