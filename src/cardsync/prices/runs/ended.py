"""Stores what follows from a pricing, of an upload or of the stored cards, in its last transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.exported import end_pricing
from cardsync.agents.seller_state.models import SyncState
from cardsync.prices.decisions import on_sale
from cardsync.prices.decisions.confirmed import remember
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.prices.decisions.held_prices import hold_gates, hold_prices
from cardsync.prices.decisions.keep_reviews import keep_found
from cardsync.prices.decisions.push_task import push_prices, withdraw
from cardsync.prices.decisions.retarget import retake_pins


@dataclass(frozen=True)
class Ended:
    """The findings of a pricing. Values that the run did not compute are None, and the stored ones
    stay.
    """

    # The export has this fingerprint from now on.
    fingerprint: str
    # Every target is set, and no further run over the same cards follows at once.
    completed: bool
    # The export has prices for which no agent has a task, or no prices any more.
    pushes: bool = False
    withdraws: bool = False
    # The agent's cycle that brought the cards.
    cycle: str | None = None
    # A cap limits these prices; `lines` None means that all product lines were priced.
    limited: pl.DataFrame | None = None
    gated: pl.DataFrame | None = None
    lines: Sequence[str] | None = None
    sold: on_sale.OnSale | None = None
    reviews: RunFindings | None = None
    # The leaps that the seller confirmed.
    confirmed: pl.DataFrame | None = None
    # A run over the same cards follows at once: the pricing ends with it.
    followed: bool = False


async def settle(session: AsyncSession, own: SyncState, ended: Ended, now: datetime) -> None:
    """Store the results of the pricing. `own` is the seller's row, locked."""
    seller_id = own.seller_id
    if ended.completed:
        await hold_prices(session, seller_id, ended.limited, now, ended.lines)
        await hold_gates(session, seller_id, ended.gated)
    if ended.sold is not None:
        await on_sale.settle(session, seller_id, ended.sold, now)
    if ended.reviews is not None:
        await keep_found(session, seller_id, ended.reviews, now)
    if ended.confirmed is not None:
        await remember(session, seller_id, ended.confirmed, now)
    if ended.pushes:
        await push_prices(session, seller_id, now, ended.cycle)
    elif ended.withdraws:
        await withdraw(session, seller_id, now)
    await end_pricing(session, own, ended.fingerprint, marks=not ended.followed)
    if ended.reviews is not None:
        await retake_pins(session, own, ended.reviews, now)
