"""Reads rules, sales and settings from JSON into the engine's objects, and writes them back. Pure.

`errors.InvalidRule` names a field that the body may not have, or a field with a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.platform import errors
from cardsync.platform.clock import read_moment, rfc3339
from cardsync.platform.described import Dollars, Like
from cardsync.platform.limits import RULE_NAME_CHARACTERS, SALE_CUT_MOST_BP, SEARCH_CHARACTERS
from cardsync.platform.money import dollars, read_amount, to_units
from cardsync.platform.read_json import ReadBy, given_fields, read
from cardsync.prices.engine.rules import (
    Cap,
    CapMode,
    CapPeriod,
    InvalidRule,
    MarketGate,
    PriceSource,
    ReviewLimits,
    Rounding,
    Rule,
    RuleState,
    Sale,
    SmallCap,
    Stale,
    check_guard,
)
from cardsync.prices.limits import RULE_PRIORITY

T = TypeVar("T")
# A body may hold these fields because an answer held them, but no client sets them; `confirm` says
# that a member saw the figures.
_ANSWERED: Final = frozenset(
    {"id", "created_at", "updated_at", "warnings", "rule_tests", "confirm"}
)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    return value.strip()


def _name(value: Any) -> str:
    name = _text(value)
    if not name or len(name) > RULE_NAME_CHARACTERS:
        raise ValueError(f"must have 1 to {RULE_NAME_CHARACTERS} characters")
    return name


def _query(value: Any) -> str:
    query = _text(value)
    if len(query) > SEARCH_CHARACTERS:
        raise ValueError(f"must have at most {SEARCH_CHARACTERS} characters")
    return query


def _money(value: Any) -> int:
    """Return ten-thousandths of a dollar, read from a decimal string or a JSON number."""
    return to_units(read_amount(value))


def _time(value: Any) -> datetime:
    moment = read_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise ValueError("must be a time like 2026-11-21T08:00:00Z")
    return moment


Money = ReadBy[int, _money, Like(Dollars)]
Name = ReadBy[
    str, _name, Like(Annotated[str, msgspec.Meta(min_length=1, max_length=RULE_NAME_CHARACTERS)])
]
Query = ReadBy[str, _query, Like(Annotated[str, msgspec.Meta(max_length=SEARCH_CHARACTERS)])]
Time = ReadBy[datetime, _time, Like(datetime)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**31) + 1, le=2**31 - 1, extra={"is": "a whole number"})]
Priority = Annotated[int, msgspec.Meta(ge=1, le=RULE_PRIORITY)]
SaleCut = Annotated[int, msgspec.Meta(ge=-SALE_CUT_MOST_BP, le=0)]


class SmallCapFields(msgspec.Struct, forbid_unknown_fields=True):
    below: Money
    up_bp: Whole | None = None
    down_bp: Whole | None = None


class CapFields(msgspec.Struct, forbid_unknown_fields=True):
    up_bp: Whole | None = None
    down_bp: Whole | None = None
    period: CapPeriod = "day"
    mode: CapMode = "clamp"
    small: SmallCapFields | None = None


class StaleFields(msgspec.Struct, forbid_unknown_fields=True):
    after_days: Whole
    step_bp: Whole
    every_days: Whole
    limit_bp: Whole


class GateFields(msgspec.Struct, forbid_unknown_fields=True):
    min_listings: Whole
    min_sales_30d: Whole
    max_age_hours: Whole
    undercut_bp: Whole


class ReviewFields(msgspec.Struct, forbid_unknown_fields=True):
    up_bp: Whole | None = None
    down_bp: Whole | None = None
    first_price: bool = False


class PriceFields(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that define a rule's price."""

    price_source: PriceSource | UnsetType = UNSET
    fallback_sources: tuple[PriceSource, ...] | UnsetType = UNSET
    adjust_bp: Whole | UnsetType = UNSET
    adjust_amount: Money | UnsetType = UNSET
    floor: Money | UnsetType | None = UNSET
    floor_cost_bp: Whole | UnsetType | None = UNSET
    ceiling: Money | UnsetType | None = UNSET
    never_lower: bool | UnsetType = UNSET
    stale: StaleFields | UnsetType | None = UNSET
    velocity_boost_enabled: bool | UnsetType = UNSET
    cap: CapFields | UnsetType | None = UNSET
    market_gate: GateFields | UnsetType | None = UNSET
    undercut_up_bp: Whole | UnsetType | None = UNSET
    fee_gap_adjustment: bool | UnsetType = UNSET
    rounding: Rounding | UnsetType = UNSET
    review: ReviewFields | UnsetType | None = UNSET
    holdout_bp: Whole | UnsetType | None = UNSET
    guard: bool | UnsetType = UNSET
    """It prices no card: its floors and ceiling hold beside the rule that does"""


class RuleFields(PriceFields):
    name: Name | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    state: RuleState | UnsetType = UNSET
    """draft or published"""
    query: Query | UnsetType = UNSET


class SaleFields(msgspec.Struct, forbid_unknown_fields=True):
    name: Name | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    query: Query | UnsetType = UNSET
    adjust_bp: SaleCut | UnsetType = UNSET
    starts_at: Time | UnsetType = UNSET
    ends_at: Time | UnsetType = UNSET
    floor: Money | UnsetType | None = UNSET
    floor_cost_bp: Whole | UnsetType | None = UNSET
    """No price below the cost and so much more, in basis points, where the cost is known"""
    keep_never_lower: bool | UnsetType = UNSET
    """Prices that their rule never lowers stay as they are"""


# A body that changes a rule is parsed once the rule is known.
RuleBody = Annotated[dict[str, Any], Like(RuleFields)]
SALE_NEEDS: Final = ("name", "adjust_bp", "starts_at", "ends_at")
SaleBody = Annotated[dict[str, Any], Like(SaleFields, *SALE_NEEDS)]
_Part = Cap | SmallCap | Stale | MarketGate | ReviewLimits
_PARTS: Final[Mapping[type, Callable[..., _Part]]] = {
    SmallCapFields: SmallCap,
    CapFields: Cap,
    StaleFields: Stale,
    GateFields: MarketGate,
    ReviewFields: ReviewLimits,
}


def read_body(body: Mapping[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields that a body has. Raises InvalidRule."""
    given = {name: value for name, value in body.items() if name not in _ANSWERED}
    found = given_fields(read(given, shape, refusal=errors.InvalidRule))
    return {name: _part(value) for name, value in found.items()}


def _part(value: Any) -> Any:
    """Return the engine's object of a part of a rule, and anything else as it is."""
    kind = _PARTS.get(type(value))
    if kind is None:
        return value
    return _built(kind, {name: _part(each) for name, each in given_fields(value).items()})


def _built(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    try:
        return kind(**values)
    except InvalidRule as e:
        raise errors.InvalidRule(str(e)) from e


def rule_from(values: Mapping[str, Any], base: Rule) -> Rule:
    return _built(lambda **changed: replace(base, **changed), values)


def need_sound(rule: Rule) -> Rule:
    """Return the rule. Raises InvalidRule for a guard with a price, or without a limit."""
    if rule.guard:
        _built(lambda: check_guard(rule), {})
    return rule


def sale_from(values: Mapping[str, Any], base: Sale | None, priority: int) -> Sale:
    if base is not None:
        return _built(lambda **changed: replace(base, **changed), values)
    for name in SALE_NEEDS:
        if name not in values:
            raise errors.InvalidRule(f"{name}: is missing")
    return _built(Sale, {"id": 0, "priority": priority, **values})


_MONEY: Final = frozenset({"adjust_amount", "floor", "ceiling", "below"})


def to_json(thing: Rule | Sale | _Part) -> dict[str, Any]:
    """Return the object in its form on the wire; this is the inverse of reading it."""
    return {
        field.name: _value_json(field.name, getattr(thing, field.name))
        for field in fields(thing)
        # Only a guard names its kind.
        if field.name != "broken" and (field.name != "guard" or getattr(thing, field.name))
    }


def _value_json(name: str, value: Any) -> Any:
    if name in _MONEY and value is not None:
        return f"-{dollars(-value)}" if value < 0 else dollars(value)
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, tuple):
        return list(value)
    return to_json(value) if isinstance(value, _Part) else value
