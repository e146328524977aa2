"""Fills the struct that an answer sends and a page shows from a row, field by field.

A field has the name of its column, or says otherwise: `Column` names the column or a path to it,
and `OfRow` is a function of the row; `Usd` is an amount as text, and `Reads` and `ReadsFor` are
functions of the value. A field of structs is read from JSON. Moments and days stay as they are:
JSON's encoder writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from cardsync.platform.money import usd

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True)
class Column:
    name: str


@dataclass(frozen=True)
class OfRow:
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Reads:
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class ReadsFor:
    """The function takes the caller and the value."""

    function: Callable[[Any, Any], Any]


Usd = Annotated[str, Reads(usd)]


class _Field(NamedTuple):
    name: str
    of_row: Callable[[Any], Any]
    read: Callable[[Any], Any] | None
    read_for: Callable[[Any, Any], Any] | None
    has_default: bool

    def value(self, found: Any, caller: Any) -> Any:
        if self.read_for:
            return self.read_for(caller, found)
        return self.read(found) if self.read else found


def struct_of(kind: type[S], row: object, caller: Any = None, /, **own: Any) -> S:
    """Return a struct of a row, of nulls where there is none; `own` are the fields that no column
    has. A field with a default keeps it where the row has no such column.
    """
    for field in _fields(kind):
        if field.name not in own and not (field.has_default and not hasattr(row, field.name)):
            own[field.name] = None if row is None else field.value(field.of_row(row), caller)
    return kind(**own)


def struct_of_values(kind: type[S], values: Sequence[Any], caller: Any = None, /, **own: Any) -> S:
    """Return a struct of a row whose columns are the struct's fields in their order, without those
    of `own`.
    """
    fields = [field for field in _fields(kind) if field.name not in own]
    for field, value in zip(fields, values, strict=True):
        own[field.name] = field.value(value, caller)
    return kind(**own)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[_Field, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _field(one.name, hints[one.name], not one.required) for one in msgspec.structs.fields(kind)
    )


def _field(name: str, hint: Any, has_default: bool) -> _Field:
    of_row: Callable[[Any], Any] = attrgetter(name)
    read, read_for = None, None
    for part in _parts(hint):
        match part:
            case Column(name=column):
                of_row, has_default = attrgetter(column), False
            case OfRow(function=function):
                of_row, has_default = function, False
            case Reads(function=function):
                read = function
            case ReadsFor(function=function):
                read_for = function
            case type() if issubclass(part, msgspec.Struct):
                read = partial(msgspec.convert, type=hint)
    return _Field(name, of_row, read, read_for, has_default)


def _parts(hint: Any) -> Iterator[Any]:
    """Yield the types and the metadata inside a type, the innermost first."""
    for inner in get_args(hint):
        yield from _parts(inner)
    yield hint
