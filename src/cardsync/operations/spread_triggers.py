"""Rewrites trigger functions for spread tables: on a node, the function's statements may not read
the rows of the trigger's statement, so the function first gathers them into arrays.

On one server the rewritten functions take 1.5 times as long, so only a spread database has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import psycopg

# The rows of a trigger's statement, and the function's name for one of them.
_ROWS: Final = re.compile(r"FROM (new_rows|old_rows) AS (\w)\b")
_BODY: Final = re.compile(r"(\$function\$\n)(BEGIN\n)")
# The columns of `orders` by which the triggers count.
_COLUMNS: Final = ("seller_id", "status_group", "shipping_type", "refund_amt", "order_date")


def replaced_functions(connection: psycopg.Connection) -> Iterator[tuple[str, str]]:
    """Return the functions of statement triggers that still read the rows of the trigger's
    statement, each with its new definition.
    """
    asked = """
        SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
         WHERE p.oid IN (SELECT tgfoid FROM pg_trigger
                          WHERE tgnewtable IS NOT NULL OR tgoldtable IS NOT NULL) ORDER BY 1
    """
    types: dict[str, str] = dict(connection.execute(
        "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = 'orders'::regclass AND attname = ANY (%s)",
        [list(_COLUMNS)],
    ).fetchall())  # fmt: skip
    for name, definition in connection.execute(asked).fetchall():
        if _ROWS.search(definition):
            yield name, gathered_first(definition, types)


def gathered_first(definition: str, types: dict[str, str]) -> str:
    """Return the definition with its rows in arrays before its first statement."""
    found = _ROWS.findall(definition)
    declared, gathered = [], []
    for rows, _ in dict.fromkeys(found):
        arrays = [f"{rows}_{column}" for column in _COLUMNS]
        declared += [f"    {rows}_{name} {types[name]}[];\n" for name in _COLUMNS]
        aggregates = ", ".join(f"array_agg({column})" for column in _COLUMNS)
        gathered.append(f"    SELECT {aggregates} INTO {', '.join(arrays)} FROM {rows};\n")

    def from_arrays(match: re.Match[str]) -> str:
        rows, name = match.groups()
        arrays = ", ".join(f"{rows}_{column}" for column in _COLUMNS)
        return f"FROM unnest({arrays}) AS {name} ({', '.join(_COLUMNS)})"

    head = rf"\1DECLARE\n{''.join(declared)}\2{''.join(gathered)}"
    return _BODY.sub(head, _ROWS.sub(from_arrays, definition), count=1)
