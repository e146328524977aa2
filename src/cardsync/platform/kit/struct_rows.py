"""Fills a struct for an answer or a page from a row, field by field.

A field has its column's name, unless its annotation has a rule: `Column` names the column or a path
to it, `OfRow` is a function of the row, `Usd` is an amount as text, and `Reads` and `ReadsFor` are
functions of the value. A field whose type is a struct, or a list of structs, is read from JSON.
Times and days are not converted, because the JSON encoder writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from cardsync.platform.money import dollars_or_none, usd

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True)
class Column:
    name: str


@dataclass(frozen=True)
class OfRow:
    function: Callable[[object], object]


@dataclass(frozen=True)
class Reads:
    function: Callable[[object], object]


@dataclass(frozen=True)
class ReadsFor:
    """A function of the caller and the value."""

    function: Callable[[object, object], object]


Usd = Annotated[str, Reads(usd)]
# The same of ten-thousandths.
DollarsOrNone = Annotated[str | None, Reads(dollars_or_none)]


class _Field(NamedTuple):
    name: str
    of_row: Callable[[object], object]
    read: Callable[[Any, Any], Any] | None
    """The function takes the caller and the value."""


def struct_of(kind: type[S], row: object, caller: object = None, /, **own: object) -> S:
    """Return a struct with the values of a row, or with nulls if `row` is None. `own` has the
    values of fields without a column. A field has its default if the row lacks its column.
    """
    for name, of_row, read in _fields(kind, tuple(own)):
        value = None if row is None else of_row(row)
        own[name] = read(caller, value) if read and row is not None else value
    return kind(**own)


def struct_of_values(
    kind: type[S], values: Sequence[object], caller: object = None, /, **own: object
) -> S:
    """Return a struct of a row whose columns are the struct's fields in order, without the fields
    in `own`.
    """
    for (name, _, read), value in zip(_fields(kind, tuple(own)), values, strict=True):
        own[name] = read(caller, value) if read else value
    return kind(**own)


@cache
def _fields(kind: type[msgspec.Struct], without: tuple[str, ...]) -> list[_Field]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        _field(one, hints[one.name])
        for one in msgspec.structs.fields(kind)
        if one.name not in without
    ]


def _field(one: msgspec.structs.FieldInfo, hint: object) -> _Field:
    of_row: Callable[[object], object] = attrgetter(one.name)
    if one.default is not msgspec.NODEFAULT:
        of_row = partial(_or_default, one)
    read: Callable[[object, object], object] | None = None
    for part in parts_of(hint):
        match part:
            case Column(name=column):
                of_row = attrgetter(column)
            case OfRow(function=function):
                of_row = function
            case Reads(function=function):
                read = partial(_without_caller, function)
            case ReadsFor(function=function):
                read = function
            case type() if issubclass(part, msgspec.Struct):
                read = partial(_without_caller, partial(msgspec.convert, type=hint))
    return _Field(one.name, of_row, read)


def _or_default(one: msgspec.structs.FieldInfo, row: object) -> object:
    return getattr(row, one.name, one.default)


def _without_caller(function: Callable[[object], object], caller: object, value: object) -> object:
    return function(value)


def parts_of(hint: object) -> Iterator[object]:
    """Yield the types and the metadata inside a type, the innermost first."""
    for inner in get_args(hint):
        yield from parts_of(inner)
    yield hint
