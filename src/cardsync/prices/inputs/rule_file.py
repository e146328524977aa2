"""Reads and writes whole sets of rules and sales as request bodies and files. Pure.

`errors.InvalidRule` names the refused entry and field. A file combines the answers of `GET
/api/pricing/rules`, `/sales` and `/settings`: `{"rules": […], "sales": […], "settings": {…}}`. Only
`rules` is required.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.platform import errors
from cardsync.platform.declared_fields import body_struct, declared, to_json
from cardsync.platform.limits import DEFAULT_PRIORITY, RULES
from cardsync.platform.value_types import Json
from cardsync.prices.engine.rules import InvalidRule, Rule, Sale
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs import rule_json as wire
from cardsync.prices.limits import GUARDS

T = TypeVar("T")
RecommendationMode = Literal["review", "automatic"]


# These settings of `SellerPricing` are not part of a rule file.
SET_APART: Final = ("automatic_pricing_paused", "awaiting_review", "tracking_threshold")
SETTING_NAMES: Final = tuple(
    one.name for one in declared(SellerPricing) if one.name not in SET_APART
)
if TYPE_CHECKING:
    _Settings: TypeAlias = msgspec.Struct
else:
    _Settings = body_struct("_Settings", SellerPricing, *SET_APART)


class SettingFields(_Settings, forbid_unknown_fields=True):
    attribution_logging: bool | UnsetType = UNSET
    recommendations: RecommendationMode | UnsetType = UNSET


# Marks an omitted priority until all entries are read; no body may contain this value.
UNPLACED: Final = 0
MONEY_SETTINGS: Final = frozenset(one.name for one in declared(SellerPricing) if one.field.money)
# No rule's price depends on these settings: whether receipts are stored, and whether
# recommendations wait for a person or are applied automatically.
NO_PRICING: Final = frozenset({"attribution_logging", "recommendations"})


def read_rules(given: object, *, drafts: bool = False) -> list[Rule]:
    """Return the rules in their order, all as published. With `drafts`, each rule keeps its state,
    and a rule without a state is published.
    """

    def read(body: Mapping[str, object], place: int) -> Rule:
        values = {"name": f"rule {place + 1}", "priority": UNPLACED, "state": "published"}
        values |= wire.read_body(body, wire.RuleFields)
        if not drafts:
            values["state"] = "published"
        rule = wire.rule_from(values | {"id": _id(body, place)}, Rule(id=0, name="", priority=1))
        return wire.need_sound(rule)

    return _placed(_each(given, "rules", read))


def _placed(rules: Sequence[Rule]) -> list[Rule]:
    """Place each rule without a priority directly behind the rule before it, and before the default
    rule, as a posted rule without a priority is placed.
    """
    _need_own_priorities(rules)
    order: dict[tuple[int, int], int] = {}
    behind = 0
    for place, rule in enumerate(rules):
        behind = rule.priority or min(behind, DEFAULT_PRIORITY - 1)
        order[behind, 0 if rule.priority else place + 1] = place
    before = [
        place for (priority, _), place in sorted(order.items()) if priority < DEFAULT_PRIORITY
    ]
    last = 0
    priorities = {}
    for place in before:
        priorities[place] = last = max(rules[place].priority, last + 1)
    if last >= DEFAULT_PRIORITY:
        # No priority is free before the default rule, so the rules before it are renumbered from 1.
        priorities = {place: new for new, place in enumerate(before, start=1)}
    return [
        replace(rule, priority=priorities.get(place, rule.priority))
        for place, rule in enumerate(rules)
    ]


def _need_own_priorities(rules: Sequence[Rule]) -> None:
    holders: dict[int, int] = {}
    for place, rule in enumerate(rules):
        holder = holders.setdefault(rule.priority, place)
        if rule.priority != UNPLACED and holder != place:
            raise errors.InvalidRule(
                f"rules[{place}].priority: {rule.priority} is already used by rules[{holder}]"
            )


def read_sales(given: object) -> list[Sale]:
    """Return the sales; sales without a priority are placed after all other sales, in their order,
    as posted sales are.
    """

    def read(body: Mapping[str, object], place: int) -> Sale:
        values = {"name": f"promotion {place + 1}"} | wire.read_body(body, wire.SaleFields)
        return wire.sale_from(
            values | {"id": _id(body, place)},
            None,
            UNPLACED,
        )

    sales = _each(given, "sales", read)
    behind = itertools.count(max((sale.priority for sale in sales), default=0) + 1)
    return [
        replace(sale, priority=next(behind)) if sale.priority == UNPLACED else sale
        for sale in sales
    ]


def _each(given: object, name: str, read: Callable[[Mapping[str, object], int], T]) -> list[T]:
    if (
        not isinstance(given, list)
        or not all(isinstance(entry, dict) for entry in given)
        or len(given) > RULES
    ):
        raise errors.InvalidRule(f"{name}: must be a list of at most {RULES} objects")
    found: list[T] = []
    for place, entry in enumerate(given):
        try:
            found.append(read(entry, place))
        except errors.InvalidRule as e:
            raise errors.InvalidRule(f"{name}[{place}].{e}") from e
    if sum(getattr(thing, "guard", False) for thing in found) > GUARDS:
        raise errors.InvalidRule(f"{name}: at most {GUARDS} may be guards")
    if len({getattr(thing, "id") for thing in found}) != len(found):  # noqa: B009
        raise errors.InvalidRule(f"{name}: two have the same ID")
    return found


def _id(body: Mapping[str, object], place: int) -> int:
    """Return the entry's id. An entry without an id, a draft that was never saved, gets a negative
    id, which no saved rule has.
    """
    given = body.get("id")
    return (
        given
        if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 2**63
        else -(place + 1)
    )


@dataclass(frozen=True)
class RuleSet:
    """A seller's rules, sales and settings: everything except pins that determines the prices."""

    rules: Sequence[Rule]
    sales: Sequence[Sale] = ()
    seller: SellerPricing = field(default_factory=SellerPricing)


def read_rule_set(text: str) -> RuleSet:
    """Read a rule file, or a JSON list of rules. Raise InvalidRule."""
    try:
        # Amounts are read as text, so that they never become floats.
        body = json.loads(text, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as e:
        raise errors.InvalidRule(f"line {e.lineno}: this is not valid JSON: {e.msg}") from e
    except (RecursionError, ValueError) as e:
        raise errors.InvalidRule("this nests too deep, or has a number that is too long") from e
    if isinstance(body, list):
        body = {"rules": body}
    if not isinstance(body, dict) or "rules" not in body:
        raise errors.InvalidRule("rules: is missing")
    for name in body.keys() - {"rules", "sales", "settings"}:
        raise errors.InvalidRule(f"{name}: is not a field")
    rules = read_rules(body["rules"], drafts=True)
    return RuleSet(
        rules,
        read_sales(body.get("sales") or []),
        _settings(body.get("settings") or {}),
    )


def _settings(body: Json) -> SellerPricing:
    if not isinstance(body, dict):
        raise errors.InvalidRule("settings: must be an object")
    try:
        values = wire.read_body(body, SettingFields)
        return replace(
            SellerPricing(), **{name: v for name, v in values.items() if name not in NO_PRICING}
        )
    except (errors.InvalidRule, InvalidRule) as e:
        raise errors.InvalidRule(f"settings.{e}") from e


def rule_set_text(given: RuleSet) -> str:
    """Return the text of a rule file, from which `read_rule_set` reads the same set."""
    settings = to_json(given.seller)
    body = {
        "rules": [_entry(rule) for rule in given.rules],
        "sales": [_entry(sale) for sale in given.sales],
        "settings": {name: settings[name] for name in SETTING_NAMES},
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _entry(thing: Rule | Sale) -> dict[str, object]:
    values_json = wire.to_json(thing)
    # The rule of a preset has the id 0 until it is saved; the file omits it.
    return (
        values_json
        if thing.id
        else {name: value for name, value in values_json.items() if name != "id"}
    )
