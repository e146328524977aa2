"""Converts buy rules from JSON and from rows into the engine's objects, and back. Pure.

`errors.InvalidRule` names the unknown field, or the field with a wrong value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.rules.models import StoredBuyRule
from cardsync.platform import declared_fields, errors
from cardsync.platform.read_json import read
from cardsync.prices.engine.rules import InvalidRule
from cardsync.prices.inputs.rule_json import IN_COLUMNS

# A body may have these fields, because a caller may send back a rule that the API returned. They
# are ignored.
_ANSWERED: Final = frozenset({"id", "preset", "created_at", "updated_at", "warnings", "tests"})


if TYPE_CHECKING:
    BuyRuleFields: TypeAlias = msgspec.Struct
    _Shown: TypeAlias = msgspec.Struct
else:
    BuyRuleFields = declared_fields.body_struct(
        "BuyRuleFields", BuyRule, "id", "broken", forbid_unknown_fields=True
    )
    _Shown = declared_fields.answer_struct("_Shown", BuyRule, "broken")


def read_buy_rule(body: Mapping[str, object], base: BuyRule) -> BuyRule:
    """Return the rule `base` with the fields of the body. Raises InvalidRule."""
    given = {name: value for name, value in body.items() if name not in _ANSWERED}
    found = read(given, BuyRuleFields, refusal=errors.InvalidRule)
    try:
        return replace(base, **declared_fields.values_of(found))
    except InvalidRule as e:
        raise errors.InvalidRule(str(e)) from e


class BuyRuleShown(_Shown, kw_only=True):
    """A buy rule. Money is in dollars, percentages are whole basis points. `conditions` has each
    condition's share of a Near Mint copy's price; a missing condition is not bought.
    """

    preset: str | None
    created_at: datetime
    updated_at: datetime
    warnings: list[str]


def buy_rule_body(row: StoredBuyRule, warnings: list[str]) -> BuyRuleShown:
    own = {name: getattr(row, name) for name in ("preset", "created_at", "updated_at")}
    body = declared_fields.to_json(buy_rule_of(row)) | own | {"warnings": warnings}
    return msgspec.convert(body, BuyRuleShown)


def columns_of(rule: BuyRule) -> dict[str, object]:
    """Return the values of a rule's columns, without IDs and times."""
    fields: dict[str, object] = msgspec.to_builtins(rule)
    columns = {name: fields.pop(name) for name in IN_COLUMNS}
    columns.pop("id")
    fields.pop("broken")
    return columns | {"settings": fields}


def buy_rule_of(row: StoredBuyRule) -> BuyRule:
    fields = {name: getattr(row, name) for name in IN_COLUMNS}
    return msgspec.convert({**row.settings, **fields}, BuyRule)
