"""Files of the field: each case of `cases/` puts one through a door, and the answer must contain what
the case says is right. docs/testing.md tells how to add a case.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from cardsync.platform.logs import setup_logging
from field_doors import DOORS

HERE = Path(__file__).parent
FIELDS = {"title", "door", "file", "text", "after", "catalog", "lines", "right"}


def _cases() -> list[Any]:
    """Return the cases, those of one catalog together: it is loaded once."""
    found = []
    for path in sorted((HERE / "cases").glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"]:
            assert case.keys() <= FIELDS, f"{path.name}: {case}"
            assert case["right"], f"{path.name}: {case}"
            name = f"{path.stem}:{case['title'].replace(' ', '-')}"
            found.append((case.get("catalog", ""), pytest.param(case, id=name)))
    return [param for _, param in sorted(found, key=lambda one: one[0])]


@pytest.mark.parametrize("case", _cases())
async def test_case(case, a_seller, catalog, in_the_environment, tmp_path):
    await catalog(case.get("catalog"))
    seller = await a_seller(lines=case.get("lines"))
    for name in case.get("after", ()):
        report = await seller.import_csv((HERE / "files" / name).read_bytes())
        assert report["state"] == "done", report
    data = case["text"].encode() if "text" in case else (HERE / "files" / case["file"]).read_bytes()
    try:
        answer = await DOORS[case["door"]](seller, data, tmp_path)
    finally:
        # A command writes its log to a stream of its own.
        setup_logging("warning", "json")
    wrong = list(differences(case["right"], answer))
    assert not wrong, "\n".join(wrong)


def differences(right: Any, answer: Any, place: str = "") -> Any:
    """Yield where an answer lacks what is right. A table may have more; of a list of tables each is
    compared with the one that has the same value under its first key.
    """
    if isinstance(right, dict) and isinstance(answer, dict):
        for key, value in right.items():
            if key in answer:
                yield from differences(value, answer[key], f"{place}.{key}")
            else:
                yield f"{place} has no {key}"
    elif isinstance(right, list) and right and isinstance(right[0], dict):
        for one in right:
            key, value = next(iter(one.items()))
            same = [other for other in answer if other[key] == value]
            if len(same) == 1:
                yield from differences(one, same[0], f"{place}[{key}={value}]")
            else:
                yield f"{place} has {len(same)} with {key}={value}"
    elif right != answer:
        yield f"{place} is {answer!r} and not {right!r}"


@pytest.mark.parametrize(
    "right", [{"b": 1}, {"a": 2}, {"rows": [{"row": 3}]}, {"rows": [{"row": 2, "name": "B"}]}]
)
def test_what_differs_is_seen(right):
    answer = {"a": 1, "rows": [{"row": 2, "name": "A"}]}
    assert list(differences(right, answer))
    assert not list(differences({"rows": [{"row": 2}]}, answer))
