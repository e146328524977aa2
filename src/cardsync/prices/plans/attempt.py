"""Attempts a change of prices in a savepoint and measures its effect: the cards that it can affect
are priced before and after it, and earlier moves without a member's click are added.

The caller has locked the seller's state row: rules, pins and prices do not change meanwhile. A
separate process prices the cards of a large shop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, Protocol

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
from cardsync.prices.loss.moves import past_moves, record, take_back
from cardsync.prices.loss.risk import Size
from cardsync.prices.plans.actions import Actions
from cardsync.prices.plans.asked_data import asked_of
from cardsync.prices.plans.price_effect import (
    PART,
    PART_BESIDE,
    Reach,
    ShopValue,
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


class Effect(NamedTuple):
    """The effect of a change. `moved` holds the cards whose price differs, summed with earlier
    moves; `by_rules` is true if the rules moved these cards.
    """

    size: Size
    moved: pl.DataFrame | None
    by_rules: bool


@asynccontextmanager
async def attempt(
    session: AsyncSession,
    caller: Caller,
    account: Account,
    live: Run,
    actions: Actions,
    reach: Reach | None,
) -> AsyncIterator[Attempt]:
    """Run the block, which makes the change, in a savepoint. The savepoint is rolled back unless
    the block calls `keep`. Raise the errors of the block.
    """
    savepoint = await session.begin_nested()
    try:
        attempted = await _before(session, caller, account, live, actions, reach)
        yield attempted
    except BaseException:
        await savepoint.rollback()
        raise
    if attempted.kept:
        await savepoint.commit()
    else:
        await savepoint.rollback()


@dataclass
class Attempt:
    """A change and the figures from before it; the block of `attempt` makes the change."""

    session: AsyncSession
    seller_id: int
    live: Run
    actions: Actions
    shop: ShopValue
    loss_budget: int | None
    # The moves of the change, if the change is a rollback, a listing or a run; else None.
    own: pl.DataFrame | None
    scales: _Scales | None
    past: pl.DataFrame
    kept: bool = False

    def keep(self) -> None:
        """Let the change stay in effect after the block."""
        self.kept = True

    async def effect(self) -> Effect:
        """Measure the change. Call this function after the block has made the change."""
        session, seller_id, live, now = self.session, self.seller_id, self.live, self.live.now
        await session.flush()
        moves = self.own
        if moves is None and self.scales is not None:
            account = await session.get_one(Account, seller_id, populate_existing=True)
            then = await run_of(session, account, now)
            if "costs" in asked_of(then):
                await settle_now(session, seller_id, now)
            moves = await self.scales.moves(then, _changed_sales(live.sales, then.sales, now))
        found = None if moves is None else summed(moves, self.past)
        size = msgspec.structs.replace(
            size_of(found, self.past, cap_of(live.rules), self.shop),
            deletes=any(change.op == "delete" for change in self.actions.changes),
            promotes=any(own.type == "pricing.sales" for own in self.actions.own),
            loss_budget=self.loss_budget,
        )
        return Effect(size, found, by_rules=self.own is None)


async def _before(
    session: AsyncSession,
    caller: Caller,
    account: Account,
    live: Run,
    actions: Actions,
    reach: Reach | None,
) -> Attempt:
    seller_id, budget = account.seller_id, account.loss_budget
    shop = await shop_value(session, seller_id)
    own = await _own_moves(session, seller_id, actions)
    starts_run = any(change.type == "pricing.reprice" for change in actions.own)
    scales = None
    if own is None and reach is not None:
        if "costs" in asked_of(live):
            await settle_now(session, seller_id, live.now)
        scales = await _scales(session, caller, live, actions, reach)
        if starts_run:
            own = await scales.moves(None)
    # A promotion that the write ends still counts in the prices before the write, so that its end
    # is not a separate move.
    past = await past_moves(session, seller_id, live.now, "rules" if own is None else "targets")
    if starts_run:
        # A run applies changes that were counted when they were written.
        past = past.clear()
    loss_budget = None if budget is None else to_units(budget)
    return Attempt(session, seller_id, live, actions, shop, loss_budget, own, scales, past)


async def count(
    session: AsyncSession, caller: Caller, effect: Effect, now: datetime, source: str = ""
) -> None:
    """Count a kept change against the loss limits while its source is in effect (`loss/moves.py`).
    A member's change cancels earlier moves.
    """
    if effect.moved is None or caller.identity.own_script:
        return
    if caller.member_id is None:
        await record(session, caller.seller_id, effect.moved, now, source)
    elif effect.by_rules:
        await take_back(session, caller.seller_id, effect.moved)


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
    """Compares prices in another process, which does not see the changes of this transaction. So
    the run must contain these changes.
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
