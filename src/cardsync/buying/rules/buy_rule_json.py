"""Converts buy rules from JSON and from rows into the engine's objects, and back. Pure.

`errors.InvalidRule` names a field that the body may not have, or a field with a wrong value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.buying.engine.buy_rules import (
    Band,
    Base,
    Budget,
    BulkPrice,
    BuyRule,
    Grade,
    ListStep,
    Step,
)
from cardsync.buying.rules.models import StoredBuyRule
from cardsync.platform import errors
from cardsync.platform.described import Like
from cardsync.platform.money import dollars, dollars_or_none
from cardsync.platform.read_json import Id, ReadBy, given_fields, read
from cardsync.prices.engine.rules import InvalidRule, RuleState
from cardsync.prices.inputs.rule_json import Money, Name, Priority, Query, Whole

_COLUMNS: Final = ("id", "name", "priority", "enabled", "state", "query")
# A body may have these fields because answers have them.
_ANSWERED: Final = frozenset({"id", "preset", "created_at", "updated_at", "warnings", "tests"})


def _short(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 100:
        raise ValueError("must be a text of at most 100 characters")
    return value.strip()


Short = ReadBy[str, _short, Like(Annotated[str, msgspec.Meta(max_length=100)])]


class BandFields(msgspec.Struct, forbid_unknown_fields=True):
    start: Money = msgspec.field(name="from")
    """From this price on, in USD"""
    cash_bp: Whole
    credit_bp: Whole


class BulkFields(msgspec.Struct, forbid_unknown_fields=True):
    cash: Money
    credit: Money
    rarity: Short = ""
    """The code of the rarity; empty: any"""
    game: Short = ""
    """The product line; empty: any"""


class StepFields(msgspec.Struct, forbid_unknown_fields=True):
    start: Whole = msgspec.field(name="from")
    """From so many copies, or days, on"""
    less_bp: Whole


class ListFields(msgspec.Struct, forbid_unknown_fields=True):
    list_id: Id
    change_bp: Whole
    name: Short = ""


class BudgetFields(msgspec.Struct, forbid_unknown_fields=True):
    offer_cash: Money | None = None
    offer_credit: Money | None = None
    day_cash: Money | None = None
    day_credit: Money | None = None


class BuyRuleFields(msgspec.Struct, forbid_unknown_fields=True):
    name: Name | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    state: RuleState | UnsetType = UNSET
    """draft or published"""
    query: Query | UnsetType = UNSET
    base: Base | UnsetType = UNSET
    bands: list[BandFields] | UnsetType = UNSET
    conditions: dict[Grade, Whole] | UnsetType = UNSET
    """The share of a Near Mint price that each condition counts, in basis points"""
    bulk_below: Money | UnsetType | None = UNSET
    bulk: list[BulkFields] | UnsetType = UNSET
    most_copies: Whole | UnsetType | None = UNSET
    stock_steps: list[StepFields] | UnsetType = UNSET
    days_steps: list[StepFields] | UnsetType = UNSET
    lists: list[ListFields] | UnsetType = UNSET
    """How being on a list changes what is paid"""
    budget: BudgetFields | UnsetType = UNSET


_PARTS: Final[Mapping[type, type]] = {
    BandFields: Band,
    BulkFields: BulkPrice,
    StepFields: Step,
    ListFields: ListStep,
    BudgetFields: Budget,
}


def read_buy_rule(body: Mapping[str, Any], base: BuyRule) -> BuyRule:
    """Return the rule with the fields of the body. Raises InvalidRule."""
    given = {name: value for name, value in body.items() if name not in _ANSWERED}
    found = given_fields(read(given, BuyRuleFields, refusal=errors.InvalidRule))
    try:
        values = {name: _engine_value(value) for name, value in found.items()}
        return replace(base, **values)
    except InvalidRule as e:
        raise errors.InvalidRule(str(e)) from e


def _engine_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_engine_value(one) for one in value)
    if isinstance(value, dict):
        return tuple(value.items())
    kind = _PARTS.get(type(value))
    return value if kind is None else kind(**msgspec.structs.asdict(value))


class BandShown(msgspec.Struct):
    start: str = msgspec.field(name="from")
    """From this price on, in USD"""
    cash_bp: int
    credit_bp: int


class BulkShown(msgspec.Struct):
    cash: str
    credit: str
    rarity: str
    """The code of the rarity; empty: any"""
    game: str
    """The product line; empty: any"""


class StepShown(msgspec.Struct):
    start: int = msgspec.field(name="from")
    """From so many copies, or days, on"""
    less_bp: int


class ListShown(msgspec.Struct):
    list_id: int
    change_bp: int
    name: str


class BudgetShown(msgspec.Struct):
    offer_cash: str | None
    offer_credit: str | None
    day_cash: str | None
    day_credit: str | None


class BuyRuleShown(msgspec.Struct):
    """Money is in dollars, percentages are whole basis points. `conditions` says which share of a
    Near Mint copy's price each condition counts; one that is missing is not bought.
    """

    id: int
    name: str
    priority: int
    enabled: bool
    state: RuleState
    """draft or published"""
    preset: str | None
    query: str
    base: Base
    bands: list[BandShown]
    conditions: dict[str, int]
    """The share of a Near Mint price that each condition counts, in basis points"""
    bulk_below: str | None
    bulk: list[BulkShown]
    most_copies: int | None
    stock_steps: list[StepShown]
    days_steps: list[StepShown]
    lists: list[ListShown]
    """How being on a list changes what is paid"""
    budget: BudgetShown
    created_at: datetime
    updated_at: datetime
    warnings: list[str]


def buy_rule_body(row: StoredBuyRule, warnings: list[str]) -> BuyRuleShown:
    rule = buy_rule_of(row)
    budget = rule.budget
    return BuyRuleShown(
        row.id,
        row.name,
        row.priority,
        row.enabled,
        row.state,
        row.preset,
        row.query,
        rule.base,
        [BandShown(dollars(one.start), one.cash_bp, one.credit_bp) for one in rule.bands],
        dict(rule.conditions),
        dollars_or_none(rule.bulk_below),
        [_bulk(one) for one in rule.bulk],
        rule.most_copies,
        [StepShown(one.start, one.less_bp) for one in rule.stock_steps],
        [StepShown(one.start, one.less_bp) for one in rule.days_steps],
        [ListShown(one.list_id, one.change_bp, one.name) for one in rule.lists],
        BudgetShown(
            dollars_or_none(budget.offer_cash),
            dollars_or_none(budget.offer_credit),
            dollars_or_none(budget.day_cash),
            dollars_or_none(budget.day_credit),
        ),
        row.created_at,
        row.updated_at,
        warnings,
    )


def _bulk(price: BulkPrice) -> BulkShown:
    return BulkShown(dollars(price.cash), dollars(price.credit), price.rarity, price.game)


def columns_of(rule: BuyRule) -> dict[str, Any]:
    """Return the values of a rule's row without its IDs and times."""
    fields: dict[str, Any] = msgspec.to_builtins(rule)
    columns = {name: fields.pop(name) for name in _COLUMNS}
    columns.pop("id")
    fields.pop("broken")
    return columns | {"settings": fields}


def buy_rule_of(row: StoredBuyRule) -> BuyRule:
    fields = {name: getattr(row, name) for name in _COLUMNS}
    return msgspec.convert({**row.settings, **fields}, BuyRule)
