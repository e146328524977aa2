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
    parts_of,
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
    """`moved` holds the cards whose price differs, summed with what was done before; `by_rules`
    says that the rules have moved them.
    """

    result: T
    size: Size
    moved: pl.DataFrame | None
    by_rules: bool


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
    parts = await parts_of(session, seller_id, reach)
    # Cards that fit into one part are read once, and only their rules again.
    seen = await read_cards(session, seller_id, parts[0], now) if len(parts) == 1 else None
    before = [
        await priced(seen or await read_cards(session, seller_id, part, now)) for part in parts
    ]
    own = await _moves_by_itself(session, seller_id, actions, before)
    result = await do()
    await session.flush()
    moved = own
    if own is None and parts:
        sides = zip(parts, before, strict=True)
        moves = [await _moves(session, seller_id, live, *side, seen, now) for side in sides]
        moved = pl.concat(moves)
    past = await past_moves(session, seller_id, now)
    found = None if moved is None else summed(moved, past)
    size = msgspec.structs.replace(
        size_of(found, past, cap_of(live.rules)),
        shop_value=whole,
        loss_budget=None if budget is None else to_units(budget),
    )
    return Weighed(result, size, found, by_rules=own is None)


async def _moves(
    session: AsyncSession,
    seller_id: int,
    live: Run,
    part: Reach,
    before: pl.DataFrame,
    seen: Stock | None,
    now: datetime,
) -> pl.DataFrame:
    then = await read_cards(session, seller_id, part, now, seen)
    after = await priced(then)
    for sale in await _changed_sales(session, seller_id, live.sales, now):
        # A sale that begins later, or behind another one, is judged as if it ran alone.
        alone = replace(sale, starts_at=min(sale.starts_at, now))
        other = await priced(await read_cards(session, seller_id, part, now, then, [alone]))
        after = _lower_worst(after, other)
    return moves_of(before, after)


def _lower_worst(after: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
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
    before: Sequence[pl.DataFrame],
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
        if change.type == "pricing.reprice" and before:
            after = pl.concat(before)
            return moves_of(
                after.with_columns(today="asked", worst="asked"),
                after.with_columns(worst="today"),
            )
    return None
