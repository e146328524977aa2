"""Reads rules, sales and settings from JSON into the engine's objects, and writes them back. Pure.

`errors.InvalidRule` names a field that is not allowed or has a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, TypeVar

import msgspec

from cardsync.platform import declared_fields, errors
from cardsync.platform.described import Like
from cardsync.platform.read_json import read
from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.rules import InvalidRule, Rule, Sale, check_guard

T = TypeVar("T")
# Fields of a body that set nothing. Clients repeat most of them from an answer; `confirm` means
# that a member saw the figures of the change.
_ANSWERED: Final = frozenset(
    {"id", "created_at", "updated_at", "warnings", "rule_tests", "confirm"}
)


# These fields of a rule are columns of `pricing_rule`; all other fields are in its column
# `settings`.
IN_COLUMNS: Final = ("id", "name", "priority", "enabled", "state", "query")


if TYPE_CHECKING:
    PriceFields: TypeAlias = msgspec.Struct
    RuleFields: TypeAlias = msgspec.Struct
    SaleFields: TypeAlias = msgspec.Struct
else:
    _body = partial(declared_fields.body_struct, forbid_unknown_fields=True)
    # The fields that define a rule's price, and all fields.
    PriceFields = _body("PriceFields", Rule, *IN_COLUMNS, "broken")
    RuleFields = _body("RuleFields", Rule, "id", "broken")
    SaleFields = _body("SaleFields", Sale, "id", "broken")

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
