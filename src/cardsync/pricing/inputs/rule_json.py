"""Reads rules, sales and settings from JSON into the engine's objects, and writes them back. Pure.

`errors.InvalidRule` names a field that the body may not have, or a field with a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any, Final, TypeVar

from cardsync import errors
from cardsync.clock import read_moment, rfc3339
from cardsync.limits import (
    RULE_NAME_CHARACTERS,
    RULE_PRIORITY,
    SALE_CUT_MOST_BP,
    SEARCH_CHARACTERS,
)
from cardsync.money import MAX_UNITS, dollars
from cardsync.pricing.engine.rules import (
    Cap,
    InvalidRule,
    MarketGate,
    ReviewLimits,
    Rule,
    Sale,
    SmallCap,
    Stale,
)

T = TypeVar("T")
Reader = Callable[[Any, str], Any]
# No amount is longer than this; a longer text is not read.
_AMOUNT_CHARACTERS: Final = 40
# A body may hold these fields because an answer held them, but no client sets them; `confirm` says
# that a member saw the figures.
_TOLD: Final = frozenset({"id", "created_at", "updated_at", "warnings", "rule_tests", "confirm"})


def _refuse(field: str, why: str) -> errors.InvalidRule:
    return errors.InvalidRule(f"{field}: {why}")


def read_text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise _refuse(field, "must be a text")
    return value


def read_name(value: Any, field: str) -> str:
    name = read_text(value, field).strip()
    if not name or len(name) > RULE_NAME_CHARACTERS:
        raise _refuse(field, f"must have 1 to {RULE_NAME_CHARACTERS} characters")
    return name


def read_query(value: Any, field: str) -> str:
    query = read_text(value, field).strip()
    if len(query) > SEARCH_CHARACTERS:
        raise _refuse(field, f"must have at most {SEARCH_CHARACTERS} characters")
    return query


def read_whole(value: Any, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**31:
        raise _refuse(field, "must be a whole number")
    return value


def read_sale_cut(value: Any, field: str) -> int:
    cut = read_whole(value, field)
    if not -SALE_CUT_MOST_BP <= cut <= 0:
        raise _refuse(field, f"must be between {-SALE_CUT_MOST_BP} and 0")
    return cut


def read_priority(value: Any, field: str) -> int:
    priority = read_whole(value, field)
    if not 1 <= priority <= RULE_PRIORITY:
        raise _refuse(field, f"must be between 1 and {RULE_PRIORITY}")
    return priority


def read_flag(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise _refuse(field, "must be true or false")
    return value


def read_money(value: Any, field: str) -> int:
    """Return ten-thousandths of a dollar, read from a decimal string or a JSON number."""
    amount = _decimal(value)
    if amount is None:
        raise _refuse(field, 'must be an amount in dollars like "1.25"')
    units = amount.scaleb(4)
    if units != int(units) or abs(units) > MAX_UNITS:
        raise _refuse(field, "must have at most four decimals and eight digits before them")
    return int(units)


def _decimal(value: Any) -> Decimal | None:
    if not isinstance(value, str | Real) or isinstance(value, bool):
        return None
    try:
        written = str(value)
        amount = Decimal(written) if len(written) <= _AMOUNT_CHARACTERS else None
    except (InvalidOperation, ValueError):
        return None
    return (
        amount if amount is not None and amount.is_finite() and "e" not in written.lower() else None
    )


def read_time(value: Any, field: str) -> datetime:
    moment = read_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise _refuse(field, "must be a time like 2026-11-21T08:00:00Z")
    return moment


def maybe(read: Reader) -> Reader:
    return lambda value, field: None if value is None else read(value, field)


def _sources(value: Any, field: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _refuse(field, "must be a list of price sources")
    return tuple(read_text(source, field) for source in value)


def _nested(kind: type[T], readers: Mapping[str, Reader], defaults: Mapping[str, Any]) -> Reader:
    def read(value: Any, field: str) -> T:
        if not isinstance(value, dict):
            raise _refuse(field, "must be an object")
        given = _fields(value, readers, f"{field}.")
        for name in readers.keys() - given.keys() - defaults.keys():
            raise _refuse(f"{field}.{name}", "is missing")
        return _built(kind, {**defaults, **given})

    return read


def _fields(
    body: Mapping[str, Any],
    readers: Mapping[str, Reader],
    prefix: str = "",
) -> dict[str, Any]:
    for name in body:
        if name not in readers:
            raise _refuse(f"{prefix}{name}", "is not a field")
    return {name: readers[name](value, f"{prefix}{name}") for name, value in body.items()}


def _built(kind: Callable[..., T], values: Mapping[str, Any]) -> T:
    try:
        return kind(**values)
    except InvalidRule as e:
        raise errors.InvalidRule(str(e)) from e


_SMALL: Final = _nested(
    SmallCap,
    {
        "below": read_money,
        "up_bp": maybe(read_whole),
        "down_bp": maybe(read_whole),
    },
    {"up_bp": None, "down_bp": None},
)
_CAP: Final[dict[str, Reader]] = {
    "up_bp": maybe(read_whole),
    "down_bp": maybe(read_whole),
    "period": read_text,
    "mode": read_text,
    "small": maybe(_SMALL),
}
_STALE: Final[dict[str, Reader]] = dict.fromkeys(
    ("after_days", "step_bp", "every_days", "limit_bp"),
    read_whole,
)
_GATE: Final[dict[str, Reader]] = dict.fromkeys(
    ("min_listings", "min_sales_30d", "max_age_hours", "undercut_bp"),
    read_whole,
)
_REVIEW: Final[dict[str, Reader]] = {
    "up_bp": maybe(read_whole),
    "down_bp": maybe(read_whole),
    "first_price": read_flag,
}
RULE_FIELDS: Final[dict[str, Reader]] = {
    "name": read_name,
    "priority": read_priority,
    "enabled": read_flag,
    "state": read_text,
    "query": read_query,
    "price_source": read_text,
    "fallback_sources": _sources,
    "adjust_bp": read_whole,
    "adjust_amount": read_money,
    "floor": maybe(read_money),
    "ceiling": maybe(read_money),
    "never_lower": read_flag,
    "stale": maybe(_nested(Stale, _STALE, {})),
    "velocity_boost_enabled": read_flag,
    "cap": maybe(
        _nested(
            Cap,
            _CAP,
            {
                "up_bp": None,
                "down_bp": None,
                "period": "day",
                "mode": "clamp",
                "small": None,
            },
        )
    ),
    "market_gate": maybe(_nested(MarketGate, _GATE, {})),
    "undercut_up_bp": maybe(read_whole),
    "fee_gap_adjustment": read_flag,
    "rounding": read_text,
    "review": maybe(
        _nested(ReviewLimits, _REVIEW, {"up_bp": None, "down_bp": None, "first_price": False})
    ),
    "holdout_bp": maybe(read_whole),
}
SALE_FIELDS: Final[dict[str, Reader]] = {
    "name": read_name,
    "priority": read_priority,
    "enabled": read_flag,
    "query": read_query,
    "adjust_bp": read_sale_cut,
    "starts_at": read_time,
    "ends_at": read_time,
    "floor": maybe(read_money),
}


def read_body(body: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    return _fields({name: value for name, value in body.items() if name not in _TOLD}, readers)


def rule_from(values: Mapping[str, Any], base: Rule) -> Rule:
    return _built(lambda **changed: replace(base, **changed), values)


def sale_from(values: Mapping[str, Any], base: Sale | None, priority: int) -> Sale:
    if base is not None:
        return _built(lambda **changed: replace(base, **changed), values)
    for name in ("name", "adjust_bp", "starts_at", "ends_at"):
        if name not in values:
            raise _refuse(name, "is missing")
    return _built(Sale, {"id": 0, "priority": priority, **values})


_Part = Cap | SmallCap | Stale | MarketGate | ReviewLimits
_MONEY: Final = frozenset({"adjust_amount", "floor", "ceiling", "below"})


def told(thing: Rule | Sale | _Part) -> dict[str, Any]:
    """Return the object in its form on the wire; this is the inverse of reading it."""
    return {
        field.name: _told(field.name, getattr(thing, field.name))
        for field in fields(thing)
        if field.name != "broken"
    }


def _told(name: str, value: Any) -> Any:
    if name in _MONEY and value is not None:
        return f"-{dollars(-value)}" if value < 0 else dollars(value)
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, tuple):
        return list(value)
    return told(value) if isinstance(value, _Part) else value
