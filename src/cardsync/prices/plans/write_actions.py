"""Writes the request of a route or a page as an action of a plan, in JSON. Pure.

`carry_out.py` carries out the same action when a member confirms the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from cardsync.platform.value_types import JsonObject
from cardsync.stock.cards.bulk_selection import Selection

Action = JsonObject


def _values(body: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in body.items() if name != "confirm"}


def _rule(op: str, **change: object) -> Action:
    return {"type": "pricing.change_set", "changes": [{"op": op, **change}]}


def rule_create(body: Mapping[str, object]) -> Action:
    return _rule("create", set=_values(body))


def rule_update(rule_id: int, body: Mapping[str, object]) -> Action:
    return _rule("update", rule_id=rule_id, set=_values(body))


def rule_delete(rule_id: int) -> Action:
    return _rule("delete", rule_id=rule_id)


def rule_reorder(ids: Sequence[int]) -> Action:
    return _rule("reorder", set={"ids": list(ids)})


def sale_create(body: Mapping[str, object]) -> Action:
    return {"type": "pricing.sales", "op": "create", "set": _values(body)}


def sale_update(sale_id: int, body: Mapping[str, object]) -> Action:
    return {"type": "pricing.sales", "op": "update", "id": sale_id, "set": _values(body)}


def sale_delete(sale_id: int) -> Action:
    return {"type": "pricing.sales", "op": "delete", "id": sale_id}


def settings_update(body: Mapping[str, object]) -> Action:
    return {"type": "pricing.settings", "op": "update", "set": _values(body)}


def pin_set(marketplace_id: int, body: Mapping[str, object]) -> Action:
    pin = {"marketplace_id": marketplace_id, "price": body.get("price")}
    return {"type": "pricing.pins", "set": [pin]}


def pin_remove(marketplace_id: int) -> Action:
    return {"type": "pricing.pins", "remove": [marketplace_id]}


def preset_apply(preset: str) -> Action:
    return {"type": "pricing.preset", "op": "apply", "preset": preset}


def pins_of(op: Literal["pin", "unpin"], selection: Selection) -> Action:
    return {"type": "pricing.pin_many", "op": op, "selection": msgspec.to_builtins(selection)}


def list_edit(op: str, selection: Selection | None = None, **named: object) -> Action:
    """`named` has the list's `id`, and its `name` if the request sets one."""
    given = {} if selection is None else msgspec.to_builtins(selection)
    # `selected_ids` restrict the selection even if they are null.
    picked = {n: value for n, value in given.items() if value is not None or n == "selected_ids"}
    return {"type": "lists.change_set", op: [{**named, **picked}]}
