"""Defines the fields of the search language, and parses the values of a term. Pure.

The error for an invalid name, flag or value suggests the most similar valid word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import SequenceMatcher
from typing import TypeAlias

from cardsync.catalog.collector_number import read_collector_number
from cardsync.catalog.condition import LANGUAGES
from cardsync.catalog.printings import PRINTINGS
from cardsync.catalog.product_lines import NAME_BY_LABEL, NAMES
from cardsync.platform.shelf_place import box_in, place_in
from cardsync.stock.search.folding import escaped_for_like, folded
from cardsync.stock.search.tree import Named, Range, Value
from cardsync.stock.search.variants import SELECTORS


class QueryError(ValueError):
    """A search that can't be parsed: the reason, the offset, and the most similar valid word."""

    def __init__(
        self,
        message: str,
        offset: int,
        nearest: str | None = None,
    ) -> None:
        super().__init__(f"{message}. Did you mean {nearest}?" if nearest else message)
        self.offset = offset
        self.nearest = nearest


class Refused(Exception):
    """A value that a field does not accept. The parser adds the value's offset in the text."""

    def __init__(self, why: str, nearest: str | None = None) -> None:
        super().__init__(why)
        self.nearest = nearest


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the valid word that is most similar to `word`. Return None for a very long `word`,
    which is no typing error of a valid word.
    """
    if len(word) > _GUESSED_CHARACTERS:
        return None
    best = None
    most = 0.0
    alike = SequenceMatcher(b=word.casefold()[:_GUESSED_CHARACTERS])
    for name in known:
        alike.set_seq1(name.casefold()[:_GUESSED_CHARACTERS])
        if (
            alike.real_quick_ratio() > most
            and alike.quick_ratio() > most
            and (ratio := alike.ratio()) > most
        ):
            best = name
            most = ratio
    return best


_GUESSED_CHARACTERS = 40
CONDITIONS = ("NM", "LP", "MP", "HP", "DMG", "U")
FLAGS = (
    "gone",
    "active",
    "unshelved",
    "location-drift",
    "custom",
    "stamped",
    "priced",
    "unpriced",
    "underpriced",
    "overpriced",
    "pinned",
    "held",
    "capped",
    "stuck",
    "sealed",
    "foil",
    "moved",
    "review",
    "confirmed",
    "in-flux",
    "audit",
    "dropped",
)
THINGS = ("photo", "list", "rule", "receipt", "location", "cost")
_ISO = {code: code for code in dict.fromkeys(LANGUAGES.values())}
_LANGUAGE_WORDS = {name.casefold(): name for name in LANGUAGES} | _ISO
# A search may name a product line by its folded label or by its internal name.
LINE_NAMES = {folded(label): name for label, name in NAME_BY_LABEL.items()} | {
    name: name for name in NAMES
}
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,6})?", re.ASCII)
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
COMPARING = (":", "=", "!=", "<", "<=", ">", ">=")
ORDERS = COMPARING[3:]
EQUALITY = COMPARING[:3]
IS = (":", "=")


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a value in the search, and whether the text was in quotes."""

    text: str
    quoted: bool


Read: TypeAlias = Callable[[Written, str], Value]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the search language. With `colon_is_equals`, the operators `:` and `=` mean the
    same, and the tree stores both as `:`.
    """

    name: str
    read: Read
    ops: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    colon_is_equals: bool = True


def _text(written: Written, op: str) -> Value:
    if not folded(written.text).strip():
        raise Refused("there is nothing to search for")
    return written.text


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise Refused(f"{text!r} is not a number")
    number = Decimal(text)
    # The returned number has no trailing zeros and no exponent.
    return Decimal(int(number)) if number == int(number) else number.normalize()


def _range(text: str, read: Callable[[str], Decimal]) -> Range:
    low, _, high = text.partition("..")
    if not low and not high:
        raise Refused("a range needs an end")
    found = Range(read(low) if low else None, read(high) if high else None)
    if found.low is not None and found.high is not None and found.low > found.high:
        raise Refused(f"{text!r} ends before it starts")
    return found


def _or_range(read: Callable[[str], Decimal]) -> Read:
    """Return a parser of one value or, for operators other than <, <=, > and >=, of a range."""

    def read_either(written: Written, op: str) -> Value:
        if ".." in written.text and op not in ORDERS:
            return _range(written.text, read)
        return read(written.text)

    return read_either


def _percent(text: str) -> Decimal:
    return _decimal(text.removesuffix("%"))


def _whole(text: str) -> Decimal:
    number = _decimal(text)
    if number != int(number):
        raise Refused(f"{text!r} is not a whole number")
    return number


def _collector_number(written: Written, op: str) -> Value:
    if op in ORDERS:
        return _whole(written.text)
    if ".." in written.text:
        return _range(written.text, _whole)
    read = read_collector_number(written.text)
    if not read.key:
        raise Refused("there is no number to search for")
    return written.text.strip()


def _word_of(known: Mapping[str, str], what: str) -> Read:
    def read(written: Written, op: str) -> Value:
        word = folded(written.text).strip().replace("_", "-")
        if (found := known.get(word) or known.get(word.replace("-", " "))) is None:
            raise Refused(f"{written.text!r} is not {what}", nearest(word, known))
        return found

    return read


def _condition(written: Written, op: str) -> Value:
    code = written.text.strip().upper()
    if code not in CONDITIONS:
        raise Refused(f"{written.text!r} is not a condition", nearest(code, CONDITIONS))
    if code == "U" and op in ORDERS:
        raise Refused("U (unopened) can't be compared with other conditions")
    return code


def _game(written: Written, op: str) -> Value:
    """Return the name of a product line, or the text if it names no known line. The compiler checks
    whether the seller has the line, because the installation may have further lines.
    """
    text = folded(written.text).strip()
    if not text:
        raise Refused("there is no game to search for")
    return LINE_NAMES.get(text, text)


def _variant(written: Written, op: str) -> Value:
    _text(written, op)
    return SELECTORS.get(folded(written.text).strip(), written.text)


def _box(written: Written, op: str) -> Value:
    if ".." in written.text and not written.quoted:
        return _range(written.text, _whole)
    try:
        box = box_in(written.text)
    except ValueError as problem:
        raise Refused(f"{written.text!r} is not a box: it {problem}") from None
    return Decimal(box) if isinstance(box, int) else box


def _loc(written: Written, op: str) -> Value:
    try:
        return place_in(written.text)
    except ValueError as problem:
        raise Refused(f"{written.text!r} is not a slot: it {problem}") from None


def _list(written: Written, op: str) -> Value:
    _text(written, op)
    slug = written.text.lower()
    return slug if not written.quoted and _SLUG.fullmatch(slug) else Named(written.text)


def _rule(written: Written, op: str) -> Value:
    _text(written, op)
    if not written.quoted and written.text.isdecimal() and written.text.isascii():
        return _whole(written.text)
    return Named(written.text)


def _listed(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


_number = _or_range(_decimal)
_id = _or_range(_whole)
_ALL = (
    Field("name", _text, EQUALITY, colon_is_equals=False),
    Field("set", _text, EQUALITY, ("s",), colon_is_equals=False),
    Field("number", _collector_number, COMPARING, ("cn",)),
    Field("game", _game, EQUALITY, ("product_line", "pl")),
    Field("rarity", _text, EQUALITY, ("r",)),
    Field("cond", _condition, COMPARING, ("condition",)),
    Field("printing", _text, EQUALITY, ("finish", "f"), colon_is_equals=False),
    Field("lang", _word_of(_LANGUAGE_WORDS, "a language"), EQUALITY, ("language",)),
    Field("v", _variant, EQUALITY, ("variant",)),
    *(
        Field(name, _number, COMPARING)
        for name in ("price", "target", "market", "low", "lowship", "direct", "cost")
    ),
    Field("qty", _number, COMPARING, ("quantity",)),
    Field("unshelved", _number, COMPARING),
    Field("change", _or_range(_percent), COMPARING),
    Field("margin", _or_range(_percent), COMPARING),
    Field("age", _number, COMPARING),
    Field("unsold", _number, COMPARING),
    Field("list", _list, IS),
    Field("box", _box, EQUALITY),
    Field("loc", _loc, EQUALITY),
    Field("is", _word_of(_listed(FLAGS), "a flag"), IS),
    Field("has", _word_of(_listed(THINGS), "a property that a card can have"), IS),
    Field("rule", _rule, IS),
    Field("id", _id, COMPARING),
    Field("sku", _id, COMPARING),
)
FIELDS: Mapping[str, Field] = {
    name: field for field in _ALL for name in (field.name, *field.aliases)
}
FIELD_NAMES = (*FIELDS, "not")


def field_of(name: str, at: int) -> Field:
    field = FIELDS.get(name.lower())
    if field is None:
        raise QueryError(f'no filter called "{name}"', at, nearest(name, FIELD_NAMES))
    return field


def term_values(field: Field, op: str, written: Iterable[Written]) -> tuple[str, tuple[Value, ...]]:
    """Return the operator that the tree stores, and the values. Raises Refused."""
    if op not in field.ops:
        raise Refused(f"{field.name} does not take {op}", nearest(op, field.ops))
    if op == "=" and field.colon_is_equals:
        op = ":"
    values = tuple(dict.fromkeys(field.read(value, op) for value in written))
    if op in ORDERS and len(values) > 1:
        raise Refused(f"{field.name}{op} takes one value")
    return op, values


_PRINTINGS = {
    "normal": "Normal",
    "foil": "Foil",
    "holofoil": "Holofoil",
    "reverse": "Reverse Holofoil",
    "limited": "Limited",
}
_EDITIONS = ("1st", "unlimited")


def printings_named(text: str, op: str) -> tuple[list[str], str]:
    """Return the known printings that a text selects, and a LIKE pattern for unknown printings. The
    pattern is empty if the text is the search language's word for one known printing.
    """
    plain = folded(text).strip(" ")
    if plain in _PRINTINGS:
        return [_PRINTINGS[plain]], ""
    like = escaped_for_like(plain)
    if plain in _EDITIONS:
        return [name for name in PRINTINGS if name.lower().startswith(plain)], f"{like}%"
    if op == ":":
        return [name for name in PRINTINGS if plain in name.lower()], f"%{like}%"
    return [name for name in PRINTINGS if plain == name.lower()], like


def languages_named(text: str) -> Iterable[str]:
    return [name for name, code in LANGUAGES.items() if text in (name, code)]
