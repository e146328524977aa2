"""Lists all consequences of changed prices or targets of cards, whatever the cause: an upload, a
run, or prices that were accepted, typed, imported or rolled back. The last transaction of the
change writes all consequences.

Canceled work (`agents/sync/cancel.py`) is in a lower layer, which cannot import this module, and
applies the last two effects itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import polars as pl
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.exported import end_pricing, fingerprint, fingerprint_after
from cardsync.agents.seller_state.models import SyncState
from cardsync.prices.decisions import on_sale
from cardsync.prices.decisions.confirmed import remember
from cardsync.prices.decisions.found_in_run import RunFindings
from cardsync.prices.decisions.held_prices import hold_gates, hold_prices
from cardsync.prices.decisions.keep_reviews import keep_found
from cardsync.prices.decisions.push_task import push_prices, withdraw
from cardsync.prices.decisions.retarget import retake_pins


@dataclass
class Applied:
    """A change of prices. A value that the change did not compute is None, and the stored value
    stays.
    """

    # The price file's new fingerprint. If it is None, the stored fingerprint is updated by `cards`;
    # without `cards`, the fingerprint is computed from all cards.
    fingerprint: str | None = None
    cards: Sequence[int] = ()
    # Whether every target is written and no further run over the same cards follows at once.
    completed: bool = False
    # `pushes`: the agent needs a task to apply the price file. `withdraws`: without `pushes`, the
    # agent's waiting task is withdrawn.
    pushes: bool = False
    withdraws: bool = False
    # The agent's sync cycle that uploaded the cards.
    cycle: str | None = None
    # The cards that a cap limits. `lines` are the product lines that were priced; None means all.
    limited: pl.DataFrame | None = None
    gated: pl.DataFrame | None = None
    lines: Sequence[str] | None = None
    sold: on_sale.OnSale | None = None
    reviews: RunFindings | None = None
    # The leaps that the seller confirmed.
    confirmed: pl.DataFrame | None = None
    # Whether a run over the same cards follows at once, which then ends the pricing.
    followed: bool = False


class Effect(NamedTuple):
    """A consequence of changed prices. If `when` is true of the `Applied`, `do` gets the `Applied`
    and the seller's locked state row.
    """

    name: str
    when: Callable[[Applied], object]
    do: Callable[[AsyncSession, SyncState, Any, datetime], Awaitable[object]]


async def _retake_pins(session: AsyncSession, own: SyncState, of: Applied, now: datetime) -> None:
    """Restore the prices that a person typed while the run wrote its targets. The run's fingerprint
    does not contain these prices, and the agent needs a task to apply them.
    """
    assert of.reviews is not None
    if cards := await retake_pins(session, own.seller_id, of.reviews, now):
        of.cards, of.pushes = cards, True


async def _store_fingerprint(
    session: AsyncSession, own: SyncState, of: Applied, now: datetime
) -> None:
    known = of.fingerprint
    if of.cards:
        before = known or own.export_fingerprint
        known = await fingerprint_after(session, own.seller_id, before, of.cards)
    exported = known or await fingerprint(session, own.seller_id)
    await end_pricing(session, own, exported, marks=not of.followed)


EFFECTS: Final = (
    Effect(
        "caps that hold prices",
        lambda of: of.completed,
        lambda session, own, of, now: hold_prices(
            session, own.seller_id, of.limited, now, of.lines
        ),
    ),
    Effect(
        "market gates that hold prices",
        lambda of: of.completed,
        lambda session, own, of, now: hold_gates(session, own.seller_id, of.gated),
    ),
    Effect(
        "promotions of the targets",
        lambda of: of.sold,
        lambda session, own, of, now: on_sale.settle(session, own.seller_id, of.sold, now),
    ),
    Effect(
        "prices that wait for a review",
        lambda of: of.reviews,
        lambda session, own, of, now: keep_found(session, own.seller_id, of.reviews, now),
    ),
    Effect(
        "leaps that the seller confirmed",
        lambda of: of.confirmed is not None,
        lambda session, own, of, now: remember(session, own.seller_id, of.confirmed, now),
    ),
    Effect("prices that a person typed while the run wrote", lambda of: of.reviews, _retake_pins),
    Effect(
        "the sync app's task",
        lambda of: of.pushes,
        lambda session, own, of, now: push_prices(session, own.seller_id, now, of.cycle),
    ),
    Effect(
        "no task where no price is asked",
        lambda of: of.withdraws and not of.pushes,
        lambda session, own, of, now: withdraw(session, own.seller_id, now),
    ),
    Effect(
        "the price file's fingerprint, and the figures of Today, the network and suggestions",
        lambda of: True,
        _store_fingerprint,
    ),
)


async def ended(session: AsyncSession, own: SyncState, applied: Applied, now: datetime) -> None:
    for effect in EFFECTS:
        if effect.when(applied):
            await effect.do(session, own, applied, now)
