"""Writes a seller's rules. Each write locks the seller's state row, so that no two rules share a
priority.

A rule without a priority is placed directly before the default rule, after all other rules before
it.

At the end of every write, the seller's rule tests may refuse it (`rule_tests/saves.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.limits import DEFAULT_PRIORITY, RULES
from cardsync.platform.value_types import Json, JsonMapping
from cardsync.prices.engine.preset_rules import preset_rule
from cardsync.prices.engine.rules import InvalidRule, Rule
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_queries import need_readable
from cardsync.prices.inputs.rule_rows import all_rows, one_row, row_of, rule_of
from cardsync.prices.limits import GUARDS
from cardsync.prices.models import PricingRule
from cardsync.prices.rule_tests.saves import governing, judge_save
from cardsync.prices.rule_tests.schemas import RuleTestVerdict
from cardsync.prices.rules.undo_rules import IMAGES, differing, rule_json_of, undo_of

_STEP = 10


class Saved(NamedTuple):
    """A saved rule, and the results of the rule tests with it."""

    row: PricingRule
    verdicts: list[RuleTestVerdict]


async def read_all(session: AsyncSession, caller: Caller) -> list[PricingRule]:
    """Return the seller's rules by priority."""
    caller.must_be_owner()
    return await all_rows(session, PricingRule, caller.seller_id)


async def names_of_rules(reading: Reading, caller: Caller) -> list[tuple[int, str]]:
    """Return the id and the name of each rule by priority; for staff, none."""
    if caller.role != "owner":
        return []
    found = await reading.rows(
        "SELECT id, name FROM pricing_rule WHERE seller_id = :seller ORDER BY priority, id",
        {"seller": caller.seller_id},
    )
    return [(id, name) for id, name in found]


async def read_one(source: Source, caller: Caller, rule_id: int) -> PricingRule:
    """Return the seller's rule with this id, and end a reading. Raise NotFound."""
    caller.must_be_owner()
    return await one_row(source, PricingRule, caller.seller_id, rule_id)


async def read_judged(
    session: AsyncSession,
    caller: Caller,
    rule_id: int,
    now: datetime,
) -> Saved:
    """Return a rule and the results of the rule tests with it, as after a save without changes.
    Raises NotFound.
    """
    row = await read_one(session, caller, rule_id)
    was = governing(await all_rows(session, PricingRule, caller.seller_id))
    return Saved(row, await judge_save(session, caller, was, now, draft=rule_id))


async def create(
    session: AsyncSession,
    caller: Caller,
    body: JsonMapping,
    now: datetime,
    override_reason: Json = None,
) -> Saved:
    """Create a rule. Raise InvalidRule, InvalidQuery, RuleTestsFailed."""
    caller.must_be_owner()
    values = rule_json.read_body(body, rule_json.RuleFields)
    if "name" not in values:
        raise errors.InvalidRule("name: is missing")
    await sync_state.locked(session, caller.seller_id)
    rows = await all_rows(session, PricingRule, caller.seller_id)
    if len(rows) >= RULES:
        raise errors.InvalidRule(f"there are already {RULES} rules, the most allowed")
    was = governing(rows)
    priority = values.get("priority") or await _before_default(session, rows, now)
    rule = rule_json.rule_from(values, Rule(id=0, name="", priority=priority))
    _need_free(rule_json.need_sound(rule), rows)
    rule = replace(rule, query=await need_readable(session, caller.seller_id, rule.query))
    row = row_of(caller.seller_id, rule)
    row.created_at = row.updated_at = now
    session.add(row)
    await session.flush()
    note(
        session,
        caller,
        "pricing.rule_created",
        f"rule {row.id} “{rule.name}” created",
        now,
        after=rule_json_of(row),
        undo=undo_of([], [IMAGES.of(row)]),
    )
    return Saved(
        row,
        await judge_save(
            session,
            caller,
            was,
            now,
            override_reason=override_reason,
            draft=row.id,
        ),
    )


async def change(
    session: AsyncSession,
    caller: Caller,
    rule_id: int,
    body: Mapping[str, object],
    now: datetime,
    override_reason: object = None,
) -> Saved:
    """Change the fields of a rule that the body names. Raise NotFound, InvalidRule, InvalidQuery,
    RuleTestsFailed.
    """
    caller.must_be_owner()
    values = rule_json.read_body(body, rule_json.RuleFields)
    await sync_state.locked(session, caller.seller_id)
    rows = await all_rows(session, PricingRule, caller.seller_id)
    row = await one_row(session, PricingRule, caller.seller_id, rule_id)
    governed = governing(rows)
    rule = rule_json.need_sound(rule_json.rule_from(values, rule_of(row)))
    _need_free(rule, [other for other in rows if other.id != rule_id])
    # A rule whose query can't be parsed any more can be disabled and renamed, even if the body
    # repeats all its fields, but not published.
    if rule.query != row.query or (rule.state == "published" and row.state != "published"):
        rule = replace(rule, query=await need_readable(session, caller.seller_id, rule.query))
    if rule != rule_of(row):
        changed = row_of(caller.seller_id, rule)
        was, was_json = IMAGES.of(row), rule_json_of(row)
        for name in ("name", "priority", "enabled", "state", "query", "settings"):
            setattr(row, name, getattr(changed, name))
        row.updated_at = now
        await session.flush()
        became = rule_json_of(row)
        note(
            session,
            caller,
            "pricing.rule_changed",
            f"rule {rule_id} “{rule.name}” changed: {', '.join(values)}",
            now,
            before=differing(was_json, became),
            after=differing(became, was_json),
            undo=undo_of([was], [IMAGES.of(row)]),
        )
    return Saved(
        row,
        await judge_save(
            session,
            caller,
            governed,
            now,
            override_reason=override_reason,
            draft=row.id,
        ),
    )


async def remove(
    session: AsyncSession,
    caller: Caller,
    rule_id: int,
    now: datetime,
    override_reason: object = None,
) -> None:
    """Delete a rule. Raise NotFound, RuleTestsFailed."""
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    was = governing(await all_rows(session, PricingRule, caller.seller_id))
    row = await one_row(session, PricingRule, caller.seller_id, rule_id)
    await session.delete(row)
    note(
        session,
        caller,
        "pricing.rule_deleted",
        f"rule {rule_id} “{row.name}” deleted",
        now,
        before=rule_json_of(row),
        undo=undo_of([IMAGES.of(row)], []),
    )
    await session.flush()
    await judge_save(session, caller, was, now, override_reason=override_reason)


async def reorder(
    session: AsyncSession,
    caller: Caller,
    ids: Sequence[int],
    now: datetime,
    override_reason: object = None,
) -> list[PricingRule]:
    """Put the rules in the order of `ids`; the default rule keeps its priority. Raises
    InvalidRule, RuleTestsFailed.
    """
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    rows = {row.id: row for row in await all_rows(session, PricingRule, caller.seller_id)}
    # The order of guards changes no price, so `ids` may omit guards.
    ids = [*ids, *(id for id, row in rows.items() if rule_of(row).guard and id not in ids)]
    if sorted(ids) != sorted(rows):
        raise errors.InvalidRule("ids: must list every rule once")
    order = [row.id for row in sorted(rows.values(), key=lambda row: (row.priority, row.id))]
    was = sorted((IMAGES.of(row) for row in rows.values()), key=itemgetter("id"))
    governed = governing(rows.values())
    default = next(
        (place for place, id in enumerate(ids) if rows[id].priority == DEFAULT_PRIORITY), None
    )
    before = list(ids[:default]) if default is not None else list(ids)
    behind = list(ids[default + 1 :]) if default is not None else []
    priorities = dict(zip(before, _spread(len(before)), strict=True))
    priorities |= {id: DEFAULT_PRIORITY + _STEP * (place + 1) for place, id in enumerate(behind)}
    await _renumber(session, caller.seller_id, priorities, now)
    fresh = await _fresh(session, caller.seller_id)
    became = sorted((IMAGES.of(row) for row in fresh), key=itemgetter("id"))
    if became != was:
        note(
            session,
            caller,
            "pricing.rules_reordered",
            f"{len(ids)} rules in a new order",
            now,
            before={"ids": order},
            after={"ids": list(ids)},
            undo=undo_of(was, became),
        )
        await judge_save(session, caller, governed, now, override_reason=override_reason)
    return fresh


async def apply_preset(
    session: AsyncSession,
    caller: Caller,
    preset: str,
    now: datetime,
    override_reason: object = None,
) -> Saved:
    """Replace the rule of the earlier preset by the rule of this preset. Raise NotFound,
    RuleTestsFailed.
    """
    caller.must_be_owner()
    try:
        rule = preset_rule(preset)
    except InvalidRule as e:
        raise errors.NotFound(str(e)) from e
    seller_id = caller.seller_id
    await sync_state.locked(session, seller_id)
    governed = governing(await all_rows(session, PricingRule, seller_id))
    earlier = (PricingRule.preset.is_not(None)) | (PricingRule.priority == DEFAULT_PRIORITY)
    gone = list(
        await session.scalars(
            select(PricingRule).where(PricingRule.seller_id == seller_id, earlier)
        )
    )
    was, was_json = [IMAGES.of(row) for row in gone], [rule_json_of(row) for row in gone]
    await session.execute(delete(PricingRule).where(PricingRule.seller_id == seller_id, earlier))
    row = row_of(seller_id, rule, preset)
    row.created_at = row.updated_at = now
    session.add(row)
    await session.flush()
    note(
        session,
        caller,
        "pricing.preset_applied",
        f"preset {preset}, rule {row.id}",
        now,
        before={"rules": was_json},
        after={"rules": [rule_json_of(row)]},
        undo=undo_of(was, [IMAGES.of(row)]),
    )
    verdicts = await judge_save(session, caller, governed, now, override_reason=override_reason)
    return Saved(row, verdicts)


def _need_free(rule: Rule, others: Sequence[PricingRule]) -> None:
    taken = next((other for other in others if other.priority == rule.priority), None)
    if rule.guard and sum(rule_of(other).guard for other in others) >= GUARDS:
        raise errors.InvalidRule(f"guard: there are already {GUARDS} guards, the most allowed")
    if taken is not None:
        raise errors.InvalidRule(
            f"priority: {rule.priority} is already used by rule {taken.id} “{taken.name}”"
        )


async def _before_default(session: AsyncSession, rows: Sequence[PricingRule], now: datetime) -> int:
    """Return a free priority directly before the default rule's. If there is none, renumber the
    rules before the default rule.
    """
    before = [row for row in rows if row.priority < DEFAULT_PRIORITY]
    last = max((row.priority for row in before), default=0)
    if last < DEFAULT_PRIORITY - 1:
        return min(last + _STEP, DEFAULT_PRIORITY - 1)
    *priorities, own = _spread(len(before) + 1)
    moved = dict(zip((row.id for row in before), priorities, strict=True))
    await _renumber(session, before[0].seller_id, moved, now)
    return own


def _spread(count: int) -> list[int]:
    """Return `count` priorities before the default rule's, at equal distances."""
    step = min(_STEP, DEFAULT_PRIORITY // (count + 1)) if count else _STEP
    return [step * (place + 1) for place in range(count)]


async def _renumber(
    session: AsyncSession,
    seller_id: int,
    priorities: Mapping[int, int],
    now: datetime,
) -> None:
    # The rules get negative priorities first, so that no two published rules share a priority at
    # any time.
    for sign in (-1, 1):
        for rule_id, priority in priorities.items():
            await session.execute(
                update(PricingRule)
                .where(PricingRule.seller_id == seller_id, PricingRule.id == rule_id)
                .values(priority=sign * priority, updated_at=now)
            )


async def _fresh(session: AsyncSession, seller_id: int) -> list[PricingRule]:
    session.expire_all()
    return await all_rows(session, PricingRule, seller_id)
