"""Declares each field of a thing once, as an attribute of a frozen dataclass. The field's bounds,
its types in request and response bodies, the reader of its texts, and its words in forms and
sentences derive from the declaration. Pure.

A declared attribute is `Annotated[int | None, Field(…)]`; a setting's column has its `Field`, too
(`access/declared_settings.py`). In a text, `…` is the place of a value or an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin
from typing import get_type_hints as hints_of

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.platform.clock import read_moment, rfc3339
from cardsync.platform.described import WORDS_OF_FIELDS, Dollars, Like
from cardsync.platform.kit.struct_rows import Usd
from cardsync.platform.kit.typed_numbers import whole
from cardsync.platform.money import dollars, from_units, read_amount, to_units
from cardsync.platform.read_json import ReadBy, given_fields, read_by
from cardsync.platform.value_types import Annotation, Json, JsonMapping, JsonObject

VALUE: Final = "…"


def _money(value: object) -> int:
    """Convert a decimal string or a JSON number of dollars to ten-thousandths."""
    return to_units(read_amount(value))


def _time(value: object) -> datetime:
    moment = read_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise ValueError("must be a time like 2026-11-21T08:00:00Z")
    return moment


Money = ReadBy[int, _money, Like(Dollars)]
Time = ReadBy[datetime, _time, Like(datetime)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**31) + 1, le=2**31 - 1, extra={"is": "a whole number"})]


@cache
def trimmed(least: int, most: int) -> Annotation:
    """Return the type of a text in a body that has so many characters once it is trimmed."""

    def read(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a text")
        kept = value.strip()
        if not least <= len(kept) <= most:
            span = f"{least} to {most}" if least else f"at most {most}"
            raise ValueError(f"must have {span} characters")
        return kept

    bounds = msgspec.Meta(min_length=least or None, max_length=most)
    return read_by(str, read, Like(Annotated[str, bounds]))


@dataclass(frozen=True)
class Field:
    """A field's declaration.

    `least` and `most` bound a number, or the characters of a text. A `money` field is in
    ten-thousandths of a dollar. `body` and `answer` are the types in request and response bodies,
    if they do not follow from the attribute's type. `parts` are the names of the two structs of an
    inner thing, and `api` is the field's description in openapi.json.

    A text of a form or a command must be what `takes` describes, or `read` converts it, or it is
    one of `options`, each with its label. `input` is the
    kind of input in the form, `label` its label, `line` the text around it, and `hint` the text
    after it. The line also has the inputs of the fields that `beside` names. `section` is the part
    of the form; a field with `first` precedes the other fields. `says` is the sentence about the
    field, `feed` its name in the activity feed, and `uses` names the data that the field needs.
    A guard has no field with `guard=False`.
    """

    least: int | None = None
    most: int | None = None
    money: bool = False
    body: Annotation = None
    answer: Any = None
    parts: tuple[str, str] = ("", "")
    json: str = ""
    api: str = ""
    takes: str = ""
    read: Callable[[str], Any] | None = None
    options: Mapping[str, str] | None = None
    form: str = ""
    input: str = "text"
    section: str = ""
    first: bool = False
    label: str = ""
    line: str = ""
    beside: tuple[str, ...] = ()
    hint: str = ""
    says: str = ""
    feed: str = ""
    uses: tuple[str, ...] = ()
    guard: bool = True


_UNDECLARED: Final = Field()


class Declared(NamedTuple):
    """An attribute of a thing. `type` is its type without None; `nullable` is whether None is
    allowed.
    """

    name: str
    type: Any
    nullable: bool
    default: Json
    field: Field

    @property
    def json_name(self) -> str:
        return self.field.json or self.name

    @property
    def form_name(self) -> str:
        return self.field.form or self.name.removesuffix("_bp")

    @property
    def is_percent(self) -> bool:
        return self.name.endswith("_bp")

    @property
    def input(self) -> str:
        """Return the kind of the form's input: check, select, zone or text."""
        return "select" if self.field.options else {bool: "check"}.get(self.type, self.field.input)


def is_part(kind: object) -> bool:
    """Return whether values of this type are things that declare fields."""
    return is_dataclass(kind)


@cache
def declared(thing: type) -> tuple[Declared, ...]:
    """Return the attributes of a thing, in the order of their declaration."""
    hints = hints_of(thing, include_extras=True)
    return tuple(_declared(each, hints[each.name]) for each in fields(thing))


def _declared(attribute: Any, hint: object) -> Declared:
    own = _UNDECLARED
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        own = next((one for one in notes if isinstance(one, Field)), own)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    [kind] = [one for one in kinds if one is not type(None)]
    return Declared(attribute.name, kind, len(kinds) > 1, attribute.default, own)


def of_section(fields: Iterable[Declared], section: str) -> list[Declared]:
    """Return the fields of a section of a form, in their order there."""
    found = [one for one in fields if one.field.section == section]
    return sorted(found, key=lambda one: not one.field.first)


def refusal(thing: Any) -> tuple[str, str] | None:
    """Return the first field of a thing whose value is outside its bounds, and the reason."""
    for each in declared(thing.__class__):
        value = getattr(thing, each.name)
        if value is not None and (why := _refused(each, value)):
            return each.json_name, why
    return None


def _refused(each: Declared, value: Json) -> str:
    kind, values = each.type, [value]
    if get_origin(kind) is tuple:
        kind, values = get_args(kind)[0], value
    if get_origin(kind) is Literal:
        names = get_args(kind)
        return "" if all(one in names for one in values) else f"must be one of {', '.join(names)}"
    least, most = each.field.least, each.field.most
    # The body refuses a text that is too short or too long: a thing that is not saved has no name.
    if least is None or kind is str or (value >= least and (most is None or value <= most)):
        return ""
    if most is None:
        return "must not be negative"
    # The message shows bounds of money in dollars, as sellers write them.
    low, high = (_amount(one) if each.field.money else one for one in (least, most))
    return f"must be between {low} and {high}"


def _amount(units: int) -> str:
    return f"-{dollars(-units)}" if units < 0 else dollars(units)


# The type of thing that each struct of a request body becomes.
_THINGS: Final[dict[type, type]] = {}


def body_struct(name: str, thing: type, *without: str, **config: bool) -> Annotation:
    """Return the struct of a request body that changes the thing; every field is optional."""
    of = [one for one in declared(thing) if one.name not in without]
    return changed_struct(name, of, **config)


def changed_struct(name: str, of: Sequence[Declared], **config: bool) -> Annotation:
    """Return the struct of a request body that changes these fields; every one is optional."""
    shapes = [(each.name, _body(each) | UnsetType, UNSET) for each in of]
    return _struct(name, of, shapes, **config)


@cache
def answer_struct(name: str, thing: type, *without: str) -> object:
    """Return the struct of a response body that shows the thing."""
    return shown_struct(name, [one for one in declared(thing) if one.name not in without])


def shown_struct(name: str, of: Sequence[Declared]) -> object:
    """Return the struct of a response body that shows these fields."""
    return _struct(name, of, [(each.name, _answer(each)) for each in of])


@cache
def _body_part(name: str, thing: type) -> object:
    shapes = [
        (each.name, _body(each), *(() if each.default is MISSING else (each.default,)))
        for each in declared(thing)
    ]
    _THINGS[struct := _struct(name, declared(thing), shapes, forbid_unknown_fields=True)] = thing
    return struct


def _struct(
    name: str, of: Sequence[Declared], shapes: list[Any], **config: Any
) -> type[msgspec.Struct]:
    own = {each.name: each.field for each in of}
    api = {name: one.api for name, one in own.items() if one.api}
    return msgspec.defstruct(
        name,
        shapes,
        namespace={WORDS_OF_FIELDS: api},
        rename={name: one.json for name, one in own.items() if one.json},
        kw_only=True,
        **config,
    )


def _body(each: Declared) -> Annotation:
    kind = each.field.body or _body_type(each.type, each.field)
    return kind | None if each.nullable else kind


def _body_type(kind: Any, own: Field) -> Annotation:
    if own.money:
        return Money
    if is_part(kind):
        return _body_part(own.parts[0], kind)
    if get_origin(kind) is tuple and is_part(get_args(kind)[0]):
        inner: Any = _body_part(own.parts[0], get_args(kind)[0])
        return list[inner]
    if kind is str and own.most is not None:
        return trimmed(own.least or 0, own.most)
    if kind is int and own.takes:
        return Annotated[int, msgspec.Meta(ge=own.least, le=own.most)]
    return {int: Whole, datetime: Time, Decimal: str | int | float}.get(kind, kind)


def _answer(each: Declared) -> Annotation:
    kind = each.field.answer or _answer_type(each.type, each.field)
    return kind | None if each.nullable else kind


def _answer_type(kind: object, own: Field) -> Annotation:
    if is_part(kind):
        return answer_struct(own.parts[1], kind)
    if get_origin(kind) is tuple:
        inner: Any = _answer_type(get_args(kind)[0], own)
        return list[inner]
    if kind is Decimal:
        return Usd
    return str if own.money or kind is datetime else kind


def from_text(each: Declared, text: str) -> object:
    """Convert a typed text to the field's value. Raises ValueError with the accepted format."""
    own = each.field
    if each.nullable and not text:
        return None
    if own.read is not None:
        return own.read(text)
    if own.options and text not in own.options:
        raise ValueError("one of " + ", ".join(own.options))
    if each.type is int:
        if (number := whole(text, own.most or 0, own.least or 0)) is None:
            raise ValueError(own.takes)
        return number
    if own.most is not None and len(text.strip()) > own.most:
        raise ValueError(f"no more than {own.most} characters")
    value = _OF_TEXT.get(each.type, str.strip)(text)
    return None if each.nullable and value == "" else value


def _flag(text: str) -> bool:
    if text.lower() in ("true", "1", "yes", "on"):
        return True
    if text.lower() in ("false", "0", "no", "off"):
        return False
    raise ValueError("true or false")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as e:
        raise ValueError("a moment like 2027-01-31T12:00:00Z, or nothing") from e
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _dollars(text: str) -> Decimal:
    try:
        amount = read_amount(text)
    except ValueError as e:
        raise ValueError("an amount like 50.00") from e
    if amount < 0:
        raise ValueError("an amount like 50.00")
    return amount


_OF_TEXT: Final[Mapping[object, Callable[[str], object]]] = {
    bool: _flag,
    datetime: _moment,
    Decimal: _dollars,
}


def values_of(body: msgspec.Struct) -> JsonObject:
    """Return the values that a request body sets, in the types of the thing."""
    return {name: _of_body(value) for name, value in given_fields(body).items()}


def _of_body(value: Json) -> object:
    if isinstance(value, list):
        return tuple(_of_body(one) for one in value)
    if isinstance(value, dict):
        return tuple(value.items())
    thing = _THINGS.get(type(value))
    return value if thing is None else thing(**values_of(value))


def to_json(thing: Any) -> JsonObject:
    """Return the JSON form of the thing, the inverse of `values_of`."""
    return {
        each.json_name: _json(getattr(thing, each.name), each.field)
        for each in declared(thing.__class__)
    }


def from_row(row: object, names: Iterable[str]) -> JsonObject:
    """Convert the columns of a row to the thing's values, with money in ten-thousandths."""
    values = {name: getattr(row, name) for name in names}
    return {n: to_units(v) if isinstance(v, Decimal) else v for n, v in values.items()}


def to_row(thing: type, values: JsonMapping) -> dict[str, Any]:
    """Convert the thing's values to the columns of its row, with money as decimals."""
    money = {each.name for each in declared(thing) if each.field.money}
    return {
        name: from_units(value) if name in money and value is not None else value
        for name, value in values.items()
    }


def _json(value: Json, own: Field) -> Json:
    if own.money and value is not None:
        return _amount(value)
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, tuple):
        if get_origin(own.answer) is dict:
            return dict(value)
        return [_json(one, _UNDECLARED) for one in value]
    return to_json(value) if is_part(value.__class__) else value


def filled(text: str, values: Sequence[str]) -> str:
    """Replace each `…` of a text by the next value."""
    parts = zip(text.split(VALUE), [*values, ""], strict=True)
    return "".join(before + value for before, value in parts)
