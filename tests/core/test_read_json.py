"""Values of JSON that do not fit, and the sentence that says which field is wrong and why."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from cardsync.platform import errors
from cardsync.platform.described import Like
from cardsync.platform.read_json import Id, ReadBy, given_fields, not_json, read

Size = Annotated[int, Meta(ge=1, le=5000)]


def _even(value: Any) -> int:
    if type(value) is not int or value % 2:
        raise ValueError("must be even")
    return value


Even = ReadBy[int, _even, Like(int)]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Card(msgspec.Struct, forbid_unknown_fields=True):
    id: Id
    name: Annotated[str, Meta(min_length=1, max_length=5)] | None = None
    size: Size = 1
    state: Literal["active", "gone", "all"] = "all"
    colour: Colour = Colour.RED
    even: Even | UnsetType | None = UNSET
    flag: bool = False
    marks: list[str] = []
    by_name: dict[str, int] = {}
    key: int | str = 0
    month: Annotated[str, Meta(pattern="^[0-9-]+$", extra={"is": "a month like 2026-11"})] = "1"
    low: Annotated[float, Meta(gt=0)] = 1


class Pair(msgspec.Struct):
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low: is above high")


class Body(msgspec.Struct, forbid_unknown_fields=True):
    cards: Annotated[list[Card], Meta(min_length=1, max_length=3)]
    pair: Pair | None = None


class Add(msgspec.Struct, tag_field="op", tag="add", forbid_unknown_fields=True):
    ids: list[int]


class Rename(msgspec.Struct, tag_field="op", tag="rename"):
    name: str
    ids: str = ""


def a_card(**fields: Any) -> dict[str, Any]:
    return {"cards": [{"id": 1}, {"id": 2} | fields]}


CASES: dict[str, tuple[Any, str]] = {
    "no object": ([], "body: must be an object, not a list"),
    "a field that is missing": (
        {},
        "cards: is missing; it must be a list of 1 to 3 objects",
    ),
    "an id that is missing": ({"cards": [{}]}, "cards[0].id: is missing; it must be an ID"),
    "no list": ({"cards": {}}, "cards: must be a list of 1 to 3 objects, not an object"),
    "too few": ({"cards": []}, "cards: must be a list of 1 to 3 objects"),
    "too many": ({"cards": [{"id": 1}] * 4}, "cards: must be a list of 1 to 3 objects"),
    "no object in a list": ({"cards": [1]}, "cards[0]: must be an object, not a number"),
    "an unknown field": (a_card(quux=1), "cards[1].quux: is not a field"),
    "a mistyped field": (
        a_card(colours="red"),
        "cards[1].colours: is not a field; did you mean colour?",
    ),
    "a field like a path": (
        {"cards": [{"id": 1, "x` - at `$.cards[99999999999999]": 1}]},
        "cards[0].x` - at `$.cards[99999999999999]: is not a field",
    ),
    "an endless field": (a_card(**{"x" * 900: 1}), f"cards[1].{'x' * 60}: is not a field"),
    "no id": (a_card(id="2"), "cards[1].id: must be an ID, not a text"),
    "an id beyond all": (a_card(id=2**63), "cards[1].id: must be an ID"),
    "not a whole number": (
        a_card(size=1.5),
        "cards[1].size: must be a whole number from 1 to 5,000, not a number with decimals",
    ),
    "a flag for a number": (
        a_card(size=True),
        "cards[1].size: must be a whole number from 1 to 5,000, not true or false",
    ),
    "null for a number": (
        a_card(size=None),
        "cards[1].size: must be a whole number from 1 to 5,000, not null",
    ),
    "too large": (a_card(size=5001), "cards[1].size: must be a whole number from 1 to 5,000"),
    "too small": (a_card(low=0), "cards[1].low: must be a number above 0"),
    "too long": (a_card(name="Snivyy"), "cards[1].name: must be a text of 1 to 5 characters"),
    "empty": (a_card(name=""), "cards[1].name: must be a text of 1 to 5 characters"),
    "not text": (
        a_card(name=5),
        "cards[1].name: must be a text of 1 to 5 characters, not a number",
    ),
    "an unknown word": (
        a_card(state="shiny"),
        "cards[1].state: must be one of active, all, gone, not 'shiny'",
    ),
    "a mistyped word": (
        a_card(state="actve"),
        "cards[1].state: must be one of active, all, gone, not 'actve'; did you mean active?",
    ),
    "a mistyped member": (
        a_card(colour="bleu"),
        "cards[1].colour: must be one of red, blue, not 'bleu'; did you mean blue?",
    ),
    "an endless word": (
        a_card(state="x" * 900),
        f"cards[1].state: must be one of active, all, gone, not '{'x' * 59}…",
    ),
    "a number for a word": (
        a_card(state=1),
        "cards[1].state: must be one of active, all, gone, not a number",
    ),
    "a number for a flag": (a_card(flag=1), "cards[1].flag: must be true or false, not a number"),
    "a place in a list": (
        a_card(marks=["a", 1]),
        "cards[1].marks[1]: must be a text, not a number",
    ),
    "two kinds": (
        a_card(key=[]),
        "cards[1].key: must be a whole number or a text, not a list",
    ),
    "a form of its own": (a_card(month="May"), "cards[1].month: must be a month like 2026-11"),
    "a reader of its own": (a_card(even=3), "cards[1].even: must be even"),
    "a struct that checks itself": (
        a_card() | {"pair": {"low": 2, "high": 1}},
        "pair.low: is above high",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_value_that_does_not_fit_is_refused_by_field_and_reason(case):
    given, said = CASES[case]
    with pytest.raises(errors.InvalidPayload) as refused:
        read(given, Body)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("given", "shape", "said"),
    [
        ([], Card, "rule: must be an object, not a list"),
        ({"id": "1"}, Card, "rule.id: must be an ID, not a text"),
        ([1, "2"], list[int], "rule[1]: must be a whole number, not a text"),
        ("ad", Literal["add", "rename"], "rule: must be one of add, rename, not 'ad'; did you mean add?"),
        ({"op": "delete"}, Add | Rename, "rule.op: must be one of add, rename, not 'delete'"),
        ({}, Add | Rename, "rule.op: is missing; it must be one of add, rename"),
        ([{"op": "add", "name": 1}], list[Add | Rename], "rule[0].name: is not a field"),
        ({"op": "rename", "name": 1}, Add | Rename, "rule.name: must be a text, not a number"),
        ({"op": "add", "ids": 1}, Add | Rename, "rule.ids: must be a list of whole numbers, not a number"),
    ],
)  # fmt: skip
def test_a_place_stands_before_the_fields_path(given, shape, said):
    with pytest.raises(errors.InvalidRule) as refused:
        read(given, shape, "rule", errors.InvalidRule)
    assert str(refused.value) == said


def test_what_a_reader_returns_is_the_value_of_its_field_and_unset_fields_are_not_given():
    card = read({"id": 7, "even": 8, "flag": True}, Card)
    assert (card.even, card.flag) == (8, True)
    assert "even" not in given_fields(read({"id": 7}, Card))
    assert given_fields(read({"id": 7, "even": None}, Card))["even"] is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"name": "\xff"}', "byte 10 is not UTF-8"),
        (b'{"name": "\\ud83d"}', "it holds half a character, \\ud83d"),
        (b'{"name": ', "it ends too early"),
        (b'{"name": NaN}', "it cannot be read at byte 9"),
    ],
)
def test_what_is_no_json_is_told_with_its_place_in_the_body(body, reason):
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as raised:
        msgspec.json.decode(body)
    assert not_json(raised.value, body) == f"the body is not valid JSON: {reason}"
