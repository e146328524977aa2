"""Makes proposed and typed prices the targets of their cards, in the caller's transaction.

The caller has locked the seller's state row, and no run holds the lease. Proposed prices are stored
as a pricing run, so that a rollback can restore the former prices. A price with an `until` is
pinned until then, because the next run would replace it; afterwards the rules price the card again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.agents.seller_state.models import SyncState
from cardsync.agents.seller_state.state import lease_is_live
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.database.session import Statement, run_all
from cardsync.platform.money import from_units
from cardsync.prices import standing
from cardsync.prices.decisions.ended import Applied, ended
from cardsync.prices.decisions.retarget import retargeted, write_targets
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.errors import NotEligible
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.models import PriceRun

Trigger = Literal["recommendation", "review"]


# The run that `apply_targets` adds is the newest run: it would hide a run that waits for review.
_WAITS: Final = """
    SELECT state = 'awaiting_review' FROM price_run
     WHERE seller_id = :seller AND state IN ('completed', 'awaiting_review')
     ORDER BY finished_at DESC, id DESC LIMIT 1
"""


async def review_waits(source: Source, state: SyncState) -> bool:
    """Return whether an upload or a pricing run waits for the seller's decision."""
    rows = await rows_of(source)(_WAITS, {"seller": state.seller_id})
    return any(waits for (waits,) in rows) or state.review_upload_id is not None


def must_be_free(state: SyncState, now: datetime) -> None:
    """Raise MutexHeld while a run or a rollback writes prices."""
    if lease_is_live(state, now) and state.lease_expires_at is not None:
        raise errors.MutexHeld(max(1, math.ceil((state.lease_expires_at - now).total_seconds())))


async def must_take_targets(source: Source, state: SyncState, now: datetime) -> tuple[Account, Run]:
    """Return the account and its live run if its proposed prices may become targets now. Raises
    NotEligible, MutexHeld.
    """
    (account, live), waits = await each_of(
        source, live_run(source, state.seller_id, now), review_waits(source, state)
    )
    holds = account.entitlements(now).holds
    if holds:
        raise NotEligible(f"prices of this account are held: {', '.join(holds)}")
    must_be_free(state, now)
    if waits:
        raise NotEligible("prices need your review; confirm or discard them first")
    return account, live


class NewTarget(NamedTuple):
    """A card's new target. `price` is in ten-thousandths of a dollar; with `until`, it is pinned
    until then.
    """

    card_id: int
    price: int
    rule_id: int | None
    until: datetime | None = None


_CHANGES: Final = """
    INSERT INTO price_change (seller_id, run_id, card_id, old_price, new_price, rule_id)
    SELECT :seller, :run, c.id, c.price, w.price, w.rule_id
      FROM unnest(CAST(:ids AS bigint[]), CAST(:prices AS numeric[]), CAST(:rules AS bigint[]))
           AS w (id, price, rule_id)
      JOIN card c ON c.seller_id = :seller AND c.id = w.id
"""
_MARKETPLACE_IDS: Final = """
    SELECT id, marketplace_id FROM card
     WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))
"""


async def apply_targets(
    session: AsyncSession,
    state: SyncState,
    targets: Sequence[NewTarget],
    trigger: Trigger,
    by: str,
    now: datetime,
    also: Sequence[Statement] = (),
) -> int:
    """Write the targets as a completed pricing run, and return the run's id. The statements `also`
    store further consequences.
    """
    count = len(targets)
    made = PriceRun(
        seller_id=state.seller_id,
        trigger=trigger,
        state="completed",
        started_at=now,
        finished_at=now,
        summary={"cards": count, "priced": count, "changed": count},
    )
    session.add(made)
    await session.flush()
    ids = [target.card_id for target in targets]
    values = {
        "seller": state.seller_id,
        "run": made.id,
        "ids": ids,
        "prices": [from_units(target.price) for target in targets],
        "rules": [target.rule_id for target in targets],
        "now": now,
    }
    prices = [target.price for target in targets]
    written = write_targets(state.seller_id, ids, prices, now)
    statements: list[Statement] = [(_CHANGES, values), written, *also]
    if ending := [target for target in targets if target.until is not None]:
        statements.append(await _pin(session, state.seller_id, ending, by, now))
    await run_all(session, statements)
    await ended(session, state, Applied(cards=ids, pushes=True), now)
    return made.id


async def retarget(
    session: AsyncSession, state: SyncState, marketplace_ids: Sequence[int], now: datetime
) -> None:
    """Price the cards whose pins have changed, so that pages, price file and search have a typed
    price at once. A run that writes targets meanwhile restores the pins at its end (`retake_pins`).
    """
    if moved := await retargeted(session, state.seller_id, marketplace_ids, now):
        await ended(session, state, Applied(cards=moved, pushes=True), now)


async def _pin(
    session: AsyncSession,
    seller_id: int,
    targets: Sequence[NewTarget],
    by: str,
    now: datetime,
) -> Statement:
    """Return the statement that pins the prices until their ends. A person's own pin stays: such a
    card gets no recommendation.
    """
    found = {"seller": seller_id, "ids": [target.card_id for target in targets]}
    rows = await session.execute(text(_MARKETPLACE_IDS), found)
    of_card = {row.id: row.marketplace_id for row in rows}
    return standing.put(
        seller_id,
        "pin",
        [of_card[target.card_id] for target in targets],
        now,
        prices=[target.price for target in targets],
        ends=[target.until for target in targets],
        by=by,
        replaces=standing.APPLIED,
    )
