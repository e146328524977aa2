"""Judges a plan by trying it: its actions are carried out inside a savepoint, the prices before and
after are compared, and the savepoint is rolled back. Only the size of the change, its basis and the
results remain.

The caller holds the seller's state row: rules, pins and prices do not change meanwhile.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.plans.actions import Actions
from cardsync.plans.basis import Basis, basis_of
from cardsync.plans.carry_out import Done, carry_out
from cardsync.plans.largest_moves import largest_moves
from cardsync.plans.measure_write import weigh
from cardsync.plans.overlap import refuse_overlaps
from cardsync.plans.price_effect import reach_of
from cardsync.plans.risk import Risk, Size, risk_of
from cardsync.pricing.inputs.rule_rows import run_of
from cardsync.settings import Settings


class Judged(NamedTuple):
    """`moved` holds the cards whose price would differ, for the loss limits, and `cards` the
    largest of these moves as a page shows them.
    """

    size: Size
    risk: Risk
    basis: Basis
    results: list[Done]
    moved: pl.DataFrame | None
    cards: list[dict[str, Any]]


async def judge(
    session: AsyncSession,
    caller: Caller,
    actions: Actions,
    now: datetime,
    settings: Settings,
) -> Judged:
    """Raises what the operations raise, and OverlappingRuleTransitions."""
    seller_id = caller.seller_id
    account = await session.get_one(Account, seller_id)
    live = await run_of(session, account, now)
    await refuse_overlaps(session, seller_id, live, actions)
    reach = await reach_of(session, seller_id, live, actions)
    basis = await basis_of(session, seller_id, actions, now)

    async def do() -> list[Done]:
        return await carry_out(session, caller, actions, now, settings)

    savepoint = await session.begin_nested()
    try:
        weighed = await weigh(session, account, live, actions, reach, do, now)
        cards = await largest_moves(session, seller_id, weighed)
        changed = bool(actions.own) or await basis_of(session, seller_id, actions, now) != basis
    finally:
        await savepoint.rollback()
    deletes = any(change.op == "delete" for change in actions.changes)
    size = msgspec.structs.replace(
        weighed.size,
        cards=max(weighed.size.cards, sum(done.cards for done in weighed.result)),
        changes=changed,
        deletes=deletes,
    )
    return Judged(size, risk_of(size), basis, _not_made(weighed.result), weighed.moved, cards)


async def tried(
    session: AsyncSession,
    caller: Caller,
    actions: Actions,
    now: datetime,
    settings: Settings,
) -> list[Done]:
    """Return what the actions would do; nothing stays, and nothing is priced."""
    savepoint = await session.begin_nested()
    try:
        return _not_made(await carry_out(session, caller, actions, now, settings))
    finally:
        await savepoint.rollback()


def _not_made(results: list[Done]) -> list[Done]:
    """Return the results without the ids of new things, which differ when the plan is applied."""
    making = ("create", "request", "start")
    return [done._replace(id=None) if done.op in making else done for done in results]
