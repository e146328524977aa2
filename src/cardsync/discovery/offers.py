"""Renews a seller's offers by product after a sync, and writes only the rows of `network_offer`
that differ.

Every seller's stock is kept, exposed or not: an answer must be able to say that somebody holds a
card without saying who. Gone, custom, private and contributed rows make no offer.
"""

from __future__ import annotations

import procrastinate
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.database.session import run
from cardsync.seller_state.state import locked
from cardsync.work.jobs import NETWORK, Work, jobs, work_of
from cardsync.work.streams import due_of, forget

log = structlog.get_logger(__name__)

# An entry is the cheapest of a condition's SKUs and the copies of all of them that have a price;
# without any price it says only that the seller holds the card.
_HELD = """
    SELECT product_id, coalesce(condition, '') AS condition,
           min(price) FILTER (WHERE price > 0) AS price,
           coalesce(sum(quantity) FILTER (WHERE price > 0), sum(quantity)) AS quantity
      FROM card
     WHERE seller_id = :seller AND quantity > 0 AND NOT gone AND NOT custom
       AND contribution IS NULL
     GROUP BY product_id, coalesce(condition, '')
"""


@jobs.task(name="discovery.offers", queue="imports", pass_context=True)
async def refresh_offers(context: procrastinate.JobContext, seller_id: int) -> None:
    await work_off(work_of(context), seller_id)


async def work_off(work: Work, seller_id: int) -> None:
    """Bring the seller's offers up to date; a second worker waits for the seller's row and finds
    nothing to do.
    """
    async with work.database.tenant(seller_id) as session:
        await locked(session, seller_id)
        due = await due_of(session, seller_id, NETWORK)
        if due is None or due.at > clock.now():
            return
        written = await refresh(session, seller_id)
        await forget(session, seller_id, NETWORK, due)
    log.debug("network_offers", seller_id=seller_id, written=written)


async def refresh(session: AsyncSession, seller_id: int) -> int:
    """Write the offers that differ from the seller's cards; return how many rows were written."""
    await session.execute(
        text(f"CREATE TEMP TABLE held ON COMMIT DROP AS {_HELD}"), {"seller": seller_id}
    )
    await session.execute(text("ANALYZE held"))
    gone = await run(
        session,
        """
            DELETE FROM network_offer o
             WHERE o.seller_id = :seller
               AND NOT EXISTS (SELECT FROM held h WHERE h.product_id = o.product_id
                                  AND h.condition = o.condition)
        """,
        {"seller": seller_id},
    )
    changed = await run(
        session,
        """
            INSERT INTO network_offer AS o (product_id, seller_id, condition, price, quantity)
            SELECT h.product_id, :seller, h.condition, h.price, h.quantity FROM held h
              LEFT JOIN network_offer f ON f.product_id = h.product_id AND f.seller_id = :seller
                                       AND f.condition = h.condition
             WHERE f.product_id IS NULL OR (f.price, f.quantity) IS DISTINCT FROM (h.price, h.quantity)
             ORDER BY h.product_id, h.condition
            ON CONFLICT (product_id, seller_id, condition) DO UPDATE
               SET price = excluded.price, quantity = excluded.quantity
        """,
        {"seller": seller_id},
    )
    await session.execute(
        text("""
            UPDATE network_seller s
               SET refreshed_at = :now, printings = h.printings, copies = h.copies
              FROM (SELECT count(DISTINCT product_id) AS printings,
                           coalesce(sum(quantity), 0) AS copies
                      FROM held WHERE price IS NOT NULL) AS h
             WHERE s.seller_id = :seller
        """),
        {"seller": seller_id, "now": clock.now()},
    )
    return gone + changed
