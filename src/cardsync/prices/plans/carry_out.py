"""Carries out the actions of a plan through the operations of the API. If a change is refused, the
plan is refused: the error names the change's place.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.money import dollars
from cardsync.platform.plurals import counted
from cardsync.platform.settings import Settings
from cardsync.prices.plans import lot_changes
from cardsync.prices.plans.actions import (
    Actions,
    Change,
    ListChange,
    OwnChange,
    PinChange,
    RuleChange,
)
from cardsync.prices.rollback import prepare, words
from cardsync.prices.rollback.scope import diff_of
from cardsync.prices.rule_tests.saves import judged_together
from cardsync.prices.rules import pin_many, rule_sets, sale_sets
from cardsync.prices.runs import reprice
from cardsync.stock.cards.bulk_selection import Selection
from cardsync.stock.lists import entries, seller_lists
from cardsync.stock.quick_add.publish_drafts import publish
from cardsync.stock.search.known_names import name_key

_OF_RULES: Final = ("pricing.change_set", "pricing.preset")
_NAMED: Final = 3


class ChangeDone(NamedTuple):
    """The result of one change; `id` names the rule, the card or the list."""

    place: str
    type: str
    op: str
    id: int | None
    summary: str
    # The number of cards that were put on a list or taken off it.
    cards: int = 0


async def carry_out(
    session: AsyncSession,
    caller: Caller,
    actions: Actions,
    now: datetime,
    settings: Settings,
) -> list[ChangeDone]:
    """Carry out the changes in their order. Rule tests judge the rules after the last change.
    Raises the errors of the operations, with the change's place.
    """
    done = []
    try:
        async with judged_together(session, caller, now, beside=actions.are_in_run):
            for change in actions.changes:
                try:
                    done.append(await _one(session, caller, change, now, settings))
                except errors.WithStatus:
                    raise
                except errors.Problem as e:
                    raise type(e)(f"{change.place}: {e}") from e
            await session.flush()
    except errors.RuleTestsFailed as e:
        raise errors.RuleTestsFailed(f"{_places(actions)}: {e}") from e
    return done


def _places(actions: Actions) -> str:
    places = [one.place for one in actions.changes if one.type in _OF_RULES]
    rest = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return ", ".join(places[:_NAMED]) + rest


class _Done(NamedTuple):
    id: int | None
    summary: str
    cards: int = 0


async def _one(
    session: AsyncSession,
    caller: Caller,
    change: Change,
    now: datetime,
    settings: Settings,
) -> ChangeDone:
    match change:
        case RuleChange():
            done = await _rule(session, caller, change, now)
        case PinChange():
            done = await _pin(session, caller, change, now)
        case ListChange():
            done = await _list(session, caller, change, now, settings.read_seconds)
        case OwnChange():
            done = await _own(session, caller, change, now, settings)
    return ChangeDone(change.place, change.type, change.op, *done)


async def _rule(session: AsyncSession, caller: Caller, change: RuleChange, now: datetime) -> _Done:
    if change.op == "create":
        row, _ = await rule_sets.create(session, caller, change.values, now)
        return _Done(row.id, f"Rule “{row.name}” created.")
    if change.op == "reorder":
        rows = await rule_sets.reorder(session, caller, change.values["ids"], now)
        return _Done(None, f"The {len(rows)} rules are in a new order.")
    assert change.rule_id is not None
    if change.op == "delete":
        row = await rule_sets.read_one(session, caller, change.rule_id)
        await rule_sets.remove(session, caller, change.rule_id, now)
        await session.flush()
        return _Done(change.rule_id, f"Rule “{row.name}” deleted.")
    switched = {"enable": {"enabled": True}, "disable": {"enabled": False}}
    values = switched.get(change.op, change.values)
    row, _ = await rule_sets.change(session, caller, change.rule_id, values, now)
    how = "changed: " + ", ".join(values) if change.op == "update" else f"{change.op}d"
    return _Done(change.rule_id, f"Rule “{row.name}” is {how}.")


async def _pin(session: AsyncSession, caller: Caller, change: PinChange, now: datetime) -> _Done:
    id = change.marketplace_id
    if change.op == "set":
        price = await sale_sets.pin(session, caller, id, {"price": change.price}, now)
        return _Done(id, f"Card {id} pinned at {dollars(price)}.")
    await sale_sets.unpin(session, caller, id, now)
    return _Done(id, f"Card {id} unpinned.")


async def _list(
    session: AsyncSession,
    caller: Caller,
    change: ListChange,
    now: datetime,
    seconds: float,
) -> _Done:
    id = change.list_id or 0
    match change.op:
        case "create":
            made = await seller_lists.create_list(session, caller, change.name, now)
            return _Done(made.id, f"List “{made.name}” created.")
        case "rename":
            named = await seller_lists.rename_list(session, caller, id, change.name, now)
            return _Done(id, f"List {id} renamed “{named.name}”.")
        case "delete":
            await seller_lists.delete_list(session, caller, id, now)
            return _Done(id, f"List {id} deleted.")
    id = await _list_of(session, caller, change)
    assert change.selection is not None
    if change.op == "remove":
        removed = await entries.remove_cards(session, caller, id, change.selection, now, seconds)
        cards = counted(removed, "card is", "cards are")
        return _Done(id, f"{cards} removed from list {id}.", removed)
    added = await entries.add_cards(session, caller, id, change.selection, now, seconds)
    rest = ", which is then full" if added.truncated else ""
    cards = counted(added.requested, "card", "cards")
    return _Done(id, f"{added.added} of {cards} added to list {id}{rest}.", added.added)


async def _own(
    session: AsyncSession,
    caller: Caller,
    change: OwnChange,
    now: datetime,
    settings: Settings,
) -> _Done:
    body = change.body
    match change.type:
        case "pricing.sales":
            return await _sale(session, caller, change, now)
        case "pricing.preset":
            saved = await rule_sets.apply_preset(session, caller, body["preset"], now)
            return _Done(saved.row.id, f"Preset {body['preset']} is now the default rule.")
        case "pricing.settings":
            await sale_sets.change_settings(session, caller, body["set"], now)
            return _Done(None, f"Limits and fees changed: {', '.join(body['set'])}.")
        case "pricing.pin_many":
            selection = msgspec.convert(body["selection"], Selection)
            write = pin_many.pin_many if change.op == "pin" else pin_many.unpin_many
            pinned = await write(session, caller, selection, now, settings)
            cards = counted(pinned.changed, "card is", "cards are")
            return _Done(None, f"{cards} {change.op}ned.")
        case "pricing.reprice":
            run_id = await reprice.request(session, caller, now)
            return _Done(run_id, f"Pricing run {run_id} starts.")
        case "pricing.rollback":
            scope, lasts = body["scope"], timedelta(seconds=settings.rollback_seconds)
            count, _ = await diff_of(session, caller.seller_id, scope)
            rollback, _ = await prepare.request(session, caller, scope, count, now, lasts)
            return _Done(rollback.id, words.asked(scope, count))
        case "quick_add.publish":
            drafts, task_id = await publish(session, caller, body["ids"], now)
            return _Done(task_id, f"{counted(len(drafts), 'listing', 'listings')} published.")
        case "lots":
            return _Done(*await lot_changes.carry_out(session, caller, body, now))


async def _sale(session: AsyncSession, caller: Caller, change: OwnChange, now: datetime) -> _Done:
    id = change.body.get("id", 0)
    if change.op == "delete":
        await sale_sets.remove_sale(session, caller, id, now)
        return _Done(id, f"Promotion {id} deleted.")
    values = change.body["set"]
    if change.op == "create":
        row = await sale_sets.create_sale(session, caller, values, now)
        return _Done(row.id, f"Promotion “{row.name}” created.")
    row = await sale_sets.change_sale(session, caller, id, values, now)
    return _Done(id, f"Promotion “{row.name}” changed: {', '.join(values)}.")


async def _list_of(session: AsyncSession, caller: Caller, change: ListChange) -> int:
    """Return the id of the list that the change names. Raise NotFound."""
    if change.list_id is not None:
        return change.list_id
    id = await session.scalar(
        text(
            "SELECT id FROM card_list"
            " WHERE seller_id = :seller AND name_key = :key AND deleted_at IS NULL"
        ),
        {"seller": caller.seller_id, "key": name_key(change.name)},
    )
    if id is None:
        raise errors.NotFound(f"there is no list {change.name!r}")
    return int(id)
