"""Defines type names that give the meaning of values whose parts the type checker does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import polars as pl

# A decoded JSON value of any kind.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]
# A JSON object that its holder only reads: a body, an undo, an image.
JsonMapping: TypeAlias = Mapping[str, Any]
# A row of a frame or of a statement's mappings: its values by the names of the columns.
NamedRow: TypeAlias = Mapping[str, Any]
# The values of a statement or of a row's columns by their names, some of which the code reads.
Values: TypeAlias = dict[str, Any]
# A type in the form of an annotation: a class, a union, or Annotated.
Annotation: TypeAlias = Any
# The options of a handler, which its decorator takes by name.
HandlerOptions: TypeAlias = dict[str, Any]
FrameSchema: TypeAlias = "dict[str, pl.DataType | type[pl.DataType]]"


class Row(Protocol):
    """A row of a statement: its columns are attributes, and its values are iterated in order."""

    def __getattr__(self, name: str, /) -> Any: ...
    def __getitem__(self, place: int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
