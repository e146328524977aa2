"""The contract "No door imports another door" names every door that there is."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import cardsync

SOURCE = Path(cardsync.__file__).parent
CONTRACTS = SOURCE.parents[1] / "pyproject.toml"


def test_every_door_stands_in_the_contract_of_doors():
    contracts = tomllib.loads(CONTRACTS.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [named] = [one["modules"] for one in contracts if one["type"] == "independence"]
    doors = {
        ".".join(("cardsync", *path.relative_to(SOURCE).with_suffix("").parts))
        for path in SOURCE.rglob("*.py")
        if path.stem.endswith("routes") or "Router(" in path.read_text("utf-8")
    } - {"cardsync.asgi"}
    missing = {door for door in doors if not any(fnmatch(door, name) for name in named)}
    assert not missing
