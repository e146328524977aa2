"""Stores the service's own values in a request's scope, in addition to ASGI's keys, and reads them
with their type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class ScopeValue(Generic[T]):
    """The name and the type of one value. No two values have the same name. The type of a scope
    has only ASGI's keys, hence the casts.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, scope: Mapping[str, object], value: T) -> None:
        cast("dict[str, object]", scope)[self.name] = value

    def of(self, scope: Mapping[str, object]) -> T:
        return cast("T", scope[self.name])

    def find(self, scope: Mapping[str, object]) -> T | None:
        """Return the value, or None if it was not put."""
        return cast("T | None", scope.get(self.name))
