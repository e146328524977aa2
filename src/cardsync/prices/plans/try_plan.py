"""Judges a plan by an attempt: its actions are carried out inside a savepoint, and the prices
before and after are compared. Unless the attempt is kept, only its effect, its basis and its
results remain.

The caller has locked the seller's state row: rules, pins and prices do not change meanwhile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.errors import OverlappingRuleTransitions
from cardsync.prices.inputs.cards_to_price import ON_SALE, condition_of
from cardsync.prices.inputs.rule_queries import need_readable, selections
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.plans.actions import Actions, RuleChange
from cardsync.prices.plans.attempt import Attempt, Effect, attempt
from cardsync.prices.plans.basis import Basis, basis_of
from cardsync.prices.plans.carry_out import ChangeDone, carry_out
from cardsync.prices.plans.largest_moves import largest_moves
from cardsync.prices.plans.price_effect import queries_of, reach_of


class Judged(NamedTuple):
    """A plan that is in effect within an attempt. `cards` has its largest moves, in the form that a
    page shows.
    """

    attempt: Attempt
    effect: Effect
    basis: Basis
    results: list[ChangeDone]
    cards: list[JsonObject]


@asynccontextmanager
async def judged(
    session: AsyncSession,
    caller: Caller,
    actions: Actions,
    now: datetime,
    settings: Settings,
) -> AsyncIterator[Judged]:
    """Carry out the actions in a savepoint and run the block, which decides whether they are kept.
    Raises the errors of the operations, and OverlappingRuleTransitions.
    """
    seller_id = caller.seller_id
    account, live = await live_run(session, seller_id, now)
    await refuse_overlaps(session, seller_id, live, actions)
    reach = await reach_of(session, seller_id, live, actions)
    basis = await basis_of(session, seller_id, actions, now)
    async with attempt(session, caller, account, live, actions, reach) as attempted:
        results = await carry_out(session, caller, actions, now, settings)
        effect = await attempted.effect()
        cards = await largest_moves(session, seller_id, effect, now)
        size = msgspec.structs.replace(
            effect.size,
            cards=max(effect.size.cards, sum(done.cards for done in results)),
            changes=bool(actions.own) or await basis_of(session, seller_id, actions, now) != basis,
        )
        yield Judged(attempted, effect._replace(size=size), basis, results, cards)


async def tried(
    session: AsyncSession,
    caller: Caller,
    actions: Actions,
    now: datetime,
    settings: Settings,
) -> list[ChangeDone]:
    """Carry out the actions in a trial, and return their results. Nothing is stored, and nothing is
    priced.
    """
    savepoint = await session.begin_nested()
    try:
        return not_made(await carry_out(session, caller, actions, now, settings))
    finally:
        await savepoint.rollback()


def not_made(results: list[ChangeDone]) -> list[ChangeDone]:
    """Return the results without the ids of new objects, which differ when the plan is applied."""
    making = ("create", "request", "start")
    return [done._replace(id=None) if done.op in making else done for done in results]


async def refuse_overlaps(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    actions: Actions,
) -> None:
    """Refuse a plan that enables or disables a rule whose cards another pricing action selects,
    too. Raise OverlappingRuleTransitions, and InvalidQuery for a scope that can't be read.
    """
    read = {
        change.scope: await need_readable(session, seller_id, change.scope, f"{change.place}.scope")
        for change in actions.rules
        if change.scope
    }
    if not any(change.is_transition for change in actions.rules):
        return
    bound: dict[str, object] = {"seller": seller_id, "now": run.now}
    scopes = await _scopes(session, seller_id, run, actions, read, bound)
    pairs = [(one, other) for one, other in combinations(scopes, 2) if one[1] or other[1]]
    if not pairs:
        return
    counted = ", ".join(f"count(*) FILTER (WHERE {one[2]} AND {other[2]})" for one, other in pairs)
    statement = f"SELECT {counted} FROM card c WHERE c.seller_id = :seller AND {ON_SALE}"
    named = {name: value for name, value in bound.items() if f":{name}" in statement}
    counts = (await session.execute(text(statement), named)).one()
    for (one, other), cards in zip(pairs, counts, strict=True):
        if cards:
            raise OverlappingRuleTransitions(
                f"{one[0]} and {other[0]} both match {cards} cards, and one of them enables or disables a rule: send them in separate plans"
            )


async def _scopes(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    actions: Actions,
    read: Mapping[str, str],
    bound: dict[str, object],
) -> list[tuple[str, bool, str]]:
    """Return for each pricing action its place, whether it enables or disables a rule, and the
    condition that selects its cards.
    """
    of_rules = {rule.id: rule.query for rule in run.rules}
    found = []
    for place, change in enumerate(actions.rules):
        queries = [read.get(query, query) for query in _scope(change, of_rules)]
        selected = await selections(session, seller_id, queries)
        conditions = [condition_of(one, bound, f"o{place}x{n}") for n, one in enumerate(selected)]
        found.append((change.place, change.is_transition, f"({' OR '.join(conditions)})"))
    if actions.pins:
        bound["plan_pins"] = [pin.marketplace_id for pin in actions.pins]
        where = actions.pins[0].place.partition(".")[0]
        found.append((where, False, "(c.marketplace_id = ANY (CAST(:plan_pins AS bigint[])))"))
    return found


def _scope(change: RuleChange, of_rules: dict[int, str]) -> list[str]:
    return [change.scope] if change.scope is not None else queries_of(change, of_rules)
