"""Moving cards to the prices that an agent imported: a recorded event in, current prices and
their history out, in slabs under the lease.

A rollback's event also takes the targets of its cards away, so that nothing pushes the new prices
straight back before the next run. A price that was seen after the import stays as it was seen.
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import procrastinate
import psycopg
import structlog
from sqlalchemy import select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.cards import history
from cardsync.cards.changes import AMOUNTS
from cardsync.cards.exported import fingerprint
from cardsync.database.session import run
from cardsync.pricing.models import PriceRollback, RepricingEvent
from cardsync.pricing.rollback.rollbacks import end, rollback_of
from cardsync.seller_state.state import (
    CancelRequested,
    Lease,
    LeaseLost,
    hold_lease,
    own_state,
    release_lease,
    take_lease,
)
from cardsync.work.jobs import Work, enqueue, jobs, mark_due, work_of
from cardsync.work.setbacks import PutBack
from cardsync.work.streams import due_of, forget, rest, setback

log = structlog.get_logger(__name__)

STREAM = "repricing"
HOLDER = "repricing"

_OF_ROWS = """
    SELECT c.id, g.old, g.price
      FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS g (id bigint, old numeric(12,4), price numeric(12,4))
           JOIN card c ON c.seller_id = :seller AND c.marketplace_id = g.id
     UNION ALL
    SELECT c.id, g.old, g.price
      FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS g (id bigint, old numeric(12,4), price numeric(12,4))
           JOIN card c ON c.seller_id = :seller AND c.custom AND NOT c.gone AND c.listing_id = g.id
     WHERE NOT EXISTS (SELECT FROM card d WHERE d.seller_id = :seller AND d.marketplace_id = g.id)
"""
_OF_ROLLBACK = """
    SELECT card_id AS id, current_price AS old, price FROM price_rollback_card
     WHERE seller_id = :seller AND rollback_id = :rollback AND card_id > :after AND card_id <= :last
"""
_VALUES = ", ".join(AMOUNTS)
_MOVE = f"""
    WITH given AS ({{given}}),
    moved AS MATERIALIZED (
        SELECT c.id, g.price AS imported, c.observed_at, c.quantity, {", ".join(f"c.{name}" for name in AMOUNTS)}
          FROM given g JOIN card c ON c.seller_id = :seller AND c.id = g.id
               LEFT JOIN line_snapshot l ON l.seller_id = :seller AND l.product_line = c.product_line
         WHERE NOT c.gone AND c.price IS DISTINCT FROM g.price
           AND (greatest(c.observed_at, l.observed_at) <= greatest(CAST(:at AS timestamptz), CAST(:served_at AS timestamptz))
                OR c.price IS NOT DISTINCT FROM g.old)
    ), kept AS (
        INSERT INTO price_observation (seller_id, card_id, observed_at, quantity, {_VALUES})
        SELECT :seller, id, observed_at, quantity, {_VALUES} FROM moved WHERE observed_at >= :kept_since
        ON CONFLICT (seller_id, card_id, observed_at) DO NOTHING
    )
    UPDATE card c SET price = m.imported, observed_at = greatest(:at, m.observed_at + interval '1 microsecond'), values_hash = 0, updated_at = :now
      FROM moved m WHERE c.seller_id = :seller AND c.id = m.id
"""
_UNASK = """
    UPDATE card c SET target_price = NULL, priced_at = :now
      FROM price_rollback_card r
     WHERE r.seller_id = :seller AND r.rollback_id = :rollback AND r.card_id > :after AND r.card_id <= :last
       AND c.seller_id = :seller AND c.id = r.card_id AND c.target_price IS NOT NULL
"""
_NEXT = """
    SELECT max(card_id) FROM (
        SELECT card_id FROM price_rollback_card WHERE seller_id = :seller AND rollback_id = :rollback AND card_id > :after
         ORDER BY card_id LIMIT :slab) slab
"""
_COUNT = (
    "UPDATE repricing_event SET moved = moved + :moved WHERE seller_id = :seller AND id = :event"
)
_CHANGING = "UPDATE sync_state SET export_fingerprint = NULL WHERE seller_id = :seller"


@jobs.task(name="pricing.move", queue="imports", pass_context=True)
async def move_prices(context: procrastinate.JobContext, seller_id: int) -> None:
    work = work_of(context)
    if await work_off_one(work, seller_id):
        async with work.database.tenant(seller_id) as session:
            await enqueue(session, move_prices, seller_id=seller_id)


async def begin(session: AsyncSession, seller_id: int) -> None:
    """The job of an event, in the transaction that records it."""
    await mark_due(session, seller_id, STREAM)
    await enqueue(session, move_prices, seller_id=seller_id)


async def work_off_one(work: Work, seller_id: int) -> bool:
    """Settle the oldest event.

    True if there may be more to do, False if there is nothing or somebody else writes prices.
    """
    async with work.database.tenant(seller_id) as session:
        due = await due_of(session, seller_id, STREAM)
        event = await _oldest(session, seller_id)
        if event is None:
            await forget(session, seller_id, STREAM, due)
            return False
        if due is not None and due.rests(event.id, clock.now()):
            return False
        lease = await take_lease(
            session, seller_id, HOLDER, clock.now(), work.settings.lease_seconds
        )
        if lease is None:
            return False
        # Read again under the lease: who had it before may have settled the event since.
        event = await _oldest(session, seller_id)
        if event is None:
            await release_lease(session, lease)
            return True
        rollback = (
            await rollback_of(session, seller_id, event.rollback_id) if event.rollback_id else None
        )
    bound = log.bind(seller_id=seller_id, event_id=event.id)
    try:
        await _settle(work, lease, event, rollback)
    except (LeaseLost, CancelRequested) as e:
        bound.warning("moves_interrupted", kind=type(e).__name__)
    except Exception as e:
        match setback(e, seller_id, STREAM, event.id, due, most=1):
            case PutBack() as back:
                await _put_back(work, lease, event, back)
                return False
            case _:
                with contextlib.suppress(LeaseLost):
                    await _give_up(work, lease, event)
    return True


async def _put_back(work: Work, lease: Lease, event: RepricingEvent, back: PutBack) -> None:
    """Leave the event open for another try; if even that can't be written, the lease runs out by
    itself.
    """
    with contextlib.suppress(SQLAlchemyError, psycopg.Error, OSError):
        async with work.database.tenant(lease.seller_id) as session:
            await release_lease(session, lease)
            await rest(session, lease.seller_id, STREAM, event.id, back)


async def _oldest(session: AsyncSession, seller_id: int) -> RepricingEvent | None:
    statement = select(RepricingEvent).where(
        RepricingEvent.seller_id == seller_id, RepricingEvent.settled_at.is_(None)
    )
    return await session.scalar(
        statement.order_by(RepricingEvent.id).limit(1).execution_options(populate_existing=True)
    )


async def _settle(
    work: Work, lease: Lease, event: RepricingEvent, rollback: PriceRollback | None
) -> None:
    kept_since = await history.prepare(work, lease.seller_id, event.imported_at)
    values: dict[str, Any] = {
        "seller": lease.seller_id,
        "event": event.id,
        "at": event.imported_at,
        "served_at": rollback and rollback.served_at,
        "kept_since": kept_since,
        "rollback": event.rollback_id,
    }
    size = work.settings.slab_rows
    rows = event.rows or []
    for start in range(0, len(rows), size):
        chunk = msgspec.json.encode(rows[start : start + size]).decode()
        await _slab(work, lease, values | {"rows": chunk}, _MOVE.format(given=_OF_ROWS))
    if rollback is not None and rollback.state != "applied":
        by_row = () if rows else (_MOVE.format(given=_OF_ROLLBACK),)
        after = 0
        while (last := await _next(work, values | {"after": after, "slab": size})) is not None:
            await _slab(work, lease, values | {"after": after, "last": last}, *by_row, _UNASK)
            after = last
    await _finish(work, lease, event)


async def _next(work: Work, values: dict[str, Any]) -> int | None:
    async with work.database.tenant(values["seller"]) as session:
        bound = {name: values[name] for name in ("seller", "rollback", "after", "slab")}
        last: int | None = await session.scalar(text(_NEXT), bound)
        return last


async def _slab(work: Work, lease: Lease, values: dict[str, Any], *statements: str) -> None:
    """One transaction, which begins with the seller's row: nobody takes the lease over
    meanwhile.
    """
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        await hold_lease(session, lease, now)
        await run(session, _CHANGING, values)
        moved = 0
        for statement in statements:
            wrote = await run(session, statement, values | {"now": now})
            moved += wrote if statement is not _UNASK else 0
        await run(session, _COUNT, values | {"moved": moved})


async def _give_up(work: Work, lease: Lease, event: RepricingEvent) -> None:
    """The next upload tells the prices; a rollback stays served, and is applied when its file is
    imported again, or expires.
    """
    async with work.database.tenant(lease.seller_id) as session:
        state = await own_state(session, lease)
        row = await session.get_one(RepricingEvent, (lease.seller_id, event.id))
        row.settled_at, row.rows = clock.now(), None
        row.error = {"code": "internal_error", "message": "the prices could not be moved"}
        state.export_fingerprint = await fingerprint(session, lease.seller_id)
        await session.flush()
        await release_lease(session, lease)


async def _finish(work: Work, lease: Lease, event: RepricingEvent) -> None:
    """The last transaction: the rollback is applied, the export's fingerprint, the lease."""
    now = clock.now()
    async with work.database.tenant(lease.seller_id) as session:
        state = await own_state(session, lease)
        if event.rollback_id is not None:
            rollback = await rollback_of(session, lease.seller_id, event.rollback_id)
            if rollback.state != "applied":
                await end(session, state, rollback, "applied", now)
        row = await session.get_one(RepricingEvent, (lease.seller_id, event.id))
        row.settled_at, row.rows = now, None
        state.export_fingerprint = await fingerprint(session, lease.seller_id)
        await session.flush()
        await release_lease(session, lease)
