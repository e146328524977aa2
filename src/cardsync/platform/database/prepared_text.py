"""Writes PREPARE and EXECUTE as text, for statements that a connection plans once and runs by name.

One message of the simple protocol carries several statements, so a read costs one round trip. The
driver's own prepared statements belong to the extended protocol, which cannot do that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cardsync.platform.database.bound_text import numbered


def prepare(name: str, statement: str, types: Iterable[str] = ()) -> str:
    """Return the PREPARE of a statement whose values are named `$1`, `$2` and on.

    A polled read costs 1.6 x without it, in a burst 2.9 x; bench/joined_reads.py measures it.
    """
    listed = ", ".join(types)
    return f"PREPARE {name}{f' ({listed})' if listed else ''} AS {statement}"


def prepare_named(name: str, statement: str, values: Mapping[str, str]) -> str:
    """Return the PREPARE of a statement whose values are named as `:name`; `values` maps each
    name to its type.

    50 pages of orders cost 1.4 x without it; bench/fences.py measures it.
    """
    asked, names = numbered(statement)
    return prepare(name, asked, [values[one] for one in names])


def execute_named(name: str, statement: str) -> str:
    """Return the EXECUTE of a statement that `prepare_named` prepared, with its values as `:name`."""
    return execute(name, [f":{one}" for one in numbered(statement)[1]])


def execute(name: str, values: Iterable[int | str]) -> str:
    """Return the EXECUTE of a prepared statement.

    Its values are integers, or names such as `:name` that the client binds.
    """
    return f"EXECUTE {name} ({', '.join(map(str, values))})"


def with_values(statement: str, values: Sequence[int]) -> str:
    """Return the statement with its values in place of `$1`, `$2` and on, where nothing can be
    prepared.
    """
    return re.sub(r"\$(\d+)", lambda found: str(int(values[int(found[1]) - 1])), statement)
