"""Measures a write of prices: the cards that it can affect are priced before and after it, and
earlier moves without a member's click are added.

The caller holds the seller's state row and a savepoint: rules, pins and prices do not change
meanwhile, and the write can be rolled back. A separate process prices the cards of a large shop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Generic, Protocol, TypeVar

import msgspec
import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform.database.session import Database
from cardsync.platform.money import to_units
from cardsync.platform.settings import Settings
from cardsync.prices.engine.rules import Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.simulate import moved
from cardsync.prices.inputs.cards_to_price import Stock
from cardsync.prices.inputs.rule_rows import run_of
from cardsync.prices.loss.loss_limits import SIDES, summed
from cardsync.prices.loss.moves import past_moves
from cardsync.prices.loss.risk import Size
from cardsync.prices.plans.actions import Actions
from cardsync.prices.plans.asked_data import asked_of
from cardsync.prices.plans.price_effect import (
    PART,
    PART_BESIDE,
    Reach,
    cap_of,
    parts_of,
    priced,
    read_cards,
    shop_value,
    size_of,
)
from cardsync.prices.rollback import scope as rollbacks
from cardsync.sales.lots.settle_uses import settle_now
from cardsync.stock.quick_add import served_entries as listings
from cardsync.web.heavy_work import HeavyWork, heavy_for

T = TypeVar("T")
Do = Callable[[], Awaitable[T]]


@dataclass(frozen=True)
class Weighed(Generic[T]):
    """`moved` holds the cards whose price differs, summed with earlier moves; `by_rules` is true if
    the rules moved these cards.
    """

    result: T
    size: Size
    moved: pl.DataFrame | None
    by_rules: bool


async def weigh(
    session: AsyncSession,
    caller: Caller,
    account: Account,
    live: Run,
    actions: Actions,
    reach: Reach | None,
    do: Do[T],
    now: datetime,
) -> Weighed[T]:
    """Do the write and measure it. Raises the errors of the write."""
    seller_id, budget = account.seller_id, account.loss_budget
    whole = await shop_value(session, seller_id)
    moved = await _own_moves(session, seller_id, actions)
    scales = None
    if moved is None and reach is not None:
        if "costs" in asked_of(live):
            await settle_now(session, seller_id, now)
        scales = await _scales(session, caller, live, actions, reach)
    if scales is not None and any(own.type == "pricing.reprice" for own in actions.own):
        moved = await scales.moves(None)
    by_rules = moved is None
    # A promotion that the write ends still counts in the prices before the write, so that its end
    # is not a separate move.
    past = await past_moves(session, seller_id, now, "rules" if by_rules else "targets")
    if any(own.type == "pricing.reprice" for own in actions.own):
        # A run applies changes that were counted when they were written.
        past = past.clear()
    result = await do()
    await session.flush()
    if moved is None and scales is not None:
        fresh = await session.get_one(Account, seller_id, populate_existing=True)
        then = await run_of(session, fresh, now)
        if "costs" in asked_of(then):
            await settle_now(session, seller_id, now)
        moved = await scales.moves(then, _changed_sales(live.sales, then.sales, now))
    found = None if moved is None else summed(moved, past)
    size = msgspec.structs.replace(
        size_of(found, past, cap_of(live.rules), whole),
        loss_budget=None if budget is None else to_units(budget),
    )
    return Weighed(result, size, found, by_rules)


class _Scales(Protocol):
    """Compares the prices before a write with those after it. An instance is created before the
    write.
    """

    async def moves(self, then: Run | None, changed: Sequence[Sale] = ()) -> pl.DataFrame:
        """Return the moves to the prices after the write: by the run `then`, and by each changed
        sale as if it ran alone. Without `then`, return the moves from the stored targets to the
        targets of the rules.
        """


async def _scales(
    session: AsyncSession,
    caller: Caller,
    live: Run,
    actions: Actions,
    reach: Reach,
) -> _Scales:
    if actions.are_in_run:
        heavy = await heavy_for(session, caller.seller_id)
        if heavy is not None:
            return _Beside(heavy, caller, live, reach)
    parts = await parts_of(session, caller.seller_id, reach, PART, live.now)
    return await _Here.made(session, caller.seller_id, live, parts, in_run=actions.are_in_run)


@dataclass(frozen=True)
class _Beside:
    """Compares prices outside the transaction. The transaction's changes are not visible there, so
    the run must contain them.
    """

    heavy: HeavyWork
    caller: Caller
    live: Run
    reach: Reach

    async def moves(self, then: Run | None, changed: Sequence[Sale] = ()) -> pl.DataFrame:
        return await self.heavy.read_apart(
            moves_beside, self.caller, None, self.live.now, self.live, self.reach, then, changed
        )


async def moves_beside(
    database: Database,
    caller: Caller,
    settings: Settings,
    now: datetime,
    live: Run,
    reach: Reach,
    then: Run | None,
    changed: Sequence[Sale],
) -> pl.DataFrame:
    """Return the moves of a write that is not committed. This is a heavy read."""
    seconds, seller_id = settings.read_seconds, caller.seller_id
    async with database.bounded(seller_id, seconds, snapshot=True) as session:
        # This process has enough memory for all cards of most shops.
        parts = await parts_of(session, seller_id, reach, PART_BESIDE, live.now)
        here = await _Here.made(session, seller_id, live, parts, in_run=True)
        return await here.moves(then, changed)


@dataclass(frozen=True)
class _Here:
    """Compares prices in the write's own transaction, one part of the cards at a time. Cards that
    fit into one part are read once; after the write only their rules are read again.
    """

    session: AsyncSession
    seller_id: int
    now: datetime
    parts: Sequence[Reach]
    before: Sequence[pl.DataFrame]
    seen: Stock | None
    # Whether the run contains every change of the write.
    in_run: bool

    @classmethod
    async def made(
        cls,
        session: AsyncSession,
        seller_id: int,
        live: Run,
        parts: Sequence[Reach],
        *,
        in_run: bool,
    ) -> _Here:
        read = partial(read_cards, session, seller_id, now=live.now, run=live)
        seen = await read(parts[0]) if len(parts) == 1 else None
        before = [await priced(seen or await read(part)) for part in parts]
        return cls(session, seller_id, live.now, parts, before, seen, in_run)

    async def moves(self, then: Run | None, changed: Sequence[Sale] = ()) -> pl.DataFrame:
        if then is None:
            asked = pl.concat(self.before)
            return moved(
                asked.with_columns(today="asked", worst="asked"),
                asked.with_columns(worst="today"),
                SIDES,
            )
        sides = zip(self.parts, self.before, strict=True)
        return pl.concat([await self._moves(*side, then, changed) for side in sides])

    async def _moves(
        self, part: Reach, before: pl.DataFrame, then: Run, changed: Sequence[Sale]
    ) -> pl.DataFrame:
        read = partial(
            read_cards, self.session, self.seller_id, part, self.now, run=then, in_run=self.in_run
        )
        stock = await read(None if part.anew else self.seen)
        after = await priced(stock)
        for sale in changed:
            # A sale that begins later, or is ranked behind another sale, is judged as if it ran
            # alone.
            alone = replace(sale, starts_at=min(sale.starts_at, self.now))
            after = _lower_worst(after, await priced(await read(stock, [alone])))
        return moved(before, after, SIDES)


def _lower_worst(after: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    joined = after.join(other.select("id", other="worst"), on="id", how="left")
    return joined.with_columns(worst=pl.min_horizontal("worst", "other")).drop("other")


def _changed_sales(were: Sequence[Sale], sales: Sequence[Sale], now: datetime) -> list[Sale]:
    return [sale for sale in sales if sale not in were and sale.enabled and sale.ends_at > now]


async def _own_moves(
    session: AsyncSession,
    seller_id: int,
    actions: Actions,
) -> pl.DataFrame | None:
    """Return the moves of a write that no rule prices: a rollback restores earlier prices, and a
    listing of more copies has its own price. Return None for every other write.
    """
    for change in actions.own:
        moved = None
        if change.type == "pricing.rollback":
            moved = await rollbacks.moves_of(session, seller_id, change.body["scope"])
        if change.type == "quick_add.publish":
            moved = await listings.moves_of(session, seller_id, change.body["ids"])
            moved = moved.with_columns(source=pl.format("listing {}", "entry")).drop("entry")
        if moved is not None:
            return moved.with_columns(worst="today", worst_after="today_after")
    return None
