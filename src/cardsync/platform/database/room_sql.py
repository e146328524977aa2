"""Loads the long statements of a package from its file `queries.sql`, once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def queries_of(room: str) -> Mapping[str, str]:
    """Return the statements of a package by the names above them."""
    return named_in(files(room).joinpath("queries.sql").read_text("utf-8"))


def named_in(text: str) -> dict[str, str]:
    """Return the statements of a file by their names. Pure."""
    _, *found = _NAME.split(text)
    return {name: sql.strip() for name, sql in zip(found[::2], found[1::2], strict=True)}
