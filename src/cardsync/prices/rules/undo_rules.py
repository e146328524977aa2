"""Undoes a change of rules: restores the rules from before the change, if they have not changed
since.

Every change is stored as two maps, before and after, from rule ids to the rules' columns; None
means that the rule does not exist. Buy rules are restored in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.database.row_images import ChangedRow, Image, RowImages
from cardsync.platform.limits import RULES
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_queries import need_readable
from cardsync.prices.inputs.rule_rows import rule_of
from cardsync.prices.models import PricingRule

KIND: Final = "pricing.rules"
COLUMNS: Final = ("name", "priority", "enabled", "state", "preset", "query", "settings")
IMAGES: Final = RowImages(PricingRule, *COLUMNS)


def rule_json_of(row: PricingRule) -> dict[str, Any]:
    """Return a rule as API JSON."""
    return rule_json.to_json(rule_of(row))


def differing(rule: Image, other: Image) -> dict[str, Any]:
    """Return the rule's fields that differ from `other`. Pure."""
    return {name: value for name, value in rule.items() if other.get(name) != value}


def undo_of(
    before: Iterable[Image],
    after: Iterable[Image],
    kind: str = KIND,
) -> dict[str, Any]:
    """Return the values with which `undo_images` undoes a change of rules. Pure."""
    was, became = ({str(rule["id"]): dict(rule) for rule in rules} for rules in (before, after))
    ids = [*was, *(id for id in became if id not in was)]
    return {
        "kind": kind,
        "before": {id: was.get(id) for id in ids},
        "after": {id: became.get(id) for id in ids},
    }


async def undo_images(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
    images: RowImages = IMAGES,
    asked_of: int | None = None,
) -> None:
    """Restore the rules of a table to `before`. `asked_of` is the seller whose cards the rules'
    queries select, if it is another seller. Raise ChangedSince if the rules differ from `after`.
    """
    seller_id, after = caller.seller_id, undo["after"]
    await sync_state.locked(session, seller_id)
    table: Any = images.table
    mine = await session.scalars(select(table).where(table.seller_id == seller_id))
    rows = {str(row.id): row for row in mine}
    wanted = {id: rule for id, rule in undo["before"].items() if rule is not None}
    _need_room(wanted, [row for id, row in rows.items() if id not in after])
    for id, rule in wanted.items():
        if id not in rows or rule["query"] != rows[id].query:
            await need_query(
                session, seller_id if asked_of is None else asked_of, f"rule {id}", rule["query"]
            )
    otherwise = await images.swap(session, seller_id, after, wanted, now)
    if otherwise is not None:
        raise changed_since("rule", otherwise, after[str(otherwise.id)])


def changed_since(what: str, otherwise: ChangedRow, became: Image | None) -> errors.ChangedSince:
    """Return the error that names a row and how it differs from `became`. Pure."""
    id, present, columns = otherwise
    if present is None or became is None:
        name = (present or became or {})["name"]
        how = "was deleted in the meantime" if became else "exists again"
        return errors.ChangedSince(f"{what} {id} “{name}” {how}")
    if "settings" in columns:
        stored, meant = present["settings"], became["settings"]
        fields = [name for name in stored | meant if stored.get(name) != meant.get(name)]
        columns = [*(name for name in columns if name != "settings"), *fields]
    return errors.ChangedSince(
        f"{what} {id} “{present['name']}”: {', '.join(columns)} changed in the meantime"
    )


def _need_room(wanted: Mapping[str, Image], others: Sequence[Any]) -> None:
    if len(wanted) + len(others) > RULES:
        raise errors.ChangedSince(f"there are now {RULES} rules, the most allowed")
    holders = {row.priority: row for row in others}
    for id, rule in wanted.items():
        if (holder := holders.get(rule["priority"])) is not None:
            raise errors.ChangedSince(
                f"the priority of rule {id}, {rule['priority']}, is now used by rule {holder.id} “{holder.name}”"
            )


async def need_query(session: AsyncSession, seller_id: int, of: str, query: str) -> None:
    try:
        await need_readable(session, seller_id, query)
    except errors.InvalidQuery as e:
        raise errors.ChangedSince(f"{of}: {e}") from e
