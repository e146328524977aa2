"""Converts JSON values into msgspec types, with one sentence for each value that does not fit: the
field with its place, and the reason. Pure.

`docs/adr/0028-one-reader-of-json.md` explains how the sentences are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, overload

import msgspec
from msgspec import inspect

from cardsync.platform import errors, limits
from cardsync.platform.described import Dollars, Like
from cardsync.platform.money import read_amount
from cardsync.platform.value_types import Annotation, Json, JsonObject

__all__ = [
    "DECODERS", "Amount", "Id", "ReadBy", "given_fields", "like_of", "not_json", "read", "read_by",
    "sentence",
]  # fmt: skip

T = TypeVar("T")
Id = Annotated[
    int, msgspec.Meta(ge=-limits.LARGEST_ID, le=limits.LARGEST_ID, extra={"is": "an ID"})
]

_ERROR: Final = re.compile(r"(?P<why>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
# The first half of a surrogate pair at a text's end; the decoder reports it as the end of the body.
_HALF: Final = re.compile(rb"(\\u[dD][89abAB][0-9a-fA-F]{2})\"")
_PART: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_FIELD: Final = re.compile(
    r"Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL
)
_EXPECTED: Final = re.compile(r"Expected `.*?`(?:, got `(?P<got>\w+)`)?.*", re.DOTALL)
_INVALID: Final = re.compile(r"Invalid (?:enum )?value (?P<value>.*)", re.DOTALL)
_OTHER: Final = re.compile(r"Invalid |Integer value out of range")
_GOT: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number with decimals",
    "int": "a number",
    "null": "null",
    "object": "an object",
    "str": "a text",
}
# A longer name is not a typing error, and a sentence should not repeat all of it.
_SHOWN: Final = 60


class _Reading(type):
    """The metaclass of `ReadBy` types: a value is an instance of such a type if it has the type of
    the function's result. msgspec and the framework check this.
    """

    gives: type
    read: Callable[[Json], Any]
    like: Like

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.gives)


def read_by(gives: Annotation, reads: Callable[[Json], object], like: Like) -> Annotation:
    """Return the type `ReadBy[gives, reads, like]`."""
    read = {"gives": gives, "read": staticmethod(reads), "like": like}
    return _Reading(reads.__name__, (), read)


if TYPE_CHECKING:
    from typing import Annotated as ReadBy
else:

    class ReadBy:
        """`ReadBy[int, units, Like(Dollars)]` is the type of a field that the function `units`
        converts to an integer, from a text or a number. A ValueError of the function is the whole
        reason. For a body that the framework decodes, the type is one that JSON does not have, so
        that the decoder calls the hook.
        """

        def __class_getitem__(cls, item: tuple[object, Callable[[object], object], Like]) -> object:
            return read_by(*item)


def like_of(kind: object) -> Like | None:
    """Return the described type of a value that a `ReadBy` function parses; None for other
    types.
    """
    return kind.like if isinstance(kind, _Reading) else None


# Money in a body: a number, or a plain decimal as text.
Amount = ReadBy[Decimal, read_amount, Like(Dollars)]


@overload
def read(
    given: Json,
    shape: type[T],
    at: str = "",
    refusal: type[errors.Problem] = errors.InvalidPayload,
    *,
    strict: bool = True,
) -> T: ...
@overload
def read(given: Json, shape: Annotation, at: str = "") -> Json: ...
def read(
    given: object,
    shape: object,
    at: str = "",
    refusal: type[errors.Problem] = errors.InvalidPayload,
    *,
    strict: bool = True,
) -> Json:
    """Convert a decoded value, whose place in the body is `at`. Unless strict, texts may replace
    numbers. Raises `refusal`.
    """
    try:
        return msgspec.convert(given, shape, dec_hook=_by_type, strict=strict)
    except msgspec.ValidationError as e:
        said = sentence(str(e), shape, at, given)
        # Every value of a form is a text.
        raise refusal(said if strict else said.removesuffix(", not a text")) from e
    except UnicodeEncodeError as e:
        raise refusal(f"{at or 'body'}: holds half a character, {e.object[e.start]!a}") from e


def _by_type(kind: Annotation, value: Json) -> object:
    if is_read_by(kind):
        return kind.read(value)
    raise NotImplementedError


def is_read_by(kind: object) -> bool:
    return isinstance(kind, _Reading)


# The framework calls these functions for `ReadBy` fields in the bodies that it decodes.
DECODERS: Final = [(is_read_by, _by_type)]


def not_json(error: Exception, body: bytes) -> str:
    """Return why a body is not JSON, from its decoder's error."""
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif isinstance(error, UnicodeDecodeError):
        reason = f"byte {_not_utf8(body):,} is not UTF-8"
    elif at := _AT_BYTE.search(str(error)):
        reason = f"it cannot be read at byte {int(at[1]):,}"
    elif half := _HALF.search(body):
        reason = f"it holds half a character, {half[1].decode()}"
    else:
        reason = "it ends too early"
    return f"the body is not valid JSON: {reason}"


def _not_utf8(body: bytes) -> int:
    """Return the position of the first byte that is not UTF-8; the decoder reports it only in one
    of its messages.
    """
    try:
        body.decode()
    except UnicodeDecodeError as e:
        return e.start
    return len(body)


def given_fields(read: msgspec.Struct) -> JsonObject:
    """Return the fields that a body has: the fields of the struct that are not UNSET."""
    named = {name: getattr(read, name) for name in read.__struct_fields__}
    return {name: value for name, value in named.items() if value is not msgspec.UNSET}


def sentence(error: str, shape: object, at: str = "", given: object = None) -> str:
    """Return msgspec's error about a value of this type as `field: reason`. For a union of structs,
    `given` must be the value.
    """
    said = _ERROR.fullmatch(error)
    why, path = (said["why"], said["path"] or "") if said else (error, "")
    if field := _FIELD.fullmatch(why):
        return _of_field(field["name"], field["what"], shape, at, path, given)
    kind = _at(shape, path, given)
    place = _joined(at, path)
    reason = _reason(why, kind)
    if reason == why and any(isinstance(one, inspect.StructType) for one in _members(kind)):
        # A struct that validates itself names the field in its own message.
        return _joined(place, f".{why}")
    return f"{place or 'body'}: {reason}"


def _of_field(name: str, what: str, shape: object, at: str, path: str, given: object) -> str:
    place = _joined(at, f"{path}.{name[:_SHOWN]}")
    if what == "missing required":
        needed = _needed(_at(shape, f"{path}.{name}", given))
        return f"{place}: is missing" + (f"; it must be {needed}" if needed else "")
    return f"{place}: is not a field{_meant(name, _names(_at(shape, path, given)))}"


def _joined(at: str, path: str) -> str:
    return at + path if at and not at.endswith(" ") else at + path.removeprefix(".")


def _reason(why: str, kind: inspect.Type | None) -> str:
    """Return the reason in our words; a reason that is already ours is unchanged."""
    needed = _needed(kind)
    if not needed:
        return why
    if wrong := _INVALID.fullmatch(why):
        value = wrong["value"]
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        return f"must be {needed}, not {shown}{_meant(value.strip(chr(39)), _words(kind))}"
    if found := _EXPECTED.fullmatch(why):
        return f"must be {needed}" + (f", not {_GOT[found['got']]}" if found["got"] in _GOT else "")
    return f"must be {needed}" if _OTHER.match(why) else why


def _meant(given: str, known: Iterable[str]) -> str:
    found = get_close_matches(given, known, 1) if len(given) <= _SHOWN else []
    return f"; did you mean {found[0]}?" if found else ""


@cache
def _kind_of(shape: object) -> inspect.Type:
    return inspect.type_info(shape)


def _members(kind: inspect.Type | None) -> list[inspect.Type]:
    """Return the types that a value may have, without their constraints."""
    if isinstance(kind, inspect.Metadata):
        return _members(kind.type)
    if isinstance(kind, inspect.UnionType):
        return [one for each in kind.types for one in _members(each)]
    return [] if kind is None else [kind]


def _at(shape: object, path: str, given: object) -> inspect.Type | None:
    """Return the type at a path in msgspec's notation; None if it cannot be determined. If a tag
    distinguishes structs, the tags in `given` decide.
    """
    kinds: list[inspect.Type] = [_kind_of(shape)]
    for name, place in _PART.findall(path):
        members = [one for kind in kinds for one in _members(kind)]
        chosen = [one for one in members if _has_tag(one, given)] or members
        kinds = [inner for one in chosen if (inner := _inside(one, name))]
        given = _part(given, name, place)
    members = [one for kind in kinds for one in _members(kind)]
    kinds = [one for one in members if _has_tag(one, given)] or kinds
    return inspect.UnionType(tuple(kinds)) if len(kinds) > 1 else next(iter(kinds), None)


def _has_tag(kind: inspect.Type, given: object) -> bool:
    return (
        isinstance(kind, inspect.StructType)
        and kind.tag_field is not None
        and isinstance(given, dict)
        and given.get(kind.tag_field) == kind.tag
    )


def _part(given: Json, name: str, place: str) -> object:
    if isinstance(given, dict):
        return given.get(name)
    # A field name that a client made up may look like a path.
    known = isinstance(given, list) and place.isdigit() and len(place) < 10
    return given[int(place)] if known and int(place) < len(given) else None


def _inside(kind: inspect.Type, name: str) -> inspect.Type | None:
    """Return the type of a field; without a name, the type of an item."""
    match kind:
        case inspect.StructType(tag_field=tag) if name and name == tag:
            return inspect.LiteralType((kind.tag,))
        case inspect.StructType(fields=fields) if name:
            return next((field.type for field in fields if field.encode_name == name), None)
        case inspect.DictType(value_type=value):
            return value
        case inspect.CollectionType(item_type=item) if not name:
            return item
    return None


def _names(kind: inspect.Type | None) -> list[str]:
    structs = [one for one in _members(kind) if isinstance(one, inspect.StructType)]
    return [field.encode_name for one in structs for field in one.fields]


def _words(kind: inspect.Type | None) -> list[str]:
    """Return the allowed words of a value."""
    found: list[object] = []
    for one in _members(kind):
        match one:
            case inspect.LiteralType(values=values):
                found += values
            case inspect.EnumType(cls=cls):
                found += [member.value for member in cls]
    return [str(word) for word in found]


def _needed(kind: inspect.Type | None) -> str:
    """Describe the type that a value must have; empty if unknown. The messages omit that a field
    may be null, because the client can omit the field instead.
    """
    match kind:
        case inspect.Metadata(extra={"is": allowed}):
            return str(allowed)
        case inspect.Metadata(type=inner):
            return _needed(inner)
        case inspect.UnionType(types=kinds):
            words = _words(kind)
            others = [_needed(one) for one in kinds if not _words(one)]
            allowed = [f"one of {', '.join(words)}"] * bool(words) + others
            return " or ".join(dict.fromkeys(one for one in allowed if one))
        case inspect.IntType():
            return "a whole number" + _range(kind)
        case inspect.FloatType() | inspect.DecimalType():
            return "a number" + _range(kind)
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType(pattern=None):
            return "a text" + _count(kind, "characters")
        case inspect.StrType(pattern=pattern):
            return f"text{_count(kind, 'characters')} like {pattern}"
        case inspect.CollectionType(item_type=item):
            [item, *more] = _members(item)
            items = "items" if more else _ITEMS.get(type(item), "items")
            return "a list" + (_count(kind, items) or (f" of {items}" if items != "items" else ""))
        case inspect.StructType() | inspect.DictType():
            return "an object"
        case inspect.DateTimeType():
            return "a time like 2026-11-21T08:00:00Z"
        case inspect.DateType():
            return "a day like 2026-11-21"
    return f"one of {', '.join(words)}" if (words := _words(kind)) else ""


_ITEMS: Final[Mapping[type[inspect.Type], str]] = {
    inspect.DictType: "objects",
    inspect.StructType: "objects",
    inspect.StrType: "texts",
    inspect.IntType: "whole numbers",
}


def _range(kind: inspect.IntType | inspect.FloatType | inspect.DecimalType) -> str:
    """Describe the bounds of a number."""
    least, most = getattr(kind, "ge", None), getattr(kind, "le", None)
    above, below = getattr(kind, "gt", None), getattr(kind, "lt", None)
    if least is not None and most is not None:
        return f" from {least:,} to {most:,}"
    bounds = {"of at least": least, "of at most": most, "above": above, "below": below}
    return "".join(f" {word} {bound:,}" for word, bound in bounds.items() if bound is not None)


def _count(kind: inspect.StrType | inspect.CollectionType, of: str) -> str:
    """Describe how many characters or items are required."""
    least, most = kind.min_length, kind.max_length
    if least and most is not None:
        return f" of {least:,} to {most:,} {of}"
    bounds = {"at least": least or None, "at most": most}
    return "".join(
        f" of {word} {bound:,} {of.removesuffix('s') if bound == 1 else of}"
        for word, bound in bounds.items()
        if bound is not None
    )
