"""Undoes a change of rules: restores the rules from before the change, if they have not changed
since.

Every change is stored as two maps, before and after, from rule ids to the rules' columns; None
means that the rule does not exist. Buy rules and promotions are restored in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cardsync.access.undo_rows import Swap, Undoing, UndoRows
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock
from cardsync.platform.database.row_images import Image, RowImages
from cardsync.platform.limits import RULES
from cardsync.platform.value_types import JsonObject
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_queries import need_readable
from cardsync.prices.inputs.rule_rows import rule_of
from cardsync.prices.models import PricingRule

KIND: Final = "pricing.rules"
COLUMNS: Final = ("name", "priority", "enabled", "state", "preset", "query", "settings")
IMAGES: Final = RowImages(PricingRule, *COLUMNS, anew=True)


def rule_json_of(row: PricingRule) -> JsonObject:
    """Return a rule as API JSON."""
    return rule_json.to_json(rule_of(row))


def differing(rule: Image, other: Image) -> JsonObject:
    """Return the rule's fields that differ from `other`. Pure."""
    return {name: value for name, value in rule.items() if other.get(name) != value}


def undo_of(
    before: Iterable[Image],
    after: Iterable[Image],
    kind: str = KIND,
) -> JsonObject:
    """Return the values with which a change of rules is undone. Pure."""
    was, became = ({str(rule["id"]): dict(rule) for rule in rules} for rules in (before, after))
    ids = [*was, *(id for id in became if id not in was)]
    return {
        "kind": kind,
        "before": {id: was.get(id) for id in ids},
        "after": {id: became.get(id) for id in ids},
    }


def undo_queried(
    images: RowImages,
    room: tuple[int, str],
    *,
    what: str = "rule",
    of_query: str = "rule",
    asked_of: int | None = None,
    **declared: Any,
) -> UndoRows:
    """Return the undo of rows with queries, which must still be readable; `asked_of` is the seller
    whose cards the queries select, if it is another seller.
    """

    async def read(undoing: Undoing) -> Swap:
        swap = undo.stored(undoing.entry)
        seller_id = undoing.seller_id if asked_of is None else asked_of
        for id, row in swap.was.items():
            if row and row["query"] != (swap.became[id] or {}).get("query"):
                try:
                    await need_readable(undoing.session, seller_id, row["query"])
                except errors.InvalidQuery as e:
                    raise errors.ChangedSince(f"{of_query} {id}: {e}") from e
        return swap

    undo = UndoRows(
        images,
        f"{what} {{id}} “{{standing[name]}}”: {{columns}} changed in the meantime",
        Lock.STATE,
        gone=f"{what} {{id}} “{{became[name]}}” was deleted in the meantime",
        again=f"{what} {{id}} “{{standing[name]}}” exists again",
        room=room,
        read=read,
        **declared,
    )
    return undo


ROOM: Final = (RULES, "rules, the most allowed")
FREE: Final = (
    "priority",
    "the priority of rule {id}, {priority}, is now used by rule {holder.id} “{holder.name}”",
)
UNDO: Final = undo_queried(IMAGES, ROOM, free=FREE)
