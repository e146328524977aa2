"""Undoes a change of rules: it brings back the rules as they were before it, if they are still as
it left them.

One form serves every change: a map of rule ids to the rules' columns, None for a rule that is not
there. `edit` writes the entry of the activity feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.sql.expression import bindparam

from cardsync import errors
from cardsync.access.caller import Caller
from cardsync.clock import read_moment, rfc3339
from cardsync.limits import RULES
from cardsync.pricing.inputs import rule_json
from cardsync.pricing.inputs.rule_queries import need_readable
from cardsync.pricing.inputs.rule_rows import all_rows, rule_of
from cardsync.pricing.models import PricingRule
from cardsync.seller_state import state as sync_state

KIND: Final = "pricing.rules"
_COLUMNS: Final = ("name", "priority", "enabled", "state", "preset", "query", "settings")
Kept = Mapping[str, Any]


def kept(row: PricingRule) -> dict[str, Any]:
    """A rule as a row holds it now, for `edit`."""
    columns = {name: getattr(row, name) for name in _COLUMNS}
    return {"id": row.id, **columns, "created_at": rfc3339(row.created_at)}


def told(row: PricingRule) -> dict[str, Any]:
    """A rule as the API shows it, for `edit`."""
    return rule_json.told(rule_of(row))


def differing(rule: Kept, other: Kept) -> dict[str, Any]:
    """Return the fields in which the rule differs from its other state. Pure."""
    return {name: value for name, value in rule.items() if other.get(name) != value}


def undo_of(before: Iterable[Kept], after: Iterable[Kept]) -> dict[str, Any]:
    """Return what `put_back` needs of a change from these rules to those. Pure."""
    was, became = ({str(rule["id"]): dict(rule) for rule in rules} for rules in (before, after))
    ids = [*was, *(id for id in became if id not in was)]
    return {
        "kind": KIND,
        "before": {id: was.get(id) for id in ids},
        "after": {id: became.get(id) for id in ids},
    }


async def put_back(
    session: AsyncSession,
    caller: Caller,
    undo: Mapping[str, Any],
    now: datetime,
) -> None:
    """Bring the rules back to `before`. Raises ChangedSince unless they are as in `after`."""
    caller.must_be_owner()
    seller_id = caller.seller_id
    await sync_state.locked(session, seller_id)
    rows = {row.id: row for row in await all_rows(session, PricingRule, seller_id)}
    before: dict[int, Kept | None] = {int(id): rule for id, rule in undo["before"].items()}
    for id, rule in undo["after"].items():
        _need_standing(int(id), rule, rows.get(int(id)))
    wanted = {id: rule for id, rule in before.items() if rule is not None}
    others = [row for row in rows.values() if row.id not in before]
    _need_room(wanted, others)
    for id, rule in wanted.items():
        if id not in rows or rule["query"] != rows[id].query:
            await _need_query(session, seller_id, rule)
    gone = [id for id, rule in before.items() if rule is None]
    await session.execute(delete(PricingRule).where(*_those(seller_id, gone)))
    # The rules first move out of the way: no two published rules share a priority at any moment.
    for place, id in enumerate(id for id in wanted if id in rows):
        await session.execute(
            update(PricingRule).where(*_those(seller_id, [id])).values(priority=-place - 1)
        )
    for id, rule in wanted.items():
        if id in rows:
            values = {name: rule[name] for name in _COLUMNS}
            await session.execute(
                update(PricingRule)
                .where(*_those(seller_id, [id]))
                .values(**values, updated_at=now),
            )
        else:
            await _insert(session, seller_id, rule, now)


def _those(seller_id: int, ids: list[int]) -> tuple[Any, ...]:
    return PricingRule.seller_id == seller_id, PricingRule.id.in_(ids)


def _need_standing(id: int, rule: Kept | None, row: PricingRule | None) -> None:
    if rule is None:
        if row is not None:
            raise errors.ChangedSince(f"rule {id} “{row.name}” is there again")
        return
    if row is None:
        raise errors.ChangedSince(f"rule {id} “{rule['name']}” was deleted since")
    changed = [name for name in _COLUMNS if getattr(row, name) != rule[name]]
    if "settings" in changed:
        stored, meant = row.settings, rule["settings"]
        fields = [name for name in stored | meant if stored.get(name) != meant.get(name)]
        changed = [*(name for name in changed if name != "settings"), *fields]
    if changed:
        raise errors.ChangedSince(f"rule {id} “{row.name}”: {', '.join(changed)} changed since")


def _need_room(wanted: Mapping[int, Kept], others: list[PricingRule]) -> None:
    if len(wanted) + len(others) > RULES:
        raise errors.ChangedSince(f"there are {RULES} rules by now; that is the most")
    holders = {row.priority: row for row in others}
    for id, rule in wanted.items():
        if (holder := holders.get(rule["priority"])) is not None:
            raise errors.ChangedSince(
                f"the priority of rule {id}, {rule['priority']},"
                f" is that of rule {holder.id} “{holder.name}” by now"
            )


async def _need_query(session: AsyncSession, seller_id: int, rule: Kept) -> None:
    try:
        await need_readable(session, seller_id, rule["query"])
    except errors.InvalidQuery as e:
        raise errors.ChangedSince(f"rule {rule['id']}: {e}") from e


async def _insert(session: AsyncSession, seller_id: int, rule: Kept, now: datetime) -> None:
    """A rule that was deleted comes back with its id, which receipts and price changes name."""
    names = ("id", *_COLUMNS, "created_at")
    statement = text(
        f"INSERT INTO pricing_rule (seller_id, {', '.join(names)}, updated_at)"
        f" OVERRIDING SYSTEM VALUE VALUES (:seller, {', '.join(f':{n}' for n in names)}, :now)"
    ).bindparams(bindparam("settings", type_=JSONB))
    values = {name: rule[name] for name in names}
    values["created_at"] = read_moment(rule["created_at"]) or now
    await session.execute(statement, values | {"seller": seller_id, "now": now})
