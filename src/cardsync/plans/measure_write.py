"""Weighs a write of prices: the cards that it can touch are priced before and after it, and what
was done before without a click is added.

The caller holds the seller's state row and a savepoint: rules, pins and prices do not change
meanwhile, and the write can be taken back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

import msgspec
import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.money import to_units
from cardsync.plans.actions import Actions
from cardsync.plans.price_effect import (
    Reach,
    cap_of,
    moves_of,
    priced,
    read_cards,
    shop_value,
    size_of,
)
from cardsync.plans.risk import Size
from cardsync.pricing.engine.rules import Sale
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.inputs.cards_to_price import Stock
from cardsync.pricing.inputs.rule_rows import sales_of
from cardsync.pricing.loss.loss_limits import summed
from cardsync.pricing.loss.moves import past_moves
from cardsync.pricing.rollback import scope as rollbacks
from cardsync.quick_add import served_entries as listings

T = TypeVar("T")
Do = Callable[[], Awaitable[T]]


@dataclass(frozen=True)
class Weighed(Generic[T]):
    """`moved` holds the cards whose price differs, summed with what was done before; `after` holds
    the cards as they are priced then, unless the write changes no rule.
    """

    result: T
    size: Size
    moved: pl.DataFrame | None
    after: Stock | None


async def weigh(
    session: AsyncSession,
    account: Account,
    live: Run,
    actions: Actions,
    reach: Reach | None,
    do: Do[T],
    now: datetime,
) -> Weighed[T]:
    """Do the write and weigh it. Raises what the write raises."""
    seller_id, budget = account.seller_id, account.loss_budget
    whole = await shop_value(session, seller_id)
    seen = await read_cards(session, seller_id, reach, now)
    moved = await _moves_by_itself(session, seller_id, actions, seen)
    result = await do()
    await session.flush()
    after = None
    if moved is None:
        after = await read_cards(session, seller_id, reach, now, seen)
        moved = await _moves(session, seller_id, live, reach, seen, after, now)
    past = await past_moves(session, seller_id, now)
    found = None if moved is None else summed(moved, past)
    size = msgspec.structs.replace(
        size_of(found, past, cap_of(live.rules)),
        shop_value=whole,
        loss_budget=None if budget is None else to_units(budget),
    )
    return Weighed(result, size, found, after)


async def _moves(
    session: AsyncSession,
    seller_id: int,
    live: Run,
    reach: Reach | None,
    seen: Stock | None,
    then: Stock | None,
    now: datetime,
) -> pl.DataFrame | None:
    before, after = await priced(seen), await priced(then)
    for sale in await _changed_sales(session, seller_id, live.sales, now):
        # A sale that begins later, or behind another one, is judged as if it ran alone.
        alone = replace(sale, starts_at=min(sale.starts_at, now))
        other = await priced(await read_cards(session, seller_id, reach, now, seen, [alone]))
        after = _lower_worst(after, other)
    return moves_of(before, after)


def _lower_worst(after: pl.DataFrame | None, other: pl.DataFrame | None) -> pl.DataFrame | None:
    if after is None or other is None:
        return after
    joined = after.join(other.select("id", other="worst"), on="id", how="left")
    return joined.with_columns(worst=pl.min_horizontal("worst", "other")).drop("other")


async def _changed_sales(
    session: AsyncSession,
    seller_id: int,
    were: Sequence[Sale],
    now: datetime,
) -> list[Sale]:
    sales = await sales_of(session, seller_id)
    return [sale for sale in sales if sale not in were and sale.enabled and sale.ends_at > now]


async def _moves_by_itself(
    session: AsyncSession,
    seller_id: int,
    actions: Actions,
    seen: Stock | None,
) -> pl.DataFrame | None:
    """Return the moves of a write that changes no rule: a run asks what the rules ask already, a
    rollback goes back to earlier prices, and a listing of more copies has a price of its own. None
    for every other write.
    """
    for change in actions.own:
        moved = None
        if change.type == "pricing.rollback":
            moved = await rollbacks.moves_of(session, seller_id, change.body["scope"])
        if change.type == "quick_add.publish":
            moved = await listings.moves_of(session, seller_id, change.body["ids"])
        if moved is not None:
            return moved.with_columns(worst="today", worst_after="today_after")
        if change.type == "pricing.reprice" and seen is not None:
            after = await priced(seen)
            assert after is not None
            asked = seen.cards.select("id", today=pl.coalesce("target_price", "current_price"))
            before = after.drop("today", "worst").join(asked, on="id")
            return moves_of(
                before.with_columns(worst="today"),
                after.with_columns(worst="today"),
            )
    return None
