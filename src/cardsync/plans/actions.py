"""Reads the JSON of a plan into typed changes, each with its place in the body. Pure.

A plan of unknown or ill-typed actions is refused before anything is looked at, and so is a matrix
of prices that enables or disables a rule beside too many other actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast, get_args

import msgspec

from cardsync import errors, limits
from cardsync.cards.bulk_selection import Selection

ActionType = Literal["pricing.change_set", "pricing.pins", "lists.change_set"]
OwnType = Literal[
    "pricing.sales",
    "pricing.preset",
    "pricing.settings",
    "pricing.pin_many",
    "pricing.reprice",
    "pricing.rollback",
    "quick_add.publish",
]
"""Actions of writes outside plans: they become plans where they need a member's click."""
RuleOp = Literal["create", "update", "enable", "disable", "delete", "reorder"]
ListOp = Literal["create", "rename", "delete", "add", "remove"]
ACTION_TYPES: Final[tuple[ActionType, ...]] = get_args(ActionType)
_SELECTS: Final = frozenset(Selection.__struct_fields__)


@dataclass(frozen=True, slots=True)
class RuleChange:
    """`scope` is the search of the cards that the change concerns; without it, the rule's own."""

    place: str
    op: RuleOp
    rule_id: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    scope: str | None = None
    type: ActionType = "pricing.change_set"

    @property
    def is_transition(self) -> bool:
        """Return whether the change enables or disables a rule."""
        return self.op in ("enable", "disable") or (
            self.op == "update" and "enabled" in self.values
        )


@dataclass(frozen=True, slots=True)
class PinChange:
    """`price` is as it was sent; None removes the pin."""

    place: str
    op: Literal["set", "remove"]
    marketplace_id: int
    price: Any = None
    type: ActionType = "pricing.pins"


@dataclass(frozen=True, slots=True)
class ListChange:
    """A list is named by its id or, also if this plan creates it, by its name."""

    place: str
    op: ListOp
    list_id: int | None = None
    name: Any = None
    selection: Selection | None = None
    type: ActionType = "lists.change_set"


@dataclass(frozen=True, slots=True)
class OwnChange:
    """An action of a write outside plans, with the body that it was sent with."""

    place: str
    type: OwnType
    op: str
    body: Mapping[str, Any]


Change = RuleChange | PinChange | ListChange | OwnChange


@dataclass(frozen=True, slots=True)
class Actions:
    """The changes, in the order in which they are carried out."""

    changes: tuple[Change, ...]
    types: frozenset[ActionType]

    @property
    def rules(self) -> list[RuleChange]:
        return [change for change in self.changes if isinstance(change, RuleChange)]

    @property
    def pins(self) -> list[PinChange]:
        return [change for change in self.changes if isinstance(change, PinChange)]

    @property
    def lists(self) -> list[ListChange]:
        return [change for change in self.changes if isinstance(change, ListChange)]

    @property
    def own(self) -> list[OwnChange]:
        return [change for change in self.changes if isinstance(change, OwnChange)]


def kept_actions(actions: Any) -> Actions:
    """Read the actions of a kept plan, which may be a write outside plans."""
    changes: list[Change] = []
    plain = []
    for place, action in enumerate(actions):
        if action["type"] in get_args(OwnType):
            where = f"actions[{place}]"
            changes.append(OwnChange(where, action["type"], action["op"], action))
        else:
            plain.append(action)
    if not plain:
        return Actions(tuple(changes), frozenset())
    read = read_actions(plain)
    return Actions((*read.changes, *changes), read.types)


def read_actions(actions: Any) -> Actions:
    """Raises InvalidPayload or TransitionMatrixTooLarge."""
    given = _list(actions, "actions", limits.PLAN_ACTIONS)
    if not given:
        raise _refuse("actions", "must hold at least one action")
    changes: list[Change] = []
    types: set[ActionType] = set()
    priced = 0
    for place, action in enumerate(given):
        where = f"actions[{place}]"
        body = _object(action, where)
        kind = body.get("type")
        if kind not in ACTION_TYPES:
            raise _refuse(f"{where}.type", f"must be one of {', '.join(ACTION_TYPES)}")
        found = _READERS[cast(ActionType, kind)](body, where)
        if not found:
            raise _refuse(where, "must change something")
        changes += found
        types.add(cast(ActionType, kind))
        priced += {"pricing.change_set": len(found), "pricing.pins": 1}.get(str(kind), 0)
    read = Actions(tuple(changes), frozenset(types))
    if priced > limits.TRANSITION_ACTIONS and any(change.is_transition for change in read.rules):
        raise errors.TransitionMatrixTooLarge(
            f"the plan enables or disables a rule and has {priced} pricing actions: send at most"
            f" {limits.TRANSITION_ACTIONS}, and the others in another plan"
        )
    return read


def _refuse(place: str, why: str) -> errors.InvalidPayload:
    return errors.InvalidPayload(f"{place}: {why}")


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refuse(place, "must be an object")
    return value


def _list(value: Any, place: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        raise _refuse(place, "must be a list")
    if len(value) > most:
        raise _refuse(place, f"must hold at most {most}")
    return value


def _id(value: Any, place: str) -> int:
    if type(value) is not int or abs(value) > limits.LARGEST_ID:
        raise _refuse(place, "must be an id")
    return value


def _change_set(body: Mapping[str, Any], where: str) -> list[Change]:
    given = _list(body.get("changes"), f"{where}.changes", limits.PLAN_CHANGES)
    return [
        _rule_change(_object(change, place), place)
        for change, place in ((c, f"{where}.changes[{n}]") for n, c in enumerate(given))
    ]


def _rule_change(body: Mapping[str, Any], place: str) -> RuleChange:
    op = body.get("op")
    if op not in get_args(RuleOp):
        raise _refuse(f"{place}.op", f"must be one of {', '.join(get_args(RuleOp))}")
    values = _object(body.get("set") or {}, f"{place}.set")
    scope = body.get("scope")
    if scope is not None and not isinstance(scope, str):
        raise _refuse(f"{place}.scope", "must be a text")
    if scope is not None and len(scope) > limits.SEARCH_CHARACTERS:
        raise _refuse(f"{place}.scope", f"must have at most {limits.SEARCH_CHARACTERS} characters")
    if op in ("create", "update", "reorder") and not values:
        raise _refuse(f"{place}.set", "is missing")
    if op in ("enable", "disable", "delete") and values:
        raise _refuse(f"{place}.set", f"does not belong to {op}")
    if op == "reorder":
        ids = _list(values.get("ids"), f"{place}.set.ids", limits.RULES)
        values = {"ids": [_id(id, f"{place}.set.ids[{n}]") for n, id in enumerate(ids)]}
    if op in ("create", "reorder"):
        rule_id = None
    else:
        rule_id = _id(body.get("rule_id"), f"{place}.rule_id")
    if op == "create" and scope is not None and "query" not in values:
        values = {**values, "query": scope}
    return RuleChange(place, cast(RuleOp, op), rule_id, values, scope)


def _pins(body: Mapping[str, Any], where: str) -> list[Change]:
    found: list[Change] = []
    given = _list(body.get("set") or [], f"{where}.set", limits.PLAN_PINS)
    for n, pin in enumerate(given):
        place = f"{where}.set[{n}]"
        fields = _object(pin, place)
        id = _id(fields.get("marketplace_id"), f"{place}.marketplace_id")
        found.append(PinChange(place, "set", id, fields.get("price")))
    removed = _list(body.get("remove") or [], f"{where}.remove", limits.PLAN_PINS)
    for n, id in enumerate(removed):
        place = f"{where}.remove[{n}]"
        found.append(PinChange(place, "remove", _id(id, place)))
    named = [pin.marketplace_id for pin in cast("list[PinChange]", found)]
    if len(set(named)) < len(named):
        raise _refuse(where, "must name each card once")
    return found


def _lists(body: Mapping[str, Any], where: str) -> list[Change]:
    found: list[Change] = []
    for op in ("create", "rename", "add", "remove", "delete"):
        given = _list(body.get(op) or [], f"{where}.{op}", limits.PLAN_CHANGES)
        for n, item in enumerate(given):
            found.append(_list_change(op, item, f"{where}.{op}[{n}]"))
    return found


def _list_change(op: ListOp, item: Any, place: str) -> ListChange:
    if op == "delete":
        id = item.get("id") if isinstance(item, dict) else item
        return ListChange(place, op, _id(id, place))
    if op == "create":
        name = item.get("name") if isinstance(item, dict) else item
        return ListChange(place, op, name=name)
    fields = _object(item, place)
    if op == "rename":
        return ListChange(place, op, _id(fields.get("id"), f"{place}.id"), fields.get("name"))
    list_id = None if fields.get("id") is None else _id(fields["id"], f"{place}.id")
    if list_id is None and not isinstance(fields.get("list"), str):
        raise _refuse(place, "must name its list by id, or by list, the list's name")
    selects = {name: value for name, value in fields.items() if name in _SELECTS}
    try:
        selection = msgspec.convert(selects, Selection)
    except msgspec.ValidationError as e:
        raise _refuse(place, str(e)) from e
    return ListChange(place, op, list_id, fields.get("list"), selection)


_READERS: Final[Mapping[ActionType, Callable[[Mapping[str, Any], str], list[Change]]]] = {
    "pricing.change_set": _change_set,
    "pricing.pins": _pins,
    "lists.change_set": _lists,
}
