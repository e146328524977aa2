"""Whole sets of rules and sales as they stand in a body or in a file: JSON values in, objects that hold out, and back. Pure.

`errors.InvalidRule` names the entry and the field that may not be so. A file is what `GET /api/pricing/rules`, `/sales` and `/settings`
answer, put together: `{"rules": […], "sales": […], "settings": {…}}`, of which all but the rules may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, TypeVar

from cardsync import errors
from cardsync.limits import RULES
from cardsync.money import dollars
from cardsync.pricing import wire
from cardsync.pricing.rules import InvalidRule, Rule, Sale, SellerPricing

T = TypeVar("T")
SETTING_FIELDS: Final[dict[str, wire.Reader]] = {
    "direct_minimum": wire.read_money,
    "direct_program": wire.read_flag,
    "default_rule_enabled": wire.read_flag,
    "minimum_move": wire.read_money,
    "attribution_logging": wire.read_flag,
    "max_age_hours": wire.read_whole,
    "fee_level": wire.read_text,
}
_MONEY: Final = ("direct_minimum", "minimum_move")
# Says whether receipts are kept: no price depends on it.
_NO_PRICING: Final = frozenset({"attribution_logging"})


def read_rules(given: Any, *, drafts: bool = False) -> list[Rule]:
    """In their order, published whatever they say; with `drafts`, as they say, and published if they say nothing."""

    def read(body: Mapping[str, Any], place: int) -> Rule:
        values = {"name": f"rule {place + 1}", "priority": place + 1, "state": "published"}
        values |= wire.read_body(body, wire.RULE_FIELDS)
        if not drafts:
            values["state"] = "published"
        return wire.rule_from(values | {"id": _id(body, place)}, Rule(id=0, name="", priority=1))

    return _each(given, "rules", read)


def read_sales(given: Any) -> list[Sale]:
    def read(body: Mapping[str, Any], place: int) -> Sale:
        values = {"name": f"sale {place + 1}"} | wire.read_body(body, wire.SALE_FIELDS)
        return wire.sale_from(values | {"id": _id(body, place)}, None, place + 1)

    return _each(given, "sales", read)


def _each(given: Any, name: str, read: Callable[[Mapping[str, Any], int], T]) -> list[T]:
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given) or len(given) > RULES:
        raise errors.InvalidRule(f"{name}: must be a list of at most {RULES} objects")
    found: list[T] = []
    for place, entry in enumerate(given):
        try:
            found.append(read(entry, place))
        except errors.InvalidRule as e:
            raise errors.InvalidRule(f"{name}[{place}].{e}") from e
    if len({getattr(thing, "id") for thing in found}) != len(found):  # noqa: B009
        raise errors.InvalidRule(f"{name}: two have the same id")
    return found


def _id(body: Mapping[str, Any], place: int) -> int:
    """A draft that was never saved has none; it gets one that no saved rule has."""
    given = body.get("id")
    return given if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 2**63 else -(place + 1)


@dataclass(frozen=True)
class RuleSet:
    """Everything that a seller sets and that decides prices, pins aside."""

    rules: Sequence[Rule]
    sales: Sequence[Sale] = ()
    seller: SellerPricing = field(default_factory=SellerPricing)


def read_rule_set(text: str) -> RuleSet:
    """A file of rules, or a bare list of them. Raises InvalidRule."""
    try:
        # Amounts never become floats.
        body = json.loads(text, parse_float=str)
    except json.JSONDecodeError as e:
        raise errors.InvalidRule(f"line {e.lineno}: this is no JSON: {e.msg}") from e
    if isinstance(body, list):
        body = {"rules": body}
    if not isinstance(body, dict) or "rules" not in body:
        raise errors.InvalidRule("rules: is missing")
    for name in body.keys() - {"rules", "sales", "settings"}:
        raise errors.InvalidRule(f"{name}: is not a field")
    rules = read_rules(body["rules"], drafts=True)
    return RuleSet(rules, read_sales(body.get("sales") or []), _settings(body.get("settings") or {}))


def _settings(body: Any) -> SellerPricing:
    if not isinstance(body, dict):
        raise errors.InvalidRule("settings: must be an object")
    try:
        values = wire.read_body(body, SETTING_FIELDS)
        return replace(SellerPricing(), **{name: v for name, v in values.items() if name not in _NO_PRICING})
    except (errors.InvalidRule, InvalidRule) as e:
        raise errors.InvalidRule(f"settings.{e}") from e


def told_rule_set(given: RuleSet) -> str:
    """The file's text; `read_rule_set` reads the same from it."""
    settings = {setting.name: getattr(given.seller, setting.name) for setting in fields(SellerPricing)}
    body = {
        "rules": [_told(rule) for rule in given.rules],
        "sales": [_told(sale) for sale in given.sales],
        "settings": {
            name: dollars(value) if name in _MONEY else value
            for name, value in settings.items()
            if name in SETTING_FIELDS
        },
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _told(thing: Rule | Sale) -> dict[str, Any]:
    told = wire.told(thing)
    # A preset that was never saved has no id.
    return told if thing.id else {name: value for name, value in told.items() if name != "id"}
