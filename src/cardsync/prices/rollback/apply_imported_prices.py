"""Writes the prices that an agent imported to the cards, and the former prices to the price
history, in slabs (parts of limited size) under the lease. `platform/work/runner.py` runs this work.

A rollback's event also removes the targets of its cards and the prices that the seller accepted
earlier, so that neither the price file nor the next run overwrites the restored prices. A price
that was observed after the import is not changed, with one exception: it was observed so shortly
after the import that a client's clock may be wrong, and still equals the price that the import
replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import msgspec
import procrastinate
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.agents.seller_state.lease import UnderLease
from cardsync.agents.seller_state.state import Lease, hold_lease, own_state, release_lease
from cardsync.platform import clock
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import run
from cardsync.platform.value_types import Values
from cardsync.platform.work import runner
from cardsync.platform.work.jobs import Work, enqueue, jobs, mark_due
from cardsync.prices.decisions.ended import Applied, ended
from cardsync.prices.limits import CLOCK_SECONDS
from cardsync.prices.models import PriceRollback, RepricingEvent
from cardsync.prices.rollback.brought import LARGEST, RUNS_LOOKED_AT, with_more
from cardsync.prices.rollback.packed_rows import unpack
from cardsync.prices.rollback.rollbacks import end, rollback_of
from cardsync.prices.standing import APPLIED
from cardsync.stock.cards import history
from cardsync.stock.cards.changes import AMOUNTS

STREAM = "repricing"
HOLDER = "repricing"

_OF_ROWS = """
    SELECT c.id, g.old, g.price
      FROM jsonb_to_recordset(CAST(:rows AS jsonb))
           AS g (id bigint, old numeric(12,4), price numeric(12,4))
           JOIN card c ON c.seller_id = :seller AND c.marketplace_id = g.id
     UNION ALL
    SELECT c.id, g.old, g.price
      FROM jsonb_to_recordset(CAST(:rows AS jsonb))
           AS g (id bigint, old numeric(12,4), price numeric(12,4))
           JOIN card c ON c.seller_id = :seller AND c.custom AND NOT c.gone AND c.listing_id = g.id
     WHERE NOT EXISTS (SELECT FROM card d WHERE d.seller_id = :seller AND d.marketplace_id = g.id)
"""
_OF_ROLLBACK = """
    SELECT card_id AS id, current_price AS old, price FROM price_rollback_card
     WHERE seller_id = :seller AND rollback_id = :rollback AND card_id > :after AND card_id <= :last
"""
_VALUES = ", ".join(AMOUNTS)
_MOVED = queries_of(__package__)["moved"].format(amounts=", ".join(f"c.{name}" for name in AMOUNTS))
_MOVE = f"""{_MOVED}, kept AS (
        INSERT INTO price_observation (seller_id, card_id, observed_at, quantity, {_VALUES})
        SELECT :seller, id, observed_at, quantity, {_VALUES} FROM moved
            WHERE observed_at >= :kept_since
        ON CONFLICT (seller_id, card_id, observed_at) DO NOTHING
    )
    UPDATE card c SET price = m.imported, my_store_priced = false,
           observed_at = greatest(:at, m.later), values_hash = 0, updated_at = :now
      FROM moved m WHERE c.seller_id = :seller AND c.id = m.id
"""
# Selects the sums of the moves by the rule of the card's newest price change, and the largest
# moves.
_BROUGHT = queries_of(__package__)["brought"].format(
    moved=_MOVED, runs_looked_at=RUNS_LOOKED_AT, largest=LARGEST
)
_KEEP_BROUGHT = """
    UPDATE repricing_event SET brought = CAST(:brought AS jsonb)
     WHERE seller_id = :seller AND id = :event
"""
_OF_CARDS = """
       AND r.seller_id = :seller AND r.rollback_id = :rollback AND r.card_id > :after
         AND r.card_id <= :last
       AND c.seller_id = :seller AND c.id = r.card_id
"""
_UNASK = f"""
    UPDATE card c SET target_price = NULL, priced_at = :now
      FROM price_rollback_card r
     WHERE c.target_price IS NOT NULL
{_OF_CARDS}"""
# Deletes pins of accepted recommendations and prices accepted beyond the review limits, because
# they would restore prices that the seller rolled back. Pins that a person set are not deleted.
_UNDECIDE = f"""
    DELETE FROM price_decision d USING price_rollback_card r, card c
     WHERE d.seller_id = :seller AND d.marketplace_id = c.marketplace_id
       AND (d.kind = 'pin' AND {APPLIED} OR d.kind = 'accepted' AND d.price <> r.price)
{_OF_CARDS}"""
_TAKE_BACK = (_UNASK, _UNDECIDE)
_NEXT = """
    SELECT max(card_id) FROM (
        SELECT card_id FROM price_rollback_card WHERE seller_id = :seller
            AND rollback_id = :rollback AND card_id > :after
         ORDER BY card_id LIMIT :slab) slab
"""
_COUNT = (
    "UPDATE repricing_event SET moved = moved + :moved WHERE seller_id = :seller AND id = :event"
)
_CHANGING = """
    UPDATE sync_state SET export_fingerprint = NULL, prices_revision = prices_revision + 1
     WHERE seller_id = :seller
"""


@jobs.task(name="pricing.move", queue="imports", pass_context=True)
async def move_prices(context: procrastinate.JobContext, seller_id: int) -> None:
    await runner.take_turn(EVENTS, move_prices, context, seller_id)


async def begin(session: AsyncSession, seller_id: int) -> None:
    """Start the job that handles an event, in the transaction that records the event."""
    await mark_due(session, seller_id, STREAM)
    await enqueue(session, move_prices, seller_id=seller_id)


async def _oldest(session: AsyncSession, seller_id: int) -> RepricingEvent | None:
    statement = select(RepricingEvent).where(
        RepricingEvent.seller_id == seller_id, RepricingEvent.settled_at.is_(None)
    )
    return await session.scalar(
        statement.order_by(RepricingEvent.id).limit(1).execution_options(populate_existing=True)
    )


async def _settle(work: Work, lease: Lease, event: RepricingEvent) -> None:
    rollback = await _rollback_of(work, event)
    served_at = rollback and rollback.served_at
    # A file is imported after it was served, even if the agent's clock is wrong.
    since = max(event.imported_at, served_at or event.imported_at)
    kept_since = await history.prepare(work, lease.seller_id, event.imported_at)
    values: dict[str, object] = {
        "seller": lease.seller_id,
        "event": event.id,
        "at": event.imported_at,
        "since": since,
        "nearly": since + timedelta(seconds=CLOCK_SECONDS),
        "kept_since": kept_since,
        "rollback": event.rollback_id,
    }
    size = work.settings.slab_rows
    rows = await asyncio.to_thread(unpack, event.rows)
    for start in range(0, len(rows), size):
        chunk = msgspec.json.encode(rows[start : start + size]).decode()
        await _slab(work, lease, values | {"rows": chunk}, _OF_ROWS)
    if rollback is not None and rollback.state != "applied":
        given = "" if rows else _OF_ROLLBACK
        after = 0
        while (last := await _next(work, values | {"after": after, "slab": size})) is not None:
            await _slab(
                work,
                lease,
                values | {"after": after, "last": last},
                given,
                _TAKE_BACK,
            )
            after = last
    await _end(work, lease, event)


async def _rollback_of(work: Work, event: RepricingEvent) -> PriceRollback | None:
    if event.rollback_id is None:
        return None
    async with work.database.tenant(event.seller_id) as session:
        return await rollback_of(session, event.seller_id, event.rollback_id)


async def _next(work: Work, values: Values) -> int | None:
    async with work.database.tenant(values["seller"]) as session:
        bound = {name: values[name] for name in ("seller", "rollback", "after", "slab")}
        last: int | None = await session.scalar(text(_NEXT), bound)
        return last


async def _slab(
    work: Work,
    lease: Lease,
    values: dict[str, object],
    given: str,
    then: Sequence[str] = (),
) -> None:
    """Move the cards of the statement `given`, if any, and run the statements `then`, in one
    transaction. The transaction first locks the seller's row, so that no worker takes over the
    lease meanwhile.
    """
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        await hold_lease(session, lease, now)
        await run(session, _CHANGING, {"seller": lease.seller_id})
        moved = 0
        if given:
            brought = (await session.execute(text(_BROUGHT.format(given=given)), values)).one()
            row = await session.get_one(RepricingEvent, (lease.seller_id, values["event"]))
            kept = msgspec.json.encode(with_more(row.brought, *brought)).decode()
            await run(session, _KEEP_BROUGHT, values | {"brought": kept})
            moved = await run(session, _MOVE.format(given=given), values | {"now": now})
        for statement in then:
            await run(session, statement, values | {"now": now})
        await run(session, _COUNT, values | {"moved": moved})


async def _fail(
    work: Work,
    lease: Lease,
    event: RepricingEvent,
    code: str | None,
    why: str,
) -> None:
    """End an event that failed. The next upload has the prices. A rollback stays served until its
    file is imported again or it expires.
    """
    message = why or "the prices could not be moved"
    await _end(work, lease, event, {"code": code or "internal_error", "message": message})


async def _end(
    work: Work, lease: Lease, event: RepricingEvent, error: dict[str, str] | None = None
) -> None:
    """End the event in a last transaction: mark the rollback as applied unless there is an error,
    and release the lease.
    """
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        state = await own_state(session, lease)
        if error is None and event.rollback_id is not None:
            rollback = await rollback_of(session, lease.seller_id, event.rollback_id)
            if rollback.state != "applied":
                await end(session, state, rollback, "applied", now)
        row = await session.get_one(RepricingEvent, (lease.seller_id, event.id))
        row.settled_at, row.rows, row.error = now, None, error
        await ended(session, state, Applied(), now)
        await release_lease(session, lease)


EVENTS = runner.Stream[RepricingEvent, Lease](
    STREAM,
    UnderLease(HOLDER),
    oldest=_oldest,
    work=_settle,
    fail=_fail,
)
work_off_one = partial(runner.work_off_one, EVENTS)
