"""Rewrites a statement with values named `:name` for the driver or for PREPARE."""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import dialect, psycopg

_NAMED = psycopg.dialect()
_NUMBERED = dialect(paramstyle="numeric_dollar")


def named(statement: str) -> str:
    """Return the statement with its values as `%(name)s`."""
    return str(text(statement).compile(dialect=_NAMED))


kept_named = lru_cache(maxsize=500)(named)


@lru_cache(maxsize=500)
def numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return the statement with its values as `$1`, `$2` and so on, and the names of these values."""
    compiled = text(statement).compile(dialect=_NUMBERED)
    return str(compiled), tuple(compiled.positiontup or ())
