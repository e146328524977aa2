"""Refuses a plan whose enabled or disabled rule selects cards of another of its pricing actions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors
from cardsync.plans.actions import Actions, RuleChange
from cardsync.plans.price_effect import queries_of
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.inputs.cards_to_price import ON_SALE, condition_of
from cardsync.pricing.inputs.rule_queries import need_readable, selections


async def refuse_overlaps(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    actions: Actions,
) -> None:
    """Raises OverlappingRuleTransitions, and InvalidQuery for a scope that can't be read."""
    for change in actions.rules:
        if change.scope:
            await need_readable(session, seller_id, change.scope, f"{change.place}.scope")
    if not any(change.is_transition for change in actions.rules):
        return
    bound: dict[str, Any] = {"seller": seller_id, "now": run.now}
    scopes = await _scopes(session, seller_id, run, actions, bound)
    pairs = [(one, other) for one, other in combinations(scopes, 2) if one[1] or other[1]]
    if not pairs:
        return
    counted = ", ".join(f"count(*) FILTER (WHERE {one[2]} AND {other[2]})" for one, other in pairs)
    statement = f"SELECT {counted} FROM card c WHERE c.seller_id = :seller AND {ON_SALE}"
    named = {name: value for name, value in bound.items() if f":{name}" in statement}
    counts = (await session.execute(text(statement), named)).one()
    for (one, other), cards in zip(pairs, counts, strict=True):
        if cards:
            raise errors.OverlappingRuleTransitions(
                f"{one[0]} and {other[0]} both select {cards} cards, and one of them enables or"
                " disables a rule: send them in plans of their own"
            )


async def _scopes(
    session: AsyncSession,
    seller_id: int,
    run: Run,
    actions: Actions,
    bound: dict[str, Any],
) -> list[tuple[str, bool, str]]:
    """Return each pricing action's place, whether it enables or disables a rule, and the condition
    of its cards.
    """
    of_rules = {rule.id: rule.query for rule in run.rules}
    found = []
    for place, change in enumerate(actions.rules):
        queries = _scope(change, of_rules)
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
