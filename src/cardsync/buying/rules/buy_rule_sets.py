"""Creates, changes and deletes a shop's buy rules. Writes run one at a time, under the lock of the
seller's state row, so that no two rules have the same priority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.agents.seller_state import state as sync_state
from cardsync.buying.engine.buy_rules import BuyRule, buy_preset
from cardsync.buying.rules.buy_rule_json import (
    BuyRuleShown,
    buy_rule_body,
    buy_rule_of,
    columns_of,
    read_buy_rule,
)
from cardsync.buying.rules.models import StoredBuyRule
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.row_images import RowImages
from cardsync.platform.limits import DEFAULT_PRIORITY, RULES
from cardsync.prices.engine.rules import InvalidRule
from cardsync.prices.inputs.rule_queries import need_readable, selections
from cardsync.prices.rules import undo_rules
from cardsync.prices.rules.file_queries import NOBODY, unanswerable
from cardsync.stock.cards.names_in_search import NamesOf
from cardsync.stock.lists.models import CardList

_STEP: Final = 10
KIND: Final = "buying.rules"
_IMAGES: Final = RowImages(StoredBuyRule, *undo_rules.COLUMNS, anew=True)
_image_of: Final = _IMAGES.of
_undo_of: Final = partial(undo_rules.undo_of, kind=KIND)
# `asked_of` is nobody, because queries of buy rules select products of catalogs, not the shop's
# cards.
UNDO: Final = undo_rules.undo_queried(
    _IMAGES, undo_rules.ROOM, asked_of=NOBODY, free=undo_rules.FREE
)


async def all_buy_rules(source: Source, seller_id: int) -> list[StoredBuyRule]:
    return await rows_as(source, StoredBuyRule, seller_id, "ORDER BY priority, id")


async def _one(session: AsyncSession, seller_id: int, rule_id: int) -> StoredBuyRule:
    mine = select(StoredBuyRule).where(StoredBuyRule.seller_id == seller_id)
    row = await session.scalar(mine.where(StoredBuyRule.id == rule_id))
    if row is None:
        raise errors.NotFound(f"there is no buy rule {rule_id}")
    return row


async def bodies(source: Source, rows: Sequence[StoredBuyRule]) -> list[BuyRuleShown]:
    """Return the rules as structs of the API, each with the warnings of its query."""
    found = await selections(source, NOBODY, [row.query for row in rows])
    return [
        buy_rule_body(row, selection.warnings) for row, selection in zip(rows, found, strict=True)
    ]


async def read_all(source: Source, caller: Caller) -> list[BuyRuleShown]:
    """Return the buy rules by priority."""
    caller.must_be_owner()
    return await bodies(source, await all_buy_rules(source, caller.seller_id))


async def read_one(session: AsyncSession, caller: Caller, rule_id: int) -> BuyRuleShown:
    """Return one buy rule. Raises NotFound."""
    caller.must_be_owner()
    return (await bodies(session, [await _one(session, caller.seller_id, rule_id)]))[0]


async def create(
    session: AsyncSession,
    caller: Caller,
    body: Mapping[str, object],
    now: datetime,
) -> BuyRuleShown:
    """Create a buy rule. Raises InvalidRule, InvalidQuery."""
    caller.must_be_owner()
    if "name" not in body:
        raise errors.InvalidRule("name: is missing")
    await sync_state.locked(session, caller.seller_id)
    rows = await all_buy_rules(session, caller.seller_id)
    if len(rows) >= RULES:
        raise errors.InvalidRule(f"there are already {RULES} buy rules, the most allowed")
    rule = read_buy_rule(body, BuyRule(id=0, name="", priority=_before_default(rows)))
    rule = await _fitting(session, caller, rule, rows)
    row = StoredBuyRule(
        seller_id=caller.seller_id,
        created_at=now,
        updated_at=now,
        **columns_of(rule),
    )
    session.add(row)
    await session.flush()
    said = f"buy rule {row.id} “{row.name}” created"
    note(
        session,
        caller,
        "buying.rule_created",
        said,
        now,
        after=columns_of(rule),
        undo=_undo_of([], [_image_of(row)]),
    )
    return (await bodies(session, [row]))[0]


async def change(
    session: AsyncSession,
    caller: Caller,
    rule_id: int,
    body: Mapping[str, object],
    now: datetime,
) -> BuyRuleShown:
    """Change a buy rule. Raises NotFound, InvalidRule, InvalidQuery."""
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    rows = await all_buy_rules(session, caller.seller_id)
    row = await _one(session, caller.seller_id, rule_id)
    was, image = columns_of(buy_rule_of(row)), _image_of(row)
    rule = read_buy_rule(body, buy_rule_of(row))
    if columns_of(rule) != was:
        rule = await _fitting(session, caller, rule, [one for one in rows if one.id != rule_id])
    became = columns_of(rule)
    if became != was:
        for name, changed in became.items():
            setattr(row, name, changed)
        row.updated_at = now
        await session.flush()
        said = f"buy rule {rule_id} “{row.name}” changed: {', '.join(sorted(body))}"
        note(
            session,
            caller,
            "buying.rule_changed",
            said,
            now,
            before=was,
            after=became,
            undo=_undo_of([image], [_image_of(row)]),
        )
    return (await bodies(session, [row]))[0]


async def remove(
    session: AsyncSession,
    caller: Caller,
    rule_id: int,
    now: datetime,
) -> None:
    """Delete a buy rule. Raises NotFound."""
    caller.must_be_owner()
    await sync_state.locked(session, caller.seller_id)
    row = await _one(session, caller.seller_id, rule_id)
    was = columns_of(buy_rule_of(row))
    await session.delete(row)
    said = f"buy rule {rule_id} “{row.name}” deleted"
    undo = _undo_of([_image_of(row)], [])
    note(session, caller, "buying.rule_deleted", said, now, before=was, undo=undo)


async def apply_preset(
    session: AsyncSession,
    caller: Caller,
    preset: str,
    now: datetime,
) -> BuyRuleShown:
    """Create the rule of a preset. It replaces the rule of an earlier preset, and any rule with the
    same priority. Raises NotFound.
    """
    caller.must_be_owner()
    try:
        rule = buy_preset(preset)
    except InvalidRule as e:
        raise errors.NotFound(str(e)) from e
    await sync_state.locked(session, caller.seller_id)
    gone = [
        row
        for row in await all_buy_rules(session, caller.seller_id)
        if row.preset is not None or row.priority == DEFAULT_PRIORITY
    ]
    was = [_image_of(row) for row in gone]
    for row in gone:
        await session.delete(row)
    await session.flush()
    made = StoredBuyRule(
        seller_id=caller.seller_id,
        preset=preset,
        created_at=now,
        updated_at=now,
        **columns_of(rule),
    )
    session.add(made)
    await session.flush()
    said = f"buying preset {preset}, buy rule {made.id}"
    note(
        session,
        caller,
        "buying.preset_applied",
        said,
        now,
        after=columns_of(rule),
        undo=_undo_of(was, [_image_of(made)]),
    )
    return (await bodies(session, [made]))[0]


def _before_default(rows: Sequence[StoredBuyRule]) -> int:
    """Return a priority after all other rules and before the preset's rule."""
    before = [row.priority for row in rows if row.priority < DEFAULT_PRIORITY]
    return min(max(before, default=0) + _STEP, DEFAULT_PRIORITY - 1)


async def _fitting(
    session: AsyncSession,
    caller: Caller,
    rule: BuyRule,
    others: Sequence[StoredBuyRule],
) -> BuyRule:
    """Check that a rule's priority is free and that its query can be parsed. Return the rule with
    the names of cards in its query in quotes. Raises InvalidRule, InvalidQuery.
    """
    taken = next((one for one in others if one.priority == rule.priority), None)
    if taken is not None:
        raise errors.InvalidRule(
            f"priority: {rule.priority} is already used by buy rule {taken.id} “{taken.name}”"
        )
    asked = unanswerable(rule.query)
    if asked:
        raise errors.InvalidRule(
            f"query: {', '.join(asked)} cannot be asked of a card that is not in the shop yet; "
            "use the rule's own lists and steps"
        )
    query = await readable_query(session, caller.seller_id, rule.query)
    ids = [step.list_id for step in rule.lists]
    mine = select(CardList.id).where(CardList.seller_id == caller.seller_id)
    known = set(
        await session.scalars(mine.where(CardList.id.in_(ids), CardList.deleted_at.is_(None)))
    )
    for list_id in ids:
        if list_id not in known:
            raise errors.InvalidRule(f"lists: there is no list {list_id}")
    return replace(rule, query=query)


async def readable_query(session: AsyncSession, seller_id: int, query: str) -> str:
    """Return the query of a buy rule with the names of cards in quotes. The names are from
    catalogs, because customers may bring cards that the shop does not have. Raises InvalidQuery.
    """
    names = NamesOf.CATALOGS
    return await need_readable(session, NOBODY, query, names=names, named_by=seller_id)
