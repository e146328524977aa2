"""A value of our own in a request's scope, beside the keys of ASGI: one part puts it there, and
others find it with its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class ScopeValue(Generic[T]):
    """Each name is used once. A scope is a dictionary that is typed by ASGI's keys alone."""

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, scope: Mapping[str, object], value: T) -> None:
        cast("dict[str, object]", scope)[self.name] = value

    def of(self, scope: Mapping[str, object]) -> T:
        return cast("T", scope[self.name])

    def find(self, scope: Mapping[str, object]) -> T | None:
        """Return the value, or None where nothing put it."""
        return cast("T | None", scope.get(self.name))
