"""Reads the JSON of a plan into typed changes, each with its place in the body. Pure.

A plan of unknown or ill-typed actions is refused before any data is read. A plan that enables or
disables a rule is also refused if it has too many changes of rules and pins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, cast, get_args

import msgspec

from cardsync.platform import errors, limits
from cardsync.platform.described import Dollars, Like
from cardsync.platform.read_json import Id, read
from cardsync.platform.value_types import Json, JsonMapping, JsonObject
from cardsync.prices.errors import TransitionMatrixTooLarge
from cardsync.prices.inputs.rule_json import RuleFields
from cardsync.prices.limits import PLAN_ACTIONS, PLAN_CHANGES, PLAN_PINS, TRANSITION_ACTIONS
from cardsync.stock.cards.bulk_selection import Selection

ActionType = Literal["pricing.change_set", "pricing.pins", "lists.change_set"]
OwnType = Literal[
    "pricing.sales",
    "pricing.preset",
    "pricing.settings",
    "pricing.pin_many",
    "pricing.reprice",
    "pricing.rollback",
    "quick_add.publish",
    "lots",
]
"""Actions of writes that no plan contains. Such a write becomes a plan if it needs a member's
click.
"""
_IN_RUN: Final = {"pricing.sales", "pricing.preset", "pricing.reprice"}
OF_PINS: Final = ("pricing.pins", "pricing.pin_many")
RuleOp = Literal["create", "update", "enable", "disable", "delete", "reorder"]
ListOp = Literal["create", "rename", "delete", "add", "remove"]
ACTION_TYPES: Final[tuple[ActionType, ...]] = get_args(ActionType)


def kind_of(type: ActionType | OwnType) -> ActionType:
    """Return the kind of action for which an owner sets a permission mode."""
    if type in OF_PINS:
        return "pricing.pins"
    return "lists.change_set" if type == "lists.change_set" else "pricing.change_set"


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change of one rule. `scope` is the search of the affected cards; without `scope`, the
    rule's own search is used.
    """

    place: str
    op: RuleOp
    rule_id: int | None = None
    values: JsonMapping = field(default_factory=dict)
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
    """A change of one pin. `price` is the unparsed price of the request; None removes the pin."""

    place: str
    op: Literal["set", "remove"]
    marketplace_id: int
    price: Json = None
    type: ActionType = "pricing.pins"


@dataclass(frozen=True, slots=True)
class ListChange:
    """A change of one list. The list is named by its id or by its name, even if this plan creates
    the list.
    """

    place: str
    op: ListOp
    list_id: int | None = None
    name: Json = None
    selection: Selection | None = None
    type: ActionType = "lists.change_set"


@dataclass(frozen=True, slots=True)
class OwnChange:
    """An action of a write outside plans, with the body of its request."""

    place: str
    type: OwnType
    op: str
    body: JsonMapping


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
    def are_in_run(self) -> bool:
        """Return whether the actions write only what a `Run` holds: no card, pin, list or
        setting.
        """
        kinds = {change.type for change in self.changes if not isinstance(change, RuleChange)}
        return bool(self.changes) and kinds <= _IN_RUN

    @property
    def own(self) -> list[OwnChange]:
        return [change for change in self.changes if isinstance(change, OwnChange)]


def kept_actions(actions: Json) -> Actions:
    """Read the actions of a stored plan, which may hold a write outside plans."""
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


_Few = msgspec.Meta(max_length=PLAN_CHANGES)
_Pinned = msgspec.Meta(max_length=PLAN_PINS)


class _Order(msgspec.Struct):
    ids: Annotated[list[Id], msgspec.Meta(max_length=limits.RULES)]


class RuleAction(msgspec.Struct):
    op: RuleOp
    rule_id: Id | None = None
    set: Annotated[JsonObject, Like(RuleFields)] | None = None
    """The fields of the rule to set"""
    scope: Annotated[str, msgspec.Meta(max_length=limits.SEARCH_CHARACTERS)] | None = None
    """A search of the affected cards, by which overlaps are found; by default the rule's
    own search
    """

    def at(self, place: str) -> RuleChange:
        op, values = self.op, self.set or {}
        if op in ("create", "update", "reorder") and not values:
            raise _refuse(f"{place}.set", "is missing")
        if op in ("enable", "disable", "delete") and values:
            raise _refuse(f"{place}.set", f"does not belong to {op}")
        if op == "reorder":
            values = {"ids": read(values, _Order, f"{place}.set").ids}
        elif op == "create" and self.scope is not None:
            values = {"query": self.scope} | values
        elif op != "create" and self.rule_id is None:
            raise _refuse(f"{place}.rule_id", "is missing; it must be an ID")
        rule_id = None if op in ("create", "reorder") else self.rule_id
        return RuleChange(place, op, rule_id, values, self.scope)


class RuleActions(msgspec.Struct, tag_field="type", tag="pricing.change_set"):
    changes: Annotated[list[RuleAction], _Few]
    """The changes of rules, in order"""

    def at(self, where: str) -> list[Change]:
        return [one.at(f"{where}.changes[{n}]") for n, one in enumerate(self.changes)]


class PinAction(msgspec.Struct):
    marketplace_id: Id
    price: Annotated[Json, Like(Dollars, needed=True)] = None
    """The price that rules leave alone, in USD"""


class PinActions(msgspec.Struct, tag_field="type", tag="pricing.pins"):
    set: Annotated[list[PinAction], _Pinned] | None = None
    """The pins to set"""
    remove: Annotated[list[Id], _Pinned] | None = None
    """The cards whose pin is removed"""

    def at(self, where: str) -> list[Change]:
        found = [
            *(
                PinChange(f"{where}.set[{n}]", "set", pin.marketplace_id, pin.price)
                for n, pin in enumerate(self.set or ())
            ),
            *(
                PinChange(f"{where}.remove[{n}]", "remove", id)
                for n, id in enumerate(self.remove or ())
            ),
        ]
        if len({pin.marketplace_id for pin in found}) < len(found):
            raise _refuse(where, "must name each card once")
        return list(found)


class NamedList(msgspec.Struct):
    id: Id
    name: str | None = None


class ListEntries(Selection):
    id: Id | None = None
    """The list, by its id"""
    list: str | None = None
    """The list, by its id or name"""


class NewList(msgspec.Struct):
    name: str


class ListActions(msgspec.Struct, tag_field="type", tag="lists.change_set"):
    """A new list may be given as its name alone, and a deleted list as its id."""

    create: Annotated[list[Annotated[Json, Like(str | NewList)]], _Few] | None = None
    """The lists to make"""
    rename: Annotated[list[NamedList], _Few] | None = None
    """The lists to rename"""
    add: Annotated[list[ListEntries], _Few] | None = None
    """The cards to add to lists"""
    remove: Annotated[list[ListEntries], _Few] | None = None
    """The cards to take off lists"""
    delete: Annotated[list[Id | NamedList], _Few] | None = None
    """The lists to delete"""

    def at(self, where: str) -> list[Change]:
        ops: tuple[ListOp, ...] = ("create", "rename", "add", "remove", "delete")
        return [
            _list_change(op, item, f"{where}.{op}[{n}]")
            for op in ops
            for n, item in enumerate(getattr(self, op) or ())
        ]


def _list_change(op: ListOp, item: object, place: str) -> ListChange:
    match item:
        case ListEntries(id=None, list=None):
            raise _refuse(place, "must name its list by id, or by list, the list's name")
        case ListEntries():
            return ListChange(place, op, item.id, item.list, item)
        case NamedList():
            return ListChange(place, op, item.id, item.name)
        case int() if op == "delete":
            return ListChange(place, op, item)
    return ListChange(place, op, name=item.get("name") if isinstance(item, dict) else item)


PlanActions = Annotated[
    list[RuleActions | PinActions | ListActions],
    msgspec.Meta(min_length=1, max_length=PLAN_ACTIONS),
]


def read_actions(actions: object) -> Actions:
    """Read the actions of a plan. Raise InvalidPayload or TransitionMatrixTooLarge."""
    changes: list[Change] = []
    types: set[ActionType] = set()
    priced = 0
    for place, action in enumerate(read(actions, PlanActions, "actions")):
        where = f"actions[{place}]"
        found = action.at(where)
        if not found:
            raise _refuse(where, "must change something")
        changes += found
        types.add(cast(ActionType, action.__struct_config__.tag))
        priced += len(found) if isinstance(action, RuleActions) else isinstance(action, PinActions)
    whole = Actions(tuple(changes), frozenset(types))
    if priced > TRANSITION_ACTIONS and any(change.is_transition for change in whole.rules):
        raise TransitionMatrixTooLarge(
            f"the plan enables or disables a rule and has {priced} pricing actions: send at most {TRANSITION_ACTIONS}, and put the others in another plan"
        )
    return whole


def _refuse(place: str, why: str) -> errors.InvalidPayload:
    return errors.InvalidPayload(f"{place}: {why}")
