"""Recognizes the collection exports of apps by their columns, for error messages of routes that
expect another file. Pure.

The columns are read from the TOML files in `buying/collections/formats`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from cardsync.platform.file_kinds import COLLECTIONS, FileKind
from cardsync.platform.table_text import column_name

# The marketplace's pricing export, which is an inventory and no app's export.
_OWN: Final = "pricing_export.toml"


@cache
def _declared() -> list[tuple[FileKind, frozenset[str]]]:
    """Return the apps' exports with their distinguishing columns, the most specific first."""
    found = []
    for file in files("cardsync.buying.collections").joinpath("formats").iterdir():
        if file.name.endswith(".toml") and file.name != _OWN:
            said = tomllib.loads(file.read_text("utf-8"))
            app = said["label"].partition(",")[0]
            app = app.removesuffix(" stock file").removesuffix(" articles")
            owner = f"the {app}" if app.endswith(" app") else app
            name = f"{owner}'s collection export"
            kind = FileKind(name, frozenset(), COLLECTIONS)
            found += [(kind, frozenset(signs)) for signs in said["signs"]]
    return sorted(found, key=lambda one: len(one[1]), reverse=True)


def app_of(header: Sequence[str]) -> FileKind | None:
    """Return the kind of app export that has this header; None if no export has it."""
    names = set(map(column_name, header))
    return next((kind for kind, signs in _declared() if signs <= names), None)
