"""The end of contributions: the marketplace lists a published one, or its member leaves. Both run
inside the transaction that causes them.

A published contribution is promoted when an upload brings a card of the same product, condition,
printing and language: that live card takes over its lists and its places, and the contribution is
retired.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.account_lock import one_at_a_time
from cardsync.lists.lists import alone_with_lists

PAIRS = """
    SELECT p.id AS contributed, min(l.id) AS live
      FROM card p LEFT JOIN product a ON a.id = p.product_id JOIN card l
        ON l.seller_id = p.seller_id
       AND l.product_id = coalesce(a.adopted_by, p.product_id)
       AND l.condition IS NOT DISTINCT FROM p.condition
       AND l.printing = p.printing AND l.language = p.language
       AND l.contribution IS NULL AND NOT l.custom AND NOT l.gone
     WHERE p.seller_id = :seller AND l.seller_id = :seller AND p.contribution = 'published'
     GROUP BY p.id
"""
RETIRED = """
    UPDATE card SET contribution = 'retired', gone = true, quantity = 0
     WHERE seller_id = :seller AND id = ANY (CAST(:contributed AS bigint[]))
"""
_PAIR = (
    "unnest(CAST(:contributed AS bigint[]), CAST(:live AS bigint[])) AS pair (contributed, live)"
)
LISTS = f"""
    INSERT INTO card_list_entry (seller_id, list_id, card_id, added_at)
    SELECT e.seller_id, e.list_id, pair.live, min(e.added_at)
      FROM card_list_entry e JOIN {_PAIR} ON e.card_id = pair.contributed
     WHERE e.seller_id = :seller GROUP BY e.seller_id, e.list_id, pair.live
    ON CONFLICT DO NOTHING
"""
PLACES = f"""
    INSERT INTO card_location AS l (seller_id, card_id, box, slot, quantity)
    SELECT o.seller_id, pair.live, o.box, o.slot, sum(o.quantity)
      FROM card_location o JOIN {_PAIR} ON o.card_id = pair.contributed
     WHERE o.seller_id = :seller GROUP BY o.seller_id, pair.live, o.box, o.slot
    ON CONFLICT (seller_id, card_id, box, slot)
       DO UPDATE SET quantity = l.quantity + excluded.quantity
"""


async def promote(session: AsyncSession, seller_id: int) -> None:
    """Promote the contributions that the marketplace lists by now. Where nothing is published,
    this costs one read of an index.
    """
    published = "SELECT count(*) FROM card WHERE seller_id = :seller AND contribution = 'published'"
    if not await session.scalar(text(published), {"seller": seller_id}):
        return
    await one_at_a_time(session, seller_id)
    pairs = (await session.execute(text(PAIRS), {"seller": seller_id})).all()
    if not pairs:
        return
    contributed = [pair.contributed for pair in pairs]
    named = {
        "seller": seller_id,
        "contributed": contributed,
        "live": [pair.live for pair in pairs],
    }
    await _hold_lists(session, seller_id)
    await session.execute(text(RETIRED), {"seller": seller_id, "contributed": contributed})
    await session.execute(text(LISTS), named)
    await session.execute(text(PLACES), named)
    await _leave(session, seller_id, contributed)


async def retire_private(session: AsyncSession, seller_id: int, member_id: int) -> None:
    """Retire the private contributions of a member who leaves: nobody else could see them, and
    from now on nobody can.
    """
    await one_at_a_time(session, seller_id)
    await _hold_lists(session, seller_id)
    private = text(
        "SELECT id FROM card"
        " WHERE seller_id = :seller AND contribution = 'private' AND contributed_by = :member"
    )
    ids = list(await session.scalars(private, {"seller": seller_id, "member": member_id}))
    gone = text(
        "UPDATE card SET gone = true, quantity = 0"
        " WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))"
    )
    await session.execute(gone, {"seller": seller_id, "ids": ids})
    await _leave(session, seller_id, ids)


async def _hold_lists(session: AsyncSession, seller_id: int) -> None:
    """Lock all lists. Putting cards on a list needs its lock, and so does making one: until the
    transaction ends, no other one does either.
    """
    await alone_with_lists(session, seller_id)
    held = text("SELECT id FROM card_list WHERE seller_id = :seller ORDER BY id FOR UPDATE")
    await session.execute(held, {"seller": seller_id})


async def _leave(session: AsyncSession, seller_id: int, card_ids: list[int]) -> None:
    for table in ("card_list_entry", "card_location"):
        theirs = (
            f"DELETE FROM {table}"
            " WHERE seller_id = :seller AND card_id = ANY (CAST(:ids AS bigint[]))"
        )
        await session.execute(text(theirs), {"seller": seller_id, "ids": card_ids})
