"""Reads rules, sales and settings from JSON into the engine's objects, and writes them back. Pure.

`errors.InvalidRule` names a field that is not allowed or has a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.platform import declared_fields, errors
from cardsync.platform.declared_fields import Whole
from cardsync.platform.described import Like
from cardsync.platform.limits import RULE_NAME_CHARACTERS, SALE_CUT_MOST_BP, SEARCH_CHARACTERS
from cardsync.platform.read_json import ReadBy, read
from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.rules import InvalidRule, Rule, RuleState, Sale, check_guard
from cardsync.prices.limits import RULE_PRIORITY

T = TypeVar("T")
# Fields of a body that set nothing. Clients repeat most of them from an answer; `confirm` means
# that a member saw the figures of the change.
_ANSWERED: Final = frozenset(
    {"id", "created_at", "updated_at", "warnings", "rule_tests", "confirm"}
)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value.strip()


def _name(value: object) -> str:
    name = _text(value)
    if not name or len(name) > RULE_NAME_CHARACTERS:
        raise ValueError(f"must have 1 to {RULE_NAME_CHARACTERS} characters")
    return name


def _query(value: object) -> str:
    query = _text(value)
    if len(query) > SEARCH_CHARACTERS:
        raise ValueError(f"must have at most {SEARCH_CHARACTERS} characters")
    return query


Name = ReadBy[
    str, _name, Like(Annotated[str, msgspec.Meta(min_length=1, max_length=RULE_NAME_CHARACTERS)])
]
Query = ReadBy[str, _query, Like(Annotated[str, msgspec.Meta(max_length=SEARCH_CHARACTERS)])]
# These fields of a rule are columns of `pricing_rule`; all other fields are in its column
# `settings`.
IN_COLUMNS: Final = ("id", "name", "priority", "enabled", "state", "query")
Priority = Annotated[int, msgspec.Meta(ge=1, le=RULE_PRIORITY)]
SaleCut = Annotated[int, msgspec.Meta(ge=-SALE_CUT_MOST_BP, le=0)]


if TYPE_CHECKING:
    _Price: TypeAlias = msgspec.Struct
    _Sale: TypeAlias = msgspec.Struct
else:
    _Price = declared_fields.body_struct("_Price", Rule, *IN_COLUMNS, "broken")
    _Sale = declared_fields.body_struct("_Sale", Sale, "id", "broken")


class PriceFields(_Price, forbid_unknown_fields=True):
    """The fields that define a rule's price."""


class RuleFields(PriceFields):
    name: Name | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    state: RuleState | UnsetType = UNSET
    """draft or published"""
    query: Query | UnsetType = UNSET


class SaleFields(_Sale, forbid_unknown_fields=True):
    name: Name | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    query: Query | UnsetType = UNSET
    adjust_bp: SaleCut | UnsetType = UNSET
    floor_cost_bp: Whole | UnsetType | None = UNSET
    """No price below the cost plus this many basis points, if the cost is known"""


# The body is parsed in the handler, because a change needs the existing rule's values.
RuleBody = Annotated[JsonObject, Like(RuleFields)]
SALE_NEEDS: Final = ("name", "adjust_bp", "starts_at", "ends_at")
SaleBody = Annotated[JsonObject, Like(SaleFields, *SALE_NEEDS)]


def read_body(body: Mapping[str, object], shape: type[msgspec.Struct]) -> JsonObject:
    """Return the fields that a body sets. Raise InvalidRule."""
    given = {name: value for name, value in body.items() if name not in _ANSWERED}
    found = read(given, shape, refusal=errors.InvalidRule)
    return _built(declared_fields.values_of, {"body": found})


def _built(kind: Callable[..., T], values: Mapping[str, object]) -> T:
    try:
        return kind(**values)
    except InvalidRule as e:
        raise errors.InvalidRule(str(e)) from e


def rule_from(values: Mapping[str, object], base: Rule) -> Rule:
    return _built(lambda **changed: replace(base, **changed), values)


def need_sound(rule: Rule) -> Rule:
    """Return the rule. Raise InvalidRule if it is a guard that sets a price or has no limit."""
    if rule.guard:
        _built(lambda: check_guard(rule), {})
    return rule


def sale_from(values: Mapping[str, object], base: Sale | None, priority: int) -> Sale:
    if base is not None:
        return _built(lambda **changed: replace(base, **changed), values)
    for name in SALE_NEEDS:
        if name not in values:
            raise errors.InvalidRule(f"{name}: is missing")
    return _built(Sale, {"id": 0, "priority": priority, **values})


def to_json(thing: Rule | Sale) -> JsonObject:
    """Return the rule or sale as API JSON, the inverse of `rule_from` or `sale_from`."""
    shown = declared_fields.to_json(thing)
    del shown["broken"]
    # Only guards have the field `guard`.
    if not shown.get("guard", True):
        del shown["guard"]
    return shown
